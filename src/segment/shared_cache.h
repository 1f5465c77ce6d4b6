/* shared_cache: whole copies of documents in the shared segment, by which a worker hands what it has written
 * or loaded to the others: who lacks a copy, or whose copy is old, takes it from here and asks no database.
 *
 * A copy in the shared cache bears the tag that it has in the cache of who put it there, and the same rule
 * holds for it (freshness.md, read): it is the newest when its tag is the stamp seen, no mark being seen. The
 * shared cache itself promises only that what is taken is what was put, whole and under its name: never that
 * it is there. It may forget everything at any time.
 *
 * Writers of one bucket exclude each other by trying, nobody ever waits; readers look whether a writer came
 * in between.  A process killed while it wrote leaves its bucket locked; the next of its index frees it. */
#ifndef STAMPD_SEGMENT_SHARED_CACHE_H
#define STAMPD_SEGMENT_SHARED_CACHE_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/document.h"
#include "segment/board.h"

enum {
    SHARED_CACHE_BUCKET_BYTES = 64 * 1024,
    SHARED_CACHE_DOCUMENT_BYTES = 24 * 1024 /* of the largest snapshot that is put there */
};

struct shared_cache; /* this process's handle */

/* `memory` is shared and was zero at its beginning; of `bytes` only whole buckets are used.  Lives longer
 * than the handle. */
struct shared_cache *shared_cache_create(void *memory, size_t bytes);
void shared_cache_destroy(struct shared_cache *shared_cache); /* NULL is allowed */
/* What a former process of this index left locked is emptied and free again. */
void shared_cache_recover(struct shared_cache *shared_cache, int index);

/* Puts a copy there unless one is there with a higher tag, or with this tag and no lower version; or the
 * document is too large, or somebody writes in its bucket just now.  `index` is the process's own. */
void shared_cache_put(struct shared_cache *shared_cache, int index, uint64_t hash, int ns, uint64_t tag,
                      const struct document *document);
/* The copy of this name that bears `tag`, one reference, the caller's; NULL: there is none. */
struct document *shared_cache_take(struct shared_cache *shared_cache, uint64_t hash, int ns,
                                   struct bytes class, struct bytes id, uint64_t tag);

/* For board.c. */
void shared_cache_recover_index(struct segment *segment, int index);
size_t shared_cache_size(const struct board_sizes *sizes);
void shared_cache_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
