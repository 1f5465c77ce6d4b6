/* shared_cache: buckets, each with a counting lock, a directory, and a room that is filled from end to end.
 *
 * A bucket has one writer at a time and any number of readers (a sequence lock): the writer stores its index
 * in the lock, writes, and removes it with a higher count; a reader copies the words and uses the copy only
 * if lock and count have not changed.  All words but the lock are read and written relaxed between fences,
 * because a torn copy is discarded. */
#include "segment/shared_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash.h"
#include "base/memory.h"
#include "model/document/document.h"

/* The lock: a count above, 1 + index of the writer below; 0: no writer. */
enum { OWNER_BITS = 16, OWNER_MASK = (1 << OWNER_BITS) - 1 };
enum { ENTRIES = 64, ATTEMPTS = 4 };

/* Where a copy lies in the room, in words: 16 bits each of start, words in use, words that it may grow to.
 * 0: empty. */
struct bucket_entry {
    _Atomic uint64_t hash, tag, version, extent;
};

enum { BUCKET_HEAD = 64 + ENTRIES * sizeof(struct bucket_entry) };
enum { ROOM = (SHARED_CACHE_BUCKET_BYTES - BUCKET_HEAD) / sizeof(uint64_t) }; /* words */

struct bucket {
    _Alignas(64) _Atomic uint64_t lock;
    _Atomic uint64_t next; /* word of the room where the next copy goes */
    _Alignas(64) struct bucket_entry entries[ENTRIES];
    _Atomic uint64_t room[ROOM];
};

_Static_assert(sizeof(struct bucket) == SHARED_CACHE_BUCKET_BYTES, "head and room fill the bucket");
_Static_assert(ROOM <= UINT16_MAX, "an extent's parts have 16 bits");

/* A copy in the room: the namespace, and the packed document. */
enum { COPY_HEAD = 1, COPY_MOST = COPY_HEAD + SHARED_CACHE_DOCUMENT_BYTES / sizeof(uint64_t) };
_Static_assert((COPY_MOST + COPY_MOST / 8) * 2 <= ROOM, "a bucket holds two of the largest");

struct shared_cache {
    struct bucket *buckets;
    uint64_t count;
    _Alignas(max_align_t) uint64_t packed[1 + COPY_MOST]; /* [0] aligns the document after the head */
};

_Static_assert(_Alignof(struct document) <= 2 * sizeof(uint64_t), "two words align a document");

struct shared_cache *shared_cache_create(void *memory, size_t bytes)
{
    struct shared_cache *shared_cache = memory_zeroed(1, sizeof *shared_cache, "shared cache");
    shared_cache->buckets = memory;
    shared_cache->count = bytes / sizeof *shared_cache->buckets;
    return shared_cache;
}

void shared_cache_destroy(struct shared_cache *shared_cache)
{
    free(shared_cache);
}

/* Hash bits other than those that choose the slot and the cache's bucket would be no better. */
static struct bucket *shared_cache_bucket_of(const struct shared_cache *shared_cache, uint64_t hash)
{
    return &shared_cache->buckets[((hash >> 32) * shared_cache->count) >> 32];
}

/* --- words under the lock ------------------------------------------------------------------------ */

static uint64_t shared_cache_get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void shared_cache_set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

struct extent {
    uint32_t start, words, room;
};

static struct extent extent_of(const struct bucket_entry *entry)
{
    uint64_t extent = shared_cache_get(&entry->extent);
    return (struct extent){extent & UINT16_MAX, extent >> 16 & UINT16_MAX, extent >> 32 & UINT16_MAX};
}

static void set_extent(struct bucket_entry *entry, struct extent extent)
{
    shared_cache_set(&entry->extent,
                     extent.start | (uint64_t)extent.words << 16 | (uint64_t)extent.room << 32);
}

static bool is_empty(const struct bucket_entry *entry)
{
    return shared_cache_get(&entry->extent) == 0;
}

