/* cache: a chained hash table over a list ordered by use. */
#include "document/cache.h"

#include <stdlib.h>

#include "base/log.h"

struct node {
    struct cache_entry entry;
    struct node *next; /* of the same bucket */
    struct node *younger, *older;
    int64_t used_ms;
    size_t bytes;
};

struct cache {
    struct node **buckets;
    size_t bucket_count; /* a power of two */
    size_t count, bytes, budget_bytes;
    struct node *youngest, *oldest;
    int64_t age_ms, now_ms;
};

enum { FIRST_BUCKETS = 1024 };

static void *cache_allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        log_fatal("out of memory cache bytes=%zu", count * size);
    return memory;
}

struct cache *cache_create(size_t budget_bytes, int64_t age_ms)
{
    struct cache *cache = cache_allocate(1, sizeof *cache);
    cache->buckets = cache_allocate(FIRST_BUCKETS, sizeof(struct node *));
    cache->bucket_count = FIRST_BUCKETS;
    cache->budget_bytes = budget_bytes;
    cache->age_ms = age_ms;
    return cache;
}

void cache_destroy(struct cache *cache)
{
    if (!cache)
        return;
    cache_clear(cache);
    free(cache->buckets);
    free(cache);
}

static struct node **cache_bucket_of(const struct cache *cache, uint64_t hash)
{
    /* The low bits choose the slot of the shared segment: take others. */
    return &cache->buckets[(hash >> 32) & (cache->bucket_count - 1)];
}

static void unlink_by_use(struct cache *cache, struct node *node)
{
    *(node->younger ? &node->younger->older : &cache->youngest) = node->older;
    *(node->older ? &node->older->younger : &cache->oldest) = node->younger;
}

static void link_youngest(struct cache *cache, struct node *node)
{
    node->used_ms = cache->now_ms;
    node->younger = NULL;
    node->older = cache->youngest;
    *(cache->youngest ? &cache->youngest->younger : &cache->oldest) = node;
    cache->youngest = node;
}

static void grow(struct cache *cache)
{
    size_t old_count = cache->bucket_count;
    struct node **old = cache->buckets;
    cache->bucket_count = old_count * 2;
    cache->buckets = cache_allocate(cache->bucket_count, sizeof(struct node *));
    for (size_t i = 0; i < old_count; i++) {
        for (struct node *node = old[i], *next; node; node = next) {
            next = node->next;
            struct node **bucket = cache_bucket_of(cache, node->entry.hash);
            node->next = *bucket;
            *bucket = node;
        }
    }
    cache->bytes += old_count * sizeof(struct node *);
    free(old);
}

static bool cache_is_named(const struct node *node, uint64_t hash, int ns, struct bytes class,
                           struct bytes id)
{
    const struct header *header = &node->entry.document->header;
    return node->entry.hash == hash && node->entry.ns == ns && bytes_equal(header->id, id) &&
           bytes_equal(header->class, class);
}

struct cache_entry *cache_find(struct cache *cache, uint64_t hash, int ns, struct bytes class,
                               struct bytes id)
{
    for (struct node *node = *cache_bucket_of(cache, hash); node; node = node->next) {
        if (!cache_is_named(node, hash, ns, class, id))
            continue;
        if (node != cache->youngest) {
            unlink_by_use(cache, node);
            link_youngest(cache, node);
        }
        node->used_ms = cache->now_ms;
        return &node->entry;
    }
    return NULL;
}

static void shrink(struct cache *cache)
{
    while (cache->bytes > cache->budget_bytes && cache->oldest != cache->youngest)
        cache_drop(cache, &cache->oldest->entry);
}

struct cache_entry *cache_put(struct cache *cache, uint64_t hash, uint32_t slot, int ns,
                              struct document *document)
{
    document_hold(document); /* before the old copy goes: it may be the same */
    struct cache_entry *entry = cache_find(cache, hash, ns, document->header.class, document->header.id);
    struct node *node = (struct node *)entry; /* the entry is the node's first member */
    bool is_written = node && node->entry.is_written;
    if (node) {
        cache->bytes -= node->bytes;
        document_release(node->entry.document);
    } else {
        if (cache->count >= cache->bucket_count)
            grow(cache);
        node = cache_allocate(1, sizeof *node);
        struct node **bucket = cache_bucket_of(cache, hash);
        node->next = *bucket;
        *bucket = node;
        link_youngest(cache, node);
        cache->count++;
    }
    node->entry = (struct cache_entry){
        .document = document, .hash = hash, .slot = slot, .ns = ns, .is_written = is_written};
    node->bytes = sizeof *node + document->block_bytes;
    cache->bytes += node->bytes;
    shrink(cache);
    return &node->entry;
}

void cache_drop(struct cache *cache, struct cache_entry *entry)
{
    struct node *node = (struct node *)entry;
    struct node **link = cache_bucket_of(cache, entry->hash);
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    unlink_by_use(cache, node);
    cache->bytes -= node->bytes;
    cache->count--;
    document_release(node->entry.document);
    free(node);
}

void cache_clear(struct cache *cache)
{
    while (cache->oldest)
        cache_drop(cache, &cache->oldest->entry);
}

void cache_trim(struct cache *cache, int64_t now_ms)
{
    cache->now_ms = now_ms;
    while (cache->oldest && now_ms - cache->oldest->used_ms > cache->age_ms)
        cache_drop(cache, &cache->oldest->entry);
}

size_t cache_bytes(const struct cache *cache)
{
    return cache->bytes;
}

size_t cache_count(const struct cache *cache)
{
    return cache->count;
}
