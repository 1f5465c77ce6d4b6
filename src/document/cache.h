/* cache: the documents that this worker keeps, each with the tag that proves it the newest (freshness.md).
 * Bounded in bytes, with LRU eviction; a document not used for the maximum age is evicted too.  Documents
 * known not to exist are cached like others.  Process-local, no locks. */
#ifndef STAMPD_DOCUMENT_CACHE_H
#define STAMPD_DOCUMENT_CACHE_H

#include "base/base.h"
#include "model/document/document.h"

struct cache;

struct cache_entry {
    struct document *document; /* the cache's reference */
    uint64_t tag;              /* the slot's stamp seen before the document was loaded */
    int64_t fresh_ms;          /* monotonic: when it was last known to be the newest */
    uint64_t hash;
    uint32_t slot;
    bool is_tagged;  /* false: `tag` proves nothing, the copy serves only tolerances and deltas */
    bool is_doubted; /* the database has another version, despite the stamps: only a load is valid */
    bool is_aged;    /* of a standby: serves tolerances, and nothing is completed with it */
    bool is_written; /* an operation of this worker wrote it; outlives the copy's replacement */
    int ns;
};

struct cache *cache_create(size_t budget_bytes, int64_t age_ms);
void cache_destroy(struct cache *cache);

/* The entry, now the most recently used; NULL if there is none.  Valid until the next put, drop or trim. */
struct cache_entry *cache_find(struct cache *cache, uint64_t hash, int ns, struct bytes class,
                               struct bytes id);
/* Stores the document (takes a reference of its own) in place of an older copy. */
struct cache_entry *cache_put(struct cache *cache, uint64_t hash, uint32_t slot, int ns,
                              struct document *document);
void cache_drop(struct cache *cache, struct cache_entry *entry);
void cache_clear(struct cache *cache);
/* Evicts entries that are too old; called periodically. */
void cache_trim(struct cache *cache, int64_t now_ms);

size_t cache_bytes(const struct cache *cache);
size_t cache_count(const struct cache *cache);

#endif
