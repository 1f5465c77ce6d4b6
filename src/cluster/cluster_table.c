/* cluster_table: a hash table of entries; a list of each kind, newest first; a heap of their ends. */
#include "cluster/cluster_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { BUCKETS_FIRST = 64 };

struct list {
    struct cluster_entry *newest, *oldest;
    uint64_t count;
    size_t bytes;
};

struct cluster_table {
    struct cluster_bounds bounds;
    struct list lists[CLUSTER_KINDS];
    struct cluster_shares *shares;
    struct cluster_entry **buckets;
    uint64_t bucket_count; /* a power of two */
    struct heap ends;      /* the earliest first */
};

int cluster_table_compare(const struct cluster_stamp *a, const struct cluster_stamp *b)
{
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->origin > b->origin) - (a->origin < b->origin);
}

static bool ends_before(const struct heap_link *a, const struct heap_link *b)
{
    return ((const struct cluster_entry *)a)->end_ms < ((const struct cluster_entry *)b)->end_ms;
}

struct cluster_table *cluster_table_create(const struct cluster_bounds *bounds)
{
    struct cluster_table *table = memory_zeroed(1, sizeof *table, "table of the cluster");
    table->bounds = *bounds;
    table->shares = cluster_share_create();
    table->ends.is_before = ends_before;
    table->bucket_count = BUCKETS_FIRST;
    table->buckets = memory_zeroed(BUCKETS_FIRST, sizeof(void *), "table of the cluster");
    return table;
}

void cluster_table_destroy(struct cluster_table *table)
{
    if (!table)
        return;
    for (size_t at = 0; at < table->ends.count; at++) {
        struct cluster_entry *entry = (struct cluster_entry *)table->ends.elements[at];
        free(entry->content);
        free(entry);
    }
    heap_free(&table->ends);
    cluster_share_destroy(table->shares);
    free(table->buckets);
    free(table);
}

void cluster_table_set_end(struct cluster_table *table, struct cluster_entry *entry, int64_t end_ms)
{
    if (entry->link.place)
        heap_remove(&table->ends, &entry->link);
    entry->end_ms = end_ms;
    heap_add(&table->ends, &entry->link);
}

/* The lists. */

static size_t size_of(size_t key_size, size_t content_size)
{
    return sizeof(struct cluster_entry) + key_size + content_size;
}

static bool is_of_records(const struct cluster_entry *entry)
{
    return entry->kind == CLUSTER_RECORD || entry->kind == CLUSTER_REMOVED;
}

static void list_add(struct cluster_table *table, struct cluster_entry *entry)
{
    struct list *list = &table->lists[entry->kind];
    entry->newer = NULL;
    entry->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = entry;
    list->newest = entry;
    list->count++;
    list->bytes += size_of(entry->key_size, entry->content_size);
    if (is_of_records(entry))
        cluster_share_charge(entry->share, (int64_t)size_of(entry->key_size, entry->content_size), 1);
}

static void list_remove(struct cluster_table *table, struct cluster_entry *entry)
{
    struct list *list = &table->lists[entry->kind];
    *(entry->newer ? &entry->newer->older : &list->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &list->oldest) = entry->newer;
    list->count--;
    list->bytes -= size_of(entry->key_size, entry->content_size);
    if (is_of_records(entry))
        cluster_share_charge(entry->share, -(int64_t)size_of(entry->key_size, entry->content_size), -1);
}

/* The table. */

static struct cluster_entry **bucket_of(const struct cluster_table *table, uint64_t digest)
{
    return &table->buckets[digest & (table->bucket_count - 1)];
}

static void cluster_table_grow(struct cluster_table *table)
{
    struct cluster_entry **buckets =
        memory_zeroed(2 * table->bucket_count, sizeof(void *), "table of the cluster");
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count *= 2;
    for (size_t at = 0; at < table->ends.count; at++) {
        struct cluster_entry *entry = (struct cluster_entry *)table->ends.elements[at];
        struct cluster_entry **bucket = bucket_of(table, entry->digest);
        entry->next = *bucket;
        *bucket = entry;
    }
}

