/* shared_cache: whole copies of documents in the shared segment.  A worker puts there what it has written
 * or loaded; a worker that has no copy, or an old one, takes it from here without a database query.
 *
 * A copy in the shared cache has the same tag as in the cache of the worker that put it there, and follows
 * the same rule (freshness.md, read): it is the newest if its tag equals the stamp seen and no mark is
 * seen.  The shared cache itself promises only that a copy taken is one that was put there, whole and under
 * its name, never that a copy is there.  It may evict any copy at any time.
 *
 * Writers of one bucket exclude each other with a try-lock and never wait; readers detect a concurrent
 * writer.  A process killed during a write leaves its bucket locked; the next process of its index frees
 * it. */
#ifndef STAMPD_SEGMENT_SHARED_CACHE_H
#define STAMPD_SEGMENT_SHARED_CACHE_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/document/document.h"
#include "segment/segment.h"

enum {
    SHARED_CACHE_BUCKET_BYTES = 64 * 1024,
    SHARED_CACHE_DOCUMENT_BYTES = 24 * 1024 /* of the largest snapshot stored */
};

struct shared_cache; /* this process's handle */

/* `memory` is shared, started zeroed and outlives the handle; of `bytes`, only whole buckets are used. */
struct shared_cache *shared_cache_create(void *memory, size_t bytes);
void shared_cache_destroy(struct shared_cache *shared_cache); /* NULL is allowed */
/* Empties and unlocks the bucket that a former process of this index left locked. */
void shared_cache_recover(struct shared_cache *shared_cache, int index);

/* Stores a copy, unless there is one with a higher tag, or with this tag and no lower version, or the
 * document is too large, or another process is writing in its bucket. `index` is the process's own. */
void shared_cache_put(struct shared_cache *shared_cache, int index, uint64_t hash, int ns, uint64_t tag,
                      const struct document *document);
/* The copy of this name with this `tag`, one reference, the caller's; NULL: there is none. */
struct document *shared_cache_take(struct shared_cache *shared_cache, uint64_t hash, int ns,
                                   struct bytes class, struct bytes id, uint64_t tag);

/* For board.c. */
void shared_cache_recover_index(struct segment *segment, int index);
size_t shared_cache_size(const struct board_sizes *sizes);
void shared_cache_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
