/* store_blobs: which files a namespace's store has, who may attach them, and where they are attached
 * (sql/0017_blobs.sql, doc/reference/attachments.md).
 *
 * The order in which a file is stored (blob/blob_store.h has its bytes):
 *   1. blob_store_seal: the bytes are durable, under no digest;
 *   2. store_blobs_touch: from now on no cleaner removes the file for a time;
 *   3. blob_store_finish: the file has its digest;
 *   4. the commit that writes the item P, or store_blobs_claim: both refuse a file that is not registered, or
 *      that is being removed.
 * Between 2 and 4 less time passes than blob_unused_hours, else the commit may be refused. */
#ifndef STAMPD_STORE_BLOBS_STORE_BLOBS_H
#define STAMPD_STORE_BLOBS_STORE_BLOBS_H

#include "base/arena.h"
#include "blob/blob_store.h"
#include "store/store.h"

/* In an encrypted namespace the database knows the names of files and their sizes on the disk, not digests
 * and sizes of contents (blob/blob_sealed.h).  The functions below take and return the latter. */

enum { BLOB_CLAIM_S = 86400 }; /* how long an uploader may attach its file by digest */

/* The keys under which files of the namespace are encrypted, until the session changes; none: they are not.
 */
MUST_USE enum fault store_blobs_keys(struct store *store, int ns, struct sealed_file_keys *keys_r);

/* The same, read again: another process may have begun to use a new one. */
MUST_USE enum fault store_blobs_renew_keys(struct store *store, int ns, struct sealed_file_keys *keys_r);

/* What the record of an upload in parts has of the client's texts (blob/blob_part.h). */
MUST_USE enum fault store_blobs_seal_note(struct store *store, int ns, struct arena *arena,
                                          struct bytes upload, struct bytes *text);
MUST_USE enum fault store_blobs_open_note(struct store *store, int ns, struct arena *arena,
                                          struct bytes upload, struct bytes *text);

/* Waits for a cleaner that is removing the file at this moment. */
MUST_USE enum fault store_blobs_touch(struct store *store, int ns, struct arena *arena,
                                      const struct blob_digest *digest, int64_t size);
/* The account may attach the file by its digest from now on.  FAULT_NATTACHMENT: there is no such file. */
MUST_USE enum fault store_blobs_claim(struct store *store, int ns, struct arena *arena,
                                      const struct blob_digest *digest, struct bytes account);
/* The sizes of those files that the account has claimed; NO_BYTES: of all; -1: of one that it has not, or
 * that is not there. */
MUST_USE enum fault store_blobs_find(struct store *store, int ns, struct arena *arena, struct bytes account,
                                     const struct blob_digest *digests, size_t count, int64_t *sizes_r);

struct blob_object {
    const char *store, *name; /* in the arena; NULL: no object store has the file */
    struct bytes head;        /* its header in hexadecimal digits, when it is encrypted; else NO_BYTES */
};
MUST_USE enum fault store_blobs_find_object(struct store *store, int ns, struct arena *arena,
                                            const struct blob_digest *digest, struct blob_object *object_r);

/* A file that a document has, or had until a short time ago. */
struct blob_reference {
    struct bytes key, mime; /* of the attachment; key NO_BYTES: the document has no such file */
    int64_t size;
    bool is_live; /* an item P has it */
};
/* Of several references of the document to the file a live one, if there is one. */
MUST_USE enum fault store_blobs_find_reference(struct store *store, int ns, struct arena *arena,
                                               struct bytes class, struct bytes id,
                                               const struct blob_digest *digest,
                                               struct blob_reference *reference_r);

#endif
