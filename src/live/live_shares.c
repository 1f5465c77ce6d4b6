/* live_shares: lists by a seeded hash, so that clients cannot provoke collisions. */
#include "live/live_shares.h"

#include <stdlib.h>

#include "base/coding/siphash.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"

enum { BUCKETS = 1024 };

struct live_shares {
    struct siphash_key key;
    size_t clients;
    struct live_share *buckets[BUCKETS];
};

struct live_shares *live_shares_create(void)
{
    struct live_shares *shares = memory_zeroed(1, sizeof *shares, "live");
    crypto_random(&shares->key, sizeof shares->key);
    return shares;
}

void live_shares_destroy(struct live_shares *shares)
{
    assert(!shares->clients);
    free(shares);
}

static size_t live_shares_bucket_of(const struct live_shares *shares, uint64_t client)
{
    uint64_t digest[2];
    siphash(&shares->key, (struct bytes){(const char *)&client, sizeof client}, digest);
    return digest[0] % BUCKETS;
}

static struct live_share *find_live_shares(const struct live_shares *shares, uint64_t client)
{
    struct live_share *share = shares->buckets[live_shares_bucket_of(shares, client)];
    while (share && share->client != client)
        share = share->next;
    return share;
}

const struct live_share *live_shares_find(const struct live_shares *shares, uint64_t client)
{
    return find_live_shares(shares, client);
}

struct live_share *live_shares_join(struct live_shares *shares, uint64_t client)
{
    struct live_share *share = find_live_shares(shares, client);
    if (!share) {
        struct live_share **first = &shares->buckets[live_shares_bucket_of(shares, client)];
        share = memory_zeroed(1, sizeof *share, "live");
        *share = (struct live_share){.client = client, .next = *first};
        *first = share;
        shares->clients++;
    }
    share->count++;
    return share;
}

void live_shares_leave(struct live_shares *shares, struct live_share *share)
{
    assert(share->count);
    if (--share->count)
        return;
    assert(!share->memory);
    struct live_share **link = &shares->buckets[live_shares_bucket_of(shares, share->client)];
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    free(share);
    shares->clients--;
}
