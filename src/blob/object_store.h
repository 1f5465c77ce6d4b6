/* object_store: a bucket of a server that speaks the protocol of Amazon S3 (doc/reference/object-stores.md).
 *
 * Memory stays flat whatever the size: a large object is written in parts (multipart upload) and read in
 * ranges.  Each request is signed with the digest of its body, which the server checks; what is read is for
 * the caller to check.  Requests that fail for the moment are repeated a few times.
 *
 * Functions return false when the store did not do it; object_store_problem then says why, in one line
 * without keys.  Names of objects are of letters, digits and - _ . / only. */
#ifndef STAMPD_BLOB_OBJECT_STORE_H
#define STAMPD_BLOB_OBJECT_STORE_H

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"

enum { OBJECT_STORE_PIECE = 8 << 20 };

/* Where it is.  The texts are borrowed as long as the store is open. */
struct object_store_place {
    const char *endpoint; /* https://host or https://host:port; http: as well */
    const char *bucket, *region;
    const char *prefix; /* before each name; "": none */
    const char *key_id, *secret_key;
    const char *ca_file; /* PEM; NULL: the system's authorities */
    bool is_path_style;  /* https://host/bucket/name, not https://bucket.host/name */
    int64_t timeout_s;   /* of a request, beside the time of its bytes */
};

struct object_store;
/* Sends nothing. */
struct object_store *object_store_open(const struct object_store_place *place)
    __attribute__((returns_nonnull));
void object_store_close(struct object_store *store);
/* The last failure. */
const char *object_store_problem(const struct object_store *store);

/* --- one object is written --- */
struct object_upload;
/* `size`: of the whole, which object_store_write then gives in pieces. */
struct object_upload *object_store_begin(struct object_store *store, const char *name, int64_t size)
    __attribute__((returns_nonnull));
MUST_USE bool object_store_write(struct object_upload *upload, struct bytes piece);
/* The object appears, whole, in place of an older one; ends the upload in any case. */
MUST_USE bool object_store_finish(struct object_upload *upload);
/* Ends the upload; nothing appears. */
void object_store_abandon(struct object_upload *upload);

/* --- objects --- */
/* size_r -1: there is no such object. */
MUST_USE bool object_store_measure(struct object_store *store, const char *name, int64_t *size_r);
/* Reads an object of `size` bytes, in pieces that are valid during the call; `take` returns false to end
 * early. */
MUST_USE bool object_store_read(struct object_store *store, const char *name, int64_t size,
                                bool (*take)(void *context, struct bytes piece), void *context);
/* The same of a part of an object, in pieces of `piece` bytes at most. */
MUST_USE bool object_store_read_part(struct object_store *store, const char *name, int64_t from, int64_t size,
                                     int64_t piece, bool (*take)(void *context, struct bytes piece),
                                     void *context);
/* One that does not exist is no failure. */
MUST_USE bool object_store_remove(struct object_store *store, const char *name);

/* --- requests that another program sends --- */
/* A request without body, signed; a header Range may be added.  Valid for some minutes. */
struct object_store_signed {
    const char *path;                        /* of the URL, with its slash */
    const char *authorization, *date, *body; /* Authorization, x-amz-date, x-amz-content-sha256 */
};
/* In the arena. */
void object_store_sign(const struct object_store_place *place, struct arena *arena, const char *method,
                       const char *name, struct object_store_signed *signed_r);
/* What the header Host of such a request has, and the host of the URL. */
const char *object_store_host(const struct object_store_place *place, struct arena *arena);

#endif
