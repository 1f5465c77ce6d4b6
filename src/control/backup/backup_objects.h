/* backup_objects: copies of files that object stores have (doc/reference/object-stores.md).
 *
 * A copy is made once, by its digest, and each is checked before it appears.  The table of a namespace
 * decides which files there are, so that none is missed that moves between the directory and a store
 * meanwhile. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_OBJECTS_H
#define STAMPD_CONTROL_BACKUP_BACKUP_OBJECTS_H

#include "control/backup/backup_files.h"
#include "control/control.h"
#include "control/files/stored_files.h"

/* --- backup rows --- */

/* The files of all namespaces, as the tables stampd.blob have them now, wherever they are. */

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

/* Do the settings name object stores, or did they at a former run?  Then files may still be there, whatever
 * the settings of this run are. */
bool backup_objects_are_used(struct control *control, const struct backup_folder *folder);

struct backup_objects {
    struct backup_files files; /* copied now */
    int64_t missing;           /* that have no copy: they are missing or altered where they should be */
};
/* Copies all files of the tables that the folder lacks, and marks the others as seen; after
 * backup_files_save.  Those that are missing or altered are named and counted.  False: not all could be
 * looked at, as when a store is away; reported. */
MUST_USE bool backup_objects_save(struct control *control, const struct backup_folder *folder,
                                  struct backup_objects *objects_r);

/* The path of a copy that has the bytes of this row, in its arena; NULL: there is none. */
const char *backup_objects_find(const struct backup_folder *folder, const struct backup_row *row);
/* Calls `try` with the path of each copy of the file, whatever its header, until it returns true. */
MUST_USE bool backup_objects_try(const struct backup_folder *folder, const struct backup_row *row,
                                 bool (*try)(void *context, const char *path), void *context);

/* Reads a copy in pieces, and compares it with the digest, or opens it with the keys: FAILED was reported,
 * unless it is gone. `take` may be NULL; it returns false to end early, and the copy is ALTERED then. */
MUST_USE enum sealed_file_state backup_objects_read(const char *path, const struct sealed_file_keys *keys,
                                                    const struct blob_digest *digest, int64_t size,
                                                    bool (*take)(void *context, struct bytes piece),
                                                    void *context);

#endif
