/* csv_source: a CSV file, one document a row (import-csv.md). */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_CSV_SOURCE_H
#define STAMPD_CONTROL_FOREIGN_CSV_CSV_SOURCE_H

#include "control/foreign/csv/csv_mapping.h"
#include "control/foreign/csv/csv_reader.h"
#include "control/foreign/foreign_import.h"

struct csv_source {
    struct foreign_source source; /* the first member */
    const char *class, *id;       /* NULL: those of the mapping */
    struct csv_reader reader;
    struct csv_mapping *mapping; /* of this pass */
    int64_t header_line;         /* at which the header ends */
    bool has_rows, is_joined;    /* is_joined: the header goes on over several lines */
};
void csv_source_init(struct csv_source *csv, struct arena *arena, const char *class, const char *id);

#endif
