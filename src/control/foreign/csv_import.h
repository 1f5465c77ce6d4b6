/* csv_import: brings the rows of a CSV file into a namespace in use, one document a row.
 *
 * The file is read twice: first to check every row, then to store them, in transactions that also record how
 * far the import has come. */
#ifndef STAMPD_CONTROL_FOREIGN_CSV_IMPORT_H
#define STAMPD_CONTROL_FOREIGN_CSV_IMPORT_H

#include "control/ns_registry.h"

struct csv_import_options {
    const char *code, *path;
    const char *mapping;    /* a file; NULL: none */
    const char *class, *id; /* NULL: those of the mapping */
    bool is_dry_run;
    bool skips_wrong; /* stores the other rows; otherwise none is stored */
};

/* Continues an interrupted import of the same file.  Reports what it does, and on failure why; wrong rows
 * that are left out are a failure. */
MUST_USE bool csv_import_run(struct control *control, const struct csv_import_options *options);

#endif
