/* stored_files: reads the files of a namespace wherever they are, in the directory or in an object store,
 * also while they move. */
#ifndef STAMPD_CONTROL_FILES_STORED_FILES_H
#define STAMPD_CONTROL_FILES_STORED_FILES_H

#include "control/control.h"
#include "blob/blob_store.h"
#include "blob/object_store.h"
#include "store/data_keys.h"

struct stored_files;
/* Connects to the database only when a file is not in the directory. */
struct stored_files *stored_files_open(struct control *control, const char *database)
    __attribute__((returns_nonnull));
/* Connects now, for a caller who is going to be another user.  False: reported. */
MUST_USE bool stored_files_connect(struct stored_files *files);
void stored_files_close(struct stored_files *files);
/* The namespace is encrypted: digests and sizes are those of contents from now on.  Borrows the keys. */
void stored_files_set_keys(struct stored_files *files, const struct data_keys *keys);
/* The directory. */
struct blob_store *stored_files_directory(const struct stored_files *files);

/* size_r -1: there is no such file.  FAULT_XSTORE: reported. */
MUST_USE enum fault stored_files_measure(struct stored_files *files, const struct blob_digest *digest,
                                         int64_t *size_r);
/* As blob_store_read, or blob_sealed_read. */
MUST_USE enum fault stored_files_read(struct stored_files *files, const struct blob_digest *digest,
                                      bool (*take)(void *context, struct bytes piece), void *context);

/* The same by the name of the file, which the database has. */
MUST_USE enum fault stored_files_read_name(struct stored_files *files, const struct blob_digest *name,
                                           bool (*take)(void *context, struct bytes piece), void *context);

/* The size of the file as it is stored, and its bytes, encrypted or not, for a caller who checks them
 * (blob/blob_check.h).  size_r and faults as above. */
MUST_USE enum fault stored_files_measure_name(struct stored_files *files, const struct blob_digest *name,
                                              int64_t *size_r);
MUST_USE enum fault stored_files_read_bytes(struct stored_files *files, const struct blob_digest *name,
                                            bool (*take)(void *context, struct bytes piece), void *context);
/* The header of an encrypted file, unchecked; zeros: it has none. */
MUST_USE enum fault stored_files_read_header(struct stored_files *files, const struct blob_digest *name,
                                             unsigned char header_r[SEALED_FILE_HEADER]);

/* The object store of this name, for a caller who looks at single objects; valid until the end of `files`.
 * NULL: the settings do not name it; reported. */
struct object_store *stored_files_store(struct stored_files *files, const char *name);

/* Removes the objects of a namespace that is being dropped.  What cannot be removed is reported, and stays.
 */
void stored_files_remove_objects(struct control *control, const char *database);

#endif
