/* blob_part: uploads whose bytes come with several requests.
 *
 * Each has a record and a file in the store.  The record has the offset up to which the bytes are durable; it
 * advances after them, so whatever lies behind it is cut off when the upload continues.  One request at a
 * time holds an upload.  The last part does not advance the record: the upload is complete when the caller
 * says so, after its file is attached; until then the last part can be sent again, also when the bytes are
 * in the store under their digest already.
 *
 * With the keys of an encrypted namespace the bytes are encrypted in frames (sealed_frames.h).  The note is
 * stored as the caller gives it. */
#ifndef STAMPD_BLOB_BLOB_PART_H
#define STAMPD_BLOB_BLOB_PART_H

#include "blob/blob_store.h"

enum { BLOB_PART_ID = 32, BLOB_PART_OWNER = 64, BLOB_PART_NOTE = 8192 };
/* An upload may take so many times as long as it may lie between two parts. */
enum { BLOB_PART_AGES = 7 };
/* An upload without a byte ends after this. */
enum { BLOB_PART_EMPTY_S = 900 };

struct blob_part_state {
    int64_t size, offset;
    int64_t created_s, changed_s; /* Unix time */
    /* The account and the address whose limits count, BLOB_PART_OWNER bytes each; NO_BYTES: none. */
    struct bytes owner, address;
    struct bytes note; /* the caller's, at most BLOB_PART_NOTE bytes */
};

/* An upload reserves what it has, what the present part brings, and so much more, up to its size. */
enum { BLOB_PART_CHUNK = 16 << 20 };

/* Of incomplete uploads of a database: how many, and the sum of what they reserve; of those of an owner, of
 * their sizes.  What those of an owner reserve is besides no more than what they leave of `most_bytes`, but
 * for the oldest upload of the database. */
struct blob_part_limits {
    int64_t most, most_bytes, owner_most, owner_most_bytes;
};
enum blob_part_limit { BLOB_PART_MOST, BLOB_PART_BYTES, BLOB_PART_OWNER_MOST, BLOB_PART_OWNER_BYTES };

/* An id that cannot be guessed. */
void blob_part_draw_id(char id_r[BLOB_PART_ID + 1]);

/* FAULT_XBUSY: a limit, which limit_r has. */
MUST_USE enum fault blob_part_create(struct blob_store *store, struct bytes database, const char *id,
                                     const struct blob_part_state *state,
                                     const struct blob_part_limits *limits, enum blob_part_limit *limit_r);

/* FAULT_NUPLOAD: there is no such upload.  Its texts are in the arena. */
MUST_USE enum fault blob_part_look(struct blob_store *store, struct bytes database, struct bytes id,
                                   struct arena *arena, struct blob_part_state *state_r);

/* Would blob_part_reserve of `size` bytes succeed now?  FAULT_NUPLOAD, or XBUSY: `most_bytes` of the limits.
 */
MUST_USE enum fault blob_part_may(struct blob_store *store, struct bytes database, struct bytes id,
                                  struct arena *arena, int64_t size, const struct blob_part_limits *limits);
/* Is there room for one more part, of the size and the owners of `state`?  FAULT_XBUSY: no, by `limit_r`. */
MUST_USE enum fault blob_part_may_begin(struct blob_store *store, struct bytes database,
                                        const struct blob_part_state *state,
                                        const struct blob_part_limits *limits, enum blob_part_limit *limit_r);

/* --- held by one request --- */
struct blob_part;
/* FAULT_NUPLOAD, or XLOCKED: another request holds it. */
MUST_USE enum fault blob_part_open(struct blob_store *store, struct bytes database, struct bytes id,
                                   struct arena *arena, struct blob_part **part_r);
const struct blob_part_state *blob_part_state(const struct blob_part *part);
/* Before `size` more bytes are taken.  FAULT_XBUSY: `most_bytes` of the limits. */
MUST_USE enum fault blob_part_reserve(struct blob_part *part, int64_t size,
                                      const struct blob_part_limits *limits);
/* Opens the file at the offset.  The upload is ended by blob_store_suspend, _finish or _abandon. */
MUST_USE enum fault blob_part_continue(struct blob_part *part, const struct sealed_file_keys *keys,
                                       struct blob_upload **upload_r);
/* The bytes up to the offset are durable. */
MUST_USE enum fault blob_part_advance(struct blob_part *part, int64_t offset);
/* Before blob_store_finish: under which digest the bytes are found from then on. */
MUST_USE enum fault blob_part_note_digest(struct blob_part *part, const struct sealed_file_keys *keys,
                                          const struct blob_digest *digest);
MUST_USE enum fault blob_part_complete(struct blob_part *part);
MUST_USE enum fault blob_part_remove(struct blob_part *part);
/* NULL: does nothing. */
void blob_part_close(struct blob_part *part);

/* Removes uploads that last changed `age_s` ago or earlier (BLOB_PART_EMPTY_S without a byte), or were
 * created BLOB_PART_AGES times as long ago, except those that a request holds. */
MUST_USE enum fault blob_part_clear(struct blob_store *store, struct bytes database, int64_t age_s,
                                    int64_t *removed_r);

#endif
