/* blob_store: the files of attachments: bytes under their SHA-256, each once for a database.
 *
 * A store is a directory of this host.  Callers know digests and databases only, no paths, so that another
 * store can take its place.  A file appears under its digest whole and durable or not at all, and never
 * changes.  What a process that dies leaves unfinished has another name, which blob_store_clear finds.
 *
 * Of an encrypted namespace a file is encrypted, and its name is a keyed hash of the digest: where such files
 * are read, measured, listed or removed, their names and sizes on the disk stand for digests and sizes.
 * blob_sealed.h reads their contents.
 *
 * Files belong to the process; `group`, nginx's, may read them, and no other user.  The store does not count
 * references: store/blobs/store_blobs.h decides what may be removed, and in which order the steps happen.
 *
 * The functions log the cause of a fault.  FAULT_XFULL: no space, or a quota of the file system is used up.
 * FAULT_XSTORE: everything else that the store refuses: permissions, a directory that is missing, an error
 * of the device. */
#ifndef STAMPD_BLOB_BLOB_STORE_H
#define STAMPD_BLOB_BLOB_STORE_H

#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "seal/sealed_file.h"

enum { BLOB_DIGEST = 32, BLOB_NO_GROUP = -1 };
struct blob_digest {
    unsigned char bytes[BLOB_DIGEST];
};
static inline bool blob_digest_equal(const struct blob_digest *one, const struct blob_digest *other)
{
    return memcmp(one->bytes, other->bytes, BLOB_DIGEST) == 0;
}

struct blob_store;
/* Touches no file; the directory need not exist yet. */
struct blob_store *blob_store_open(const char *directory, int64_t group) __attribute__((returns_nonnull));
void blob_store_close(struct blob_store *store);

/* --- one file is written --- */
struct blob_upload;
/* With keys the file is encrypted (seal/sealed_file.h); NULL, or none: it is written in clear. */
MUST_USE enum fault blob_store_begin(struct blob_store *store, struct bytes database,
                                     const struct sealed_file_keys *keys, struct blob_upload **upload_r);
MUST_USE enum fault blob_store_write(struct blob_upload *upload, struct bytes piece);
/* All bytes are written: makes them durable, still under no digest.  Digest and size are those of the bytes
 * that were written, also when they are encrypted.  FAULT_BCONTENT: encrypted parts were altered. */
MUST_USE enum fault blob_store_seal(struct blob_upload *upload, struct blob_digest *digest_r,
                                    int64_t *size_r);
/* The same of an upload without keys whose bytes are those of a finished file of this name, as the caller has
 * checked. */
MUST_USE enum fault blob_store_seal_as(struct blob_upload *upload, const struct blob_digest *name);
/* Gives the sealed file its digest, durably, and ends the upload.  A file that exists already under the
 * digest, with the same size, stays. */
MUST_USE enum fault blob_store_finish(struct blob_upload *upload);
/* Of an upload that continues (blob_part.h): makes what was written durable, and ends the upload. */
MUST_USE enum fault blob_store_suspend(struct blob_upload *upload);
/* Ends the upload, and removes what was written, except by one that continues; NULL: does nothing. */
void blob_store_abandon(struct blob_upload *upload);

/* --- files --- */
/* size_r -1: there is no such file, or it is leaving. */
MUST_USE enum fault blob_store_measure(struct blob_store *store, struct bytes database,
                                       const struct blob_digest *digest, int64_t *size_r);
/* Reads the file, in pieces that are valid during the call; `take` returns false to end early.  FAULT_NFILE:
 * there is no such file. */
MUST_USE enum fault blob_store_read(struct blob_store *store, struct bytes database,
                                    const struct blob_digest *digest,
                                    bool (*take)(void *context, struct bytes piece), void *context);
/* Removes the file; one that does not exist is no fault. */
MUST_USE enum fault blob_store_remove(struct blob_store *store, struct bytes database,
                                      const struct blob_digest *digest);

/* The file is going to be removed, since an object store has it: who measures it from now on does not find
 * it, who has found it can still read it.  Its age begins again.  An upload of the same bytes ends that.  One
 * that does not exist is no fault. */
MUST_USE enum fault blob_store_leave(struct blob_store *store, struct bytes database,
                                     const struct blob_digest *digest);

/* Where nginx finds the file: an address of its configuration that clients cannot reach. */
const char *blob_store_locate(struct arena *arena, struct bytes database, const struct blob_digest *digest);

/* --- sweeps --- */
enum { BLOB_SHELVES = 256 };
/* A file, as a sweep finds it. */
struct blob_entry {
    struct blob_digest digest;
    int64_t size, age_s; /* since it was written */
    bool is_leaving;
};
/* The files of one part of a database's files, 0 to BLOB_SHELVES - 1: those whose digest begins with this
 * byte, in no order; all parts together are all files.  The caller frees the list. */
MUST_USE enum fault blob_store_list(struct blob_store *store, struct bytes database, int shelf,
                                    struct blob_entry **entries_r, size_t *count_r);
/* Removes unfinished files that were last written to `age_s` ago or earlier. */
MUST_USE enum fault blob_store_clear(struct blob_store *store, struct bytes database, int64_t age_s,
                                     int64_t *removed_r);
/* The same of files that were encrypted again so long ago (blob_reseal.h). */
MUST_USE enum fault blob_store_clear_former(struct blob_store *store, struct bytes database, int64_t age_s,
                                            int64_t *removed_r);
/* Removes all files of a database that no longer exists, also unfinished ones.  FAULT_XSTORE: its folder has
 * what is not of a store, which stays; symbolic links are not followed. */
MUST_USE enum fault blob_store_remove_database(struct blob_store *store, struct bytes database);

/* --- names --- */
enum { BLOB_HEX = 64 };
void blob_store_write_digest(const struct blob_digest *digest, char text_r[BLOB_HEX + 1]);
struct bytes blob_store_digits(struct arena *arena, const struct blob_digest *digest); /* in the arena */
/* Reads 64 hexadecimal digits in lower case; false: the text is something else. */
MUST_USE bool blob_store_read_digest(struct bytes text, struct blob_digest *digest_r);

#endif
