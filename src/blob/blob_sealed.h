/* blob_sealed: the contents of files of encrypted namespaces in a store (blob_store.h, sealed_file.h).
 *
 * In a namespace that is not encrypted, keys NULL or none, names are digests, and files are read as they are.
 */
#ifndef STAMPD_BLOB_BLOB_SEALED_H
#define STAMPD_BLOB_BLOB_SEALED_H

#include "blob/blob_store.h"
#include "seal/sealed_file.h"

/* The name of the file in the store, and its size there. */
struct blob_digest blob_sealed_name(const struct sealed_file_keys *keys, const struct blob_digest *digest);
struct bytes blob_sealed_digits(struct arena *arena, const struct sealed_file_keys *keys,
                                const struct blob_digest *digest); /* the name, in the arena */
int64_t blob_sealed_size(const struct sealed_file_keys *keys, int64_t size);
/* The size of the content; -1: no file has that size. */
int64_t blob_sealed_clear_size(const struct sealed_file_keys *keys, int64_t stored);

/* As blob_store_read: the content of the file with this digest, or of this name.  FAULT_BCONTENT: it was
 * altered, or is under an unknown key, and it was logged; what was passed before is what was stored. */
MUST_USE enum fault blob_sealed_read(struct blob_store *store, struct bytes database,
                                     const struct sealed_file_keys *keys, const struct blob_digest *digest,
                                     bool (*take)(void *context, struct bytes piece), void *context);
MUST_USE enum fault blob_sealed_read_name(struct blob_store *store, struct bytes database,
                                          const struct sealed_file_keys *keys, const struct blob_digest *name,
                                          bool (*take)(void *context, struct bytes piece), void *context);

/* What opens the chunks of this file, and no other.  FAULT_NFILE, BCONTENT; STALE: it is under a data key
 * that is not among these. */
MUST_USE enum fault blob_sealed_begin(struct blob_store *store, struct bytes database,
                                      const struct sealed_file_keys *keys, const struct blob_digest *name,
                                      struct sealed_file_head *head_r);
/* The open file of this name, for sealed_file_open.  FAULT_NFILE. */
MUST_USE enum fault blob_sealed_open(struct blob_store *store, struct bytes database,
                                     const struct blob_digest *name, int *fd_r);
/* Logs, and returns the fault. */
enum fault blob_sealed_report(enum sealed_file_state state, struct bytes database,
                              const struct blob_digest *name);

#endif
