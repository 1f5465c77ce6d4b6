/* backup_objects: copies of files that object stores have (doc/reference/object-stores.md).
 *
 * A copy is made once, by its digest, and each is checked before it appears.  The table of a namespace
 * decides which files there are, so that none is missed that moves between the directory and a store
 * meanwhile. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_OBJECTS_H
#define STAMPD_CONTROL_BACKUP_BACKUP_OBJECTS_H

#include "control/backup/backup_files.h"
#include "control/backup/backup_rows.h"

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