static struct bucket_entry *shared_cache_find_entry(struct bucket *bucket, uint64_t hash)
{
    for (struct bucket_entry *entry = bucket->entries; entry < bucket->entries + ENTRIES; entry++)
        if (shared_cache_get(&entry->hash) == hash && !is_empty(entry))
            return entry;
    return NULL;
}

/* --- writing ------------------------------------------------------------------------------------- */

static bool shared_cache_lock(struct bucket *bucket, int index)
{
    uint64_t seen = atomic_load(&bucket->lock);
    if (seen & OWNER_MASK ||
        !atomic_compare_exchange_strong(&bucket->lock, &seen, seen | (uint64_t)(index + 1)))
        return false;
    atomic_thread_fence(memory_order_release); /* a reader that sees one of our words sees the lock taken */
    return true;
}

static void unlock(struct bucket *bucket)
{
    uint64_t held = shared_cache_get(&bucket->lock);
    atomic_store(&bucket->lock, ((held >> OWNER_BITS) + 1) << OWNER_BITS);
}

void shared_cache_recover(struct shared_cache *shared_cache, int index)
{
    for (struct bucket *bucket = shared_cache->buckets; bucket < shared_cache->buckets + shared_cache->count;
         bucket++) {
        if ((atomic_load(&bucket->lock) & OWNER_MASK) != (uint64_t)(index + 1))
            continue;
        atomic_thread_fence(memory_order_release);
        for (struct bucket_entry *entry = bucket->entries; entry < bucket->entries + ENTRIES; entry++)
            shared_cache_set(&entry->extent, 0);
        shared_cache_set(&bucket->next, 0);
        unlock(bucket);
    }
}

/* A position where `words` fit; evicts what lies there, and the oldest copy if the directory is full. */
static struct bucket_entry *shared_cache_make_room(struct bucket *bucket, uint32_t words,
                                                   struct extent *extent_r)
{
    uint32_t room = words + words / 8; /* to grow in place */
    uint32_t start = (uint32_t)shared_cache_get(&bucket->next);
    if (start + room > ROOM)
        start = 0;
    struct bucket_entry *empty = NULL, *oldest = NULL;
    uint32_t oldest_distance = UINT32_MAX;
    for (struct bucket_entry *entry = bucket->entries; entry < bucket->entries + ENTRIES; entry++) {
        struct extent extent = extent_of(entry);
        if (extent.start < start + room && start < extent.start + extent.room)
            shared_cache_set(&entry->extent, 0);
        if (is_empty(entry)) {
            empty = entry;
            continue;
        }
        uint32_t distance = (extent.start + ROOM - start) % ROOM;
        if (distance < oldest_distance) {
            oldest_distance = distance;
            oldest = entry;
        }
    }
    shared_cache_set(&bucket->next, start + room);
    *extent_r = (struct extent){start, words, room};
    return empty ? empty : oldest;
}

static void write_copy(struct bucket *bucket, struct bucket_entry *entry, uint64_t hash, uint64_t tag,
                       const uint64_t *copy, uint32_t words, uint64_t version)
{
    struct extent extent = entry ? extent_of(entry) : (struct extent){0};
    if (entry && extent.room < words)
        shared_cache_set(&entry->extent, 0);
    if (extent.room < words)
        entry = shared_cache_make_room(bucket, words, &extent);
    extent.words = words;
    for (uint32_t i = 0; i < words; i++)
        shared_cache_set(&bucket->room[extent.start + i], copy[i]);
    shared_cache_set(&entry->hash, hash);
    shared_cache_set(&entry->tag, tag);
    shared_cache_set(&entry->version, version);
    set_extent(entry, extent);
}

/* Whether the stored copy is as good. */
static bool is_needless(const struct bucket_entry *entry, uint64_t tag, uint64_t version)
{
    return entry && (shared_cache_get(&entry->tag) > tag ||
                     (shared_cache_get(&entry->tag) == tag && shared_cache_get(&entry->version) >= version));
}