static struct cluster_entry *look_up(const struct cluster_table *table, unsigned level, struct bytes key,
                                     uint64_t digest)
{
    struct cluster_entry *entry = *bucket_of(table, digest);
    while (entry &&
           (entry->digest != digest || entry->level != level || !bytes_equal(cluster_table_key(entry), key)))
        entry = entry->next;
    return entry;
}

void cluster_table_remove(struct cluster_table *table, struct cluster_entry *entry)
{
    struct cluster_entry **link = bucket_of(table, entry->digest);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    list_remove(table, entry);
    heap_remove(&table->ends, &entry->link);
    cluster_share_leave(table->shares, entry->share);
    free(entry->content);
    free(entry);
}

void cluster_table_pay(struct cluster_table *table, struct cluster_entry *entry,
                       const struct cluster_payer *payer)
{
    struct cluster_share *share = cluster_share_join(table->shares, payer), *former = entry->share;
    assert(is_of_records(entry));
    if (share != former) {
        list_remove(table, entry);
        entry->share = share;
        list_add(table, entry);
    }
    cluster_share_leave(table->shares, former);
}

static struct cluster_entry *add(struct cluster_table *table, unsigned level, struct bytes key,
                                 uint64_t digest)
{
    if (table->ends.count >= table->bucket_count)
        cluster_table_grow(table);
    struct cluster_entry *entry = memory_zeroed(1, sizeof *entry + key.size, "key of the cluster");
    entry->digest = digest;
    entry->level = (uint8_t)level;
    entry->key_size = (uint16_t)key.size;
    memcpy(entry->key, key.data, key.size);
    struct cluster_entry **bucket = bucket_of(table, digest);
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

/* Links the entry, which is in no list, as one of this kind with this content. */
static void settle(struct cluster_table *table, struct cluster_entry *entry, enum cluster_kind kind,
                   struct bytes content, int64_t end_ms)
{
    char *copy = content.size ? memory_grown(NULL, content.size, 1, "content of the cluster") : NULL;
    if (copy)
        memcpy(copy, content.data, content.size);
    free(entry->content);
    entry->content = copy;
    entry->content_size = (uint32_t)content.size;
    entry->kind = (uint8_t)kind;
    entry->wait_ms = entry->past_ms = 0;
    entry->is_full = entry->is_kept = entry->is_owed = entry->is_short = false;
    entry->server = 0;
    if (!is_of_records(entry)) {
        cluster_share_leave(table->shares, entry->share);
        entry->share = NULL;
    }
    list_add(table, entry);
    cluster_table_set_end(table, entry, end_ms);
}

/* The record becomes a removal, which needs no more memory. */
static void become_past(struct cluster_table *table, struct cluster_entry *entry)
{
    bool is_kept = entry->is_kept, is_owed = entry->is_owed, is_short = entry->is_short;
    uint32_t server = entry->server;
    list_remove(table, entry);
    settle(table, entry, CLUSTER_REMOVED, NO_BYTES, entry->past_ms);
    entry->is_kept = is_kept;
    entry->is_owed = is_owed;
    entry->is_short = is_short;
    entry->server = server;
}

void cluster_table_expire(struct cluster_table *table, int64_t now_ms)
{
    for (struct cluster_entry *first; (first = (struct cluster_entry *)heap_first(&table->ends)) != NULL;) {
        if (first->end_ms > now_ms)
            return;
        if (first->kind == CLUSTER_RECORD && first->past_ms > now_ms && first->wait_ms == 0)
            become_past(table, first);
        else
            cluster_table_remove(table, first);
    }
}

struct cluster_entry *cluster_table_find(struct cluster_table *table, unsigned level, struct bytes key,
                                         uint64_t digest, int64_t now_ms)
{
    cluster_table_expire(table, now_ms);
    return look_up(table, level, key, digest);
}

static size_t bytes_of_records(const struct cluster_table *table)
{
    return table->lists[CLUSTER_RECORD].bytes + table->lists[CLUSTER_REMOVED].bytes +
           cluster_share_memory(table->shares);
}

/* What the entry takes from the memory of records. */
static size_t own_bytes(const struct cluster_entry *entry)
{
    return entry && is_of_records(entry) ? size_of(entry->key_size, entry->content_size) : 0;
}

enum cluster_share_verdict cluster_table_judge(const struct cluster_table *table,
                                               const struct cluster_entry *entry,
                                               const struct cluster_payer *payer,
                                               const struct cluster_limits *limits, size_t key_size,
                                               size_t content_size)
{
    return cluster_share_judge(table->shares, payer, limits, entry ? entry->share : NULL, own_bytes(entry),
                               size_of(key_size, content_size));
}

bool cluster_table_has_room(const struct cluster_table *table, size_t key_size, size_t content_size)
{
    return bytes_of_records(table) + size_of(key_size, content_size) <= table->bounds.record_bytes;
}

struct cluster_entry *cluster_table_store(struct cluster_table *table, unsigned level, struct bytes key,
                                          uint64_t digest, struct bytes content, int64_t end_ms)
{
    struct cluster_entry *entry = look_up(table, level, key, digest);
    size_t own = own_bytes(entry);
    size_t size = size_of(key.size, content.size);
    /* A content that is no longer than the former one always fits, in a table that is too full, too. */
    if (size > own && bytes_of_records(table) - own + size > table->bounds.record_bytes)
        return NULL;
    if (entry)
        list_remove(table, entry);
    else
        entry = add(table, level, key, digest);
    settle(table, entry, CLUSTER_RECORD, content, end_ms);
    return entry;
}

static bool list_is_full(const struct cluster_table *table, enum cluster_kind kind, size_t size)
{
    const struct list *list = &table->lists[kind];
    return list->count >= table->bounds.keys / 2 || list->bytes + size > table->bounds.key_bytes / 2;
}

static void forget_oldest(struct cluster_table *table, size_t size)
{
    struct cluster_entry *entry = table->lists[CLUSTER_ABSENT].oldest;
    while (entry && list_is_full(table, CLUSTER_ABSENT, size)) {
        struct cluster_entry *newer = entry->newer;
        if (entry->round == 0)
            cluster_table_remove(table, entry);
        entry = newer;
    }
}

struct cluster_entry *cluster_table_note(struct cluster_table *table, enum cluster_kind kind, unsigned level,
                                         struct bytes key, uint64_t digest, int64_t end_ms)
{
    assert(kind != CLUSTER_RECORD);
    struct cluster_entry *entry = look_up(table, level, key, digest);
    size_t size = size_of(key.size, 0), own = own_bytes(entry);
    bool is_full = kind == CLUSTER_REMOVED
                       ? bytes_of_records(table) - own + size > table->bounds.record_bytes && size > own
                       : kind == CLUSTER_DOUBTFUL && list_is_full(table, kind, size);
    if (is_full)
        return NULL;
    if (entry)
        list_remove(table, entry);
    if (kind == CLUSTER_ABSENT)
        forget_oldest(table, size);
    if (!entry)
        entry = add(table, level, key, digest);
    settle(table, entry, kind, NO_BYTES, end_ms);
    return entry;
}

int64_t cluster_table_clear(struct cluster_table *table, enum cluster_kind kind)
{
    int64_t latest = 0;
    struct cluster_entry *entry = table->lists[kind].oldest;
    while (entry) {
        struct cluster_entry *newer = entry->newer;
        if (entry->round == 0) {
            if (entry->end_ms > latest)
                latest = entry->end_ms;
            cluster_table_remove(table, entry);
        }
        entry = newer;
    }
    return latest;
}

uint64_t cluster_table_count(const struct cluster_table *table, enum cluster_kind kind)
{
    return table->lists[kind].count;
}

size_t cluster_table_bytes(const struct cluster_table *table, enum cluster_kind kind)
{
    return table->lists[kind].bytes;
}

bool cluster_table_walk(const struct cluster_table *table, uint64_t *bucket, struct cluster_entry **first_r)
{
    if (*bucket >= table->bucket_count)
        return false;
    *first_r = table->buckets[(*bucket)++];
    return true;
}
