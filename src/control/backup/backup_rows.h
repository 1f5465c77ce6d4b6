/* backup_rows: the files of all namespaces, as the tables stampd.blob have them now, wherever they are. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_ROWS_H
#define STAMPD_CONTROL_BACKUP_BACKUP_ROWS_H

#include "control/control.h"
#include "control/files/stored_files.h"

struct backup_row {
    struct arena *arena; /* of this row and a few more */
    const char *code, *database;
    struct pg *pg;                /* connected to the database */
    struct stored_files *files;   /* of the namespace */
    struct sealed_file_keys keys; /* of the namespace; none: it is not encrypted */
    struct blob_digest digest;
    char sha[BLOB_HEX + 1];
    int64_t size;
    const char *store, *object; /* NULL: the directory has it */
    /* Of the object of an encrypted namespace; zeros: none. */
    unsigned char header[SEALED_FILE_HEADER];
};

/* Now, for the argument below, minus some minutes in which an upload may have been on its way; on failure
 * reports why. */
MUST_USE bool backup_rows_now(struct control *control, int64_t *stamp_r);
/* Calls `visit` for each file that was uploaded before the stamp and is not being removed, until it returns
 * false.  Connects as administrator.  On failure reports why. */
MUST_USE bool backup_rows_walk(struct control *control, int64_t before,
                               bool (*visit)(void *context, const struct backup_row *row), void *context);
/* Is the file still there, and is not being removed?  On failure reports why. */
MUST_USE bool backup_rows_check(struct control *control, const struct backup_row *row, bool *is_there_r);

/* True: no table has a file that only an object store has, which a backup without object stores would lack.
 * False: one has, or a table cannot be read; reported. */
MUST_USE bool backup_rows_refuse_stored(struct control *control);

#endif