void shared_cache_put(struct shared_cache *shared_cache, int index, uint64_t hash, int ns, uint64_t tag,
                      const struct document *document)
{
    if (!shared_cache->count || document->block_bytes > SHARED_CACHE_DOCUMENT_BYTES)
        return;
    struct bucket *bucket = shared_cache_bucket_of(shared_cache, hash);
    uint64_t version = (uint64_t)document->header.version;
    if (is_needless(shared_cache_find_entry(bucket, hash), tag, version)) /* a guess: harmless if wrong */
        return;
    uint64_t *copy = shared_cache->packed + 1;
    uint32_t words = (uint32_t)(COPY_HEAD + (document->block_bytes + sizeof *copy - 1) / sizeof *copy);
    copy[words - 1] = 0;
    copy[0] = (uint64_t)ns;
    document_pack(document, copy + COPY_HEAD);
    if (!shared_cache_lock(bucket, index))
        return;
    crash_at(CRASH_SHARED_CACHE_LOCKED);
    struct bucket_entry *entry = shared_cache_find_entry(bucket, hash);
    if (!is_needless(entry, tag, version))
        write_copy(bucket, entry, hash, tag, copy, words, version);
    crash_at(CRASH_SHARED_CACHE_WRITTEN);
    unlock(bucket);
}

/* --- reading ------------------------------------------------------------------------------------- */

enum reading { READING_NONE, READING_TORN, READING_DONE };

/* Copies the entry with this hash and tag to shared_cache->packed. */
static enum reading read_copy(struct shared_cache *shared_cache, struct bucket *bucket, uint64_t hash,
                              uint64_t tag, uint32_t *words_r)
{
    uint64_t before = atomic_load(&bucket->lock);
    if (before & OWNER_MASK)
        return READING_TORN;
    struct extent extent = {0};
    const struct bucket_entry *entry = shared_cache_find_entry(bucket, hash);
    bool is_there = entry && shared_cache_get(&entry->tag) == tag;
    if (is_there) {
        extent = extent_of(entry);
        if (extent.words <= COPY_HEAD || extent.words > COPY_MOST || extent.start + extent.words > ROOM)
            is_there = false;
    }
    for (uint32_t i = 0; is_there && i < extent.words; i++)
        shared_cache->packed[1 + i] = shared_cache_get(&bucket->room[extent.start + i]);
    atomic_thread_fence(memory_order_acquire); /* the words, then the lock again */
    if (atomic_load(&bucket->lock) != before)
        return READING_TORN;
    *words_r = extent.words;
    return is_there ? READING_DONE : READING_NONE;
}

struct document *shared_cache_take(struct shared_cache *shared_cache, uint64_t hash, int ns,
                                   struct bytes class, struct bytes id, uint64_t tag)
{
    enum reading reading = READING_TORN;
    uint32_t words = 0;
    for (int i = 0; shared_cache->count && reading == READING_TORN && i < ATTEMPTS; i++)
        reading = read_copy(shared_cache, shared_cache_bucket_of(shared_cache, hash), hash, tag, &words);
    const uint64_t *copy = shared_cache->packed + 1;
    if (reading != READING_DONE || copy[0] != (uint64_t)ns)
        return NULL;
    struct document *document = document_unpack(copy + COPY_HEAD, (size_t)(words - COPY_HEAD) * sizeof *copy);
    if (!document)
        return NULL;
    if (bytes_equal(document->header.class, class) && bytes_equal(document->header.id, id))
        return document;
    document_release(document); /* another name of the same hash */
    return NULL;
}

size_t shared_cache_size(const struct board_sizes *sizes)
{
    return sizes->shared_cache_bytes;
}

void shared_cache_init(struct segment *segment, void *memory, const struct board_sizes *sizes)
{
    segment->shared_cache = shared_cache_create(memory, sizes->shared_cache_bytes);
}

void shared_cache_recover_index(struct segment *segment, int index)
{
    shared_cache_recover(segment->shared_cache, index);
}
