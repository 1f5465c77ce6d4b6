/* csv_mapping: which columns become the id, items and fields of a document, and their types (import-csv.md).
 *
 * {"class","id","item","separator","null","columns":{name:{"item","field","type"}}}; all members but the
 * class may be absent. */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_CSV_MAPPING_H
#define STAMPD_CONTROL_FOREIGN_CSV_CSV_MAPPING_H

#include "base/builder.h"
#include "base/settings.h"
#include "control/foreign/csv/csv_record.h"

struct csv_mapping;

/* Reads the text, NO_BYTES: none; `class` and `id`, a column, replace its members where not NULL.  Documents
 * are within the limits of the settings.  NULL: `problem_r`, in the arena, says why. */
MUST_USE struct csv_mapping *csv_mapping_read(struct arena *arena, const struct settings *settings,
                                              struct bytes text, const char *class, const char *id,
                                              const char **problem_r);
char csv_mapping_separator(const struct csv_mapping *mapping); /* 0: the mapping names none */
/* Finds the columns in the header, whose texts must live as long as the mapping.  False: as above. */
MUST_USE bool csv_mapping_bind(struct csv_mapping *mapping, const struct csv_record *header,
                               const char **problem_r);
/* The id of the record, which has as many fields as the header. */
struct bytes csv_mapping_id(const struct csv_mapping *mapping, const struct csv_record *record);
/* Appends the document of a record as a line of an archive, of the version `number`.  False: nothing is
 * appended; `problem_r` is in `arena`. */
MUST_USE bool csv_mapping_write(const struct csv_mapping *mapping, struct arena *arena,
                                const struct csv_record *record, int64_t number, struct builder *lines,
                                const char **problem_r);

#endif
