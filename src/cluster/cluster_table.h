/* cluster_table: what a host knows of keys, in memory with bounds.
 *
 * A key has one entry at most, of one of four kinds: its record is here; its record was removed, which is
 * remembered for as long as any host may have a copy; its record may be at a host that is farther away
 * ("doubtful"); it was looked for, and there was none ("absent").  So no key is ever in two of the lists.
 * Each entry has an end, after which nobody sees it. */
#ifndef STAMPD_CLUSTER_CLUSTER_TABLE_H
#define STAMPD_CLUSTER_CLUSTER_TABLE_H

#include "base/bytes.h"
#include "base/heap.h"
#include "cluster/cluster_share.h"

enum cluster_kind { CLUSTER_RECORD, CLUSTER_REMOVED, CLUSTER_DOUBTFUL, CLUSTER_ABSENT, CLUSTER_KINDS };

/* Which of two changes of a key is the later one: that of the greater map; then the greater number, which
 * grows with each change of the key; then that of the greater host. */
struct cluster_stamp {
    uint64_t version, number;
    uint32_t origin;
};

int cluster_table_compare(const struct cluster_stamp *a, const struct cluster_stamp *b);

struct cluster_entry {
    struct heap_link link;               /* in the heap of ends */
    struct cluster_entry *next;          /* in its bucket */
    struct cluster_entry *newer, *older; /* of its kind */
    struct cluster_stamp stamp;          /* of a record or a removal; else without meaning */
    uint64_t digest;
    int64_t end_ms;
    int64_t wait_ms; /* of a record: others have it, and this host drops it then; without one: an
                      * insertion waits until then; 0: neither */
    int64_t
        past_ms; /* of a record: copies of earlier changes may live until then, see cluster_table_expire */
    struct cluster_share *share; /* of a record or a removal: whom it counts for; NULL: nobody */
    uint32_t server;             /* of a record: the nearer host that serves it; 0: this one */
    uint32_t round;              /* the copies that are under way, see cluster.c; 0: none */
    uint32_t content_size;
    uint16_t key_size;
    uint16_t reach; /* of the hosts in the key's order, so many were sent a copy or had no room */
    uint8_t level, kind;
    bool is_owed;  /* a copy of the last change may be missing at a host */
    bool is_short; /* fewer hosts have it than shall, since all others had no room */
    bool is_kept;  /* others may have a later change: served only when all have passed on what they have */
    bool is_full;  /* of a doubtful key: this host had no room for it */
    char *content;
    char key[];
};

struct cluster_bounds {
    size_t
        record_bytes; /* entries, keys and contents of records; removals, which need no more than they end */
    uint32_t keys;    /* without records: half of them doubtful, half absent */
    size_t key_bytes; /* the same in bytes, entries included */
};

struct cluster_table;

struct cluster_table *cluster_table_create(const struct cluster_bounds *bounds) MUST_USE;
void cluster_table_destroy(struct cluster_table *table);

/* The entry of the key; NULL: there is none.  Entries whose end has come are gone before. */
struct cluster_entry *cluster_table_find(struct cluster_table *table, unsigned level, struct bytes key,
                                         uint64_t digest, int64_t now_ms);
/* Makes the entry of the key a record with this content, whatever it was, and keeps its round; NULL: there is
 * no room, and nothing has changed.  A pointer to the former entry stays valid if there was one. */
struct cluster_entry *cluster_table_store(struct cluster_table *table, unsigned level, struct bytes key,
                                          uint64_t digest, struct bytes content, int64_t end_ms) MUST_USE;
/* Makes the entry of the key one without a record.  If the list is full, of absent keys those named longest
 * ago are forgotten; of the others none may be: NULL, and nothing has changed. */
struct cluster_entry *cluster_table_note(struct cluster_table *table, enum cluster_kind kind, unsigned level,
                                         struct bytes key, uint64_t digest, int64_t end_ms);
/* Whom the record, or the removal, counts for from now on. */
void cluster_table_pay(struct cluster_table *table, struct cluster_entry *entry,
                       const struct cluster_payer *payer);
/* May the entry (NULL: there is none) become a record of this size that counts for the payer? */
enum cluster_share_verdict cluster_table_judge(const struct cluster_table *table,
                                               const struct cluster_entry *entry,
                                               const struct cluster_payer *payer,
                                               const struct cluster_limits *limits, size_t key_size,
                                               size_t content_size);
void cluster_table_set_end(struct cluster_table *table, struct cluster_entry *entry, int64_t end_ms);
void cluster_table_remove(struct cluster_table *table, struct cluster_entry *entry);
/* Forgets all entries of this kind without a round; returns the latest end among them, 0: there were none. */
int64_t cluster_table_clear(struct cluster_table *table, enum cluster_kind kind);
/* Removes what has ended.  A record that ends before copies of earlier changes of its key do is remembered as
 * a removal for as long, with its stamp: else such a copy, at a host that was not told of the change, would
 * look like the record of this key.  A copy that others have is not. */
void cluster_table_expire(struct cluster_table *table, int64_t now_ms);

uint64_t cluster_table_count(const struct cluster_table *table, enum cluster_kind kind);
size_t cluster_table_bytes(const struct cluster_table *table, enum cluster_kind kind);
/* Would a record of this size find room? */
bool cluster_table_has_room(const struct cluster_table *table, size_t key_size, size_t content_size);

/* A walk over all entries that survives changes: the entries of one bucket after the other.  `bucket` begins
 * with 0; returns the first entry of the bucket (more by `next`), and advances it; false at the end. */
bool cluster_table_walk(const struct cluster_table *table, uint64_t *bucket, struct cluster_entry **first_r);

static inline struct bytes cluster_table_key(const struct cluster_entry *entry)
{
    return (struct bytes){entry->key, entry->key_size};
}

static inline struct bytes cluster_table_content(const struct cluster_entry *entry)
{
    return (struct bytes){entry->content ? entry->content : "", entry->content_size};
}

#endif
