/* cluster_share: a hash table of shares; those of callers name their rule, those of rules their namespace. */
#include "cluster/cluster_share.h"

#include <stdlib.h>

#include "base/coding/hash.h"
#include "base/memory.h"

enum { BUCKETS_FIRST = 16, DEPTH = 3 };

struct cluster_share {
    struct cluster_share *next; /* in its bucket */
    struct cluster_share *parent;
    uint64_t digest, path; /* of the payer; of all digests down to this one */
    uint64_t users;        /* records and shares that belong to it */
    uint64_t bytes, records;
    uint64_t paid; /* of a namespace: of these bytes, those of callers */
};

struct cluster_shares {
    struct cluster_share **buckets;
    uint64_t bucket_count; /* a power of two */
    uint64_t count;
};

struct cluster_shares *cluster_share_create(void)
{
    struct cluster_shares *shares = memory_zeroed(1, sizeof *shares, "shares of the cluster");
    shares->bucket_count = BUCKETS_FIRST;
    shares->buckets = memory_zeroed(BUCKETS_FIRST, sizeof(void *), "shares of the cluster");
    return shares;
}

void cluster_share_destroy(struct cluster_shares *shares)
{
    for (uint64_t at = 0; at < shares->bucket_count; at++)
        for (struct cluster_share *share = shares->buckets[at], *next; share; share = next) {
            next = share->next;
            free(share);
        }
    free(shares->buckets);
    free(shares);
}

size_t cluster_share_memory(const struct cluster_shares *shares)
{
    return shares->count * sizeof(struct cluster_share);
}

/* Digests of the payer down to each share, the namespace first; returns how many there are. */
static unsigned cluster_share_paths(const struct cluster_payer *payer, uint64_t digests_r[DEPTH],
                                    uint64_t paths_r[DEPTH])
{
    const uint64_t digests[DEPTH] = {payer->space, payer->rule, payer->caller};
    unsigned depth = !payer->rule ? 1 : !payer->caller ? 2 : DEPTH;
    uint64_t path = 0;
    for (unsigned at = 0; at < depth; at++) {
        digests_r[at] = digests[at];
        paths_r[at] = path = hash_mix(path + hash_mix(digests[at]) + at);
    }
    return depth;
}

static struct cluster_share **cluster_share_bucket(const struct cluster_shares *shares, uint64_t path)
{
    return &shares->buckets[path & (shares->bucket_count - 1)];
}

/* NULL: there is none. */
static struct cluster_share *cluster_share_find(const struct cluster_shares *shares, uint64_t path)
{
    struct cluster_share *share = *cluster_share_bucket(shares, path);
    while (share && share->path != path)
        share = share->next;
    return share;
}

static void cluster_share_grow(struct cluster_shares *shares)
{
    struct cluster_share **former = shares->buckets;
    uint64_t count = shares->bucket_count;
    shares->bucket_count *= 2;
    shares->buckets = memory_zeroed(shares->bucket_count, sizeof(void *), "shares of the cluster");
    for (uint64_t at = 0; at < count; at++)
        for (struct cluster_share *share = former[at], *next; share; share = next) {
            struct cluster_share **bucket = cluster_share_bucket(shares, share->path);
            next = share->next;
            share->next = *bucket;
            *bucket = share;
        }
    free(former);
}

void cluster_share_charge(struct cluster_share *share, int64_t bytes, int records)
{
    for (struct cluster_share *one = share; one; one = one->parent) {
        one->bytes += (uint64_t)bytes;
        one->records += (uint64_t)(int64_t)records;
        if (!one->parent && one != share)
            one->paid += (uint64_t)bytes;
    }
}

static struct cluster_share *cluster_share_make(struct cluster_shares *shares, struct cluster_share *parent,
                                                uint64_t digest, uint64_t path)
{
    struct cluster_share *share = memory_zeroed(1, sizeof *share, "share of the cluster");
    if (shares->count++ >= shares->bucket_count)
        cluster_share_grow(shares);
    struct cluster_share **bucket = cluster_share_bucket(shares, path);
    *share = (struct cluster_share){.next = *bucket, .parent = parent, .digest = digest, .path = path};
    *bucket = share;
    if (parent)
        parent->users++;
    cluster_share_charge(share, sizeof *share, 0);
    return share;
}

struct cluster_share *cluster_share_join(struct cluster_shares *shares, const struct cluster_payer *payer)
{
    uint64_t digests[DEPTH], paths[DEPTH];
    unsigned depth = cluster_share_paths(payer, digests, paths);
    struct cluster_share *parent = NULL;
    for (unsigned at = 0; at < depth; at++) {
        struct cluster_share *share = cluster_share_find(shares, paths[at]);
        parent = share ? share : cluster_share_make(shares, parent, digests[at], paths[at]);
    }
    parent->users++;
    return parent;
}

void cluster_share_leave(struct cluster_shares *shares, struct cluster_share *share)
{
    while (share && --share->users == 0) {
        struct cluster_share *parent = share->parent, **link = cluster_share_bucket(shares, share->path);
        cluster_share_charge(share, -(int64_t)sizeof *share, 0);
        assert(share->bytes == 0 && share->records == 0);
        while (*link != share)
            link = &(*link)->next;
        *link = share->next;
        shares->count--;
        free(share);
        share = parent;
    }
}

void cluster_share_read(const struct cluster_share *share, struct cluster_payer *payer_r)
{
    *payer_r = (struct cluster_payer){0};
    if (!share)
        return;
    const struct cluster_share *rule = share->parent && share->parent->parent ? share->parent : share;
    if (rule->parent)
        payer_r->rule = rule->digest;
    if (rule != share)
        payer_r->caller = share->digest;
    while (share->parent)
        share = share->parent;
    payer_r->space = share->digest;
}

static bool cluster_share_has(const struct cluster_share *present, const struct cluster_share *share)
{
    while (present && present != share)
        present = present->parent;
    return present != NULL;
}

static bool is_over(uint64_t has, uint64_t more, uint64_t limit)
{
    return limit && (has > limit || more > limit - has);
}

enum cluster_share_verdict cluster_share_judge(const struct cluster_shares *shares,
                                               const struct cluster_payer *payer,
                                               const struct cluster_limits *limits,
                                               const struct cluster_share *present, size_t before,
                                               size_t after)
{
    const uint64_t bytes_most[DEPTH] = {limits->space_bytes, limits->rule_bytes, limits->caller_bytes};
    const uint64_t records_most[DEPTH] = {limits->space_records, limits->rule_records,
                                          limits->caller_records};
    uint64_t digests[DEPTH], paths[DEPTH];
    unsigned depth = cluster_share_paths(payer, digests, paths);
    for (unsigned at = 0; at < depth; at++) {
        const struct cluster_share *share = cluster_share_find(shares, paths[at]);
        bool is_in = share && cluster_share_has(present, share);
        size_t own = is_in ? before : 0, more = after > own ? after - own : 0;
        uint64_t bytes = share ? share->bytes : 0, records = share ? share->records : 0;
        bool was_paid = is_in && present->parent;
        size_t of_payers = was_paid ? more : after;
        bool is_full = (more && is_over(bytes, more, bytes_most[at])) ||
                       (!is_in && is_over(records, 1, records_most[at]));
        if (is_full)
            return at == 0 ? CLUSTER_SHARE_OF_SPACE : CLUSTER_SHARE_OF_CALLER;
        if (at == 0 && depth > 1 && of_payers &&
            is_over(share ? share->paid : 0, of_payers, limits->payers_bytes))
            return CLUSTER_SHARE_OF_CALLER;
    }
    return CLUSTER_SHARE_FREE;
}
