/* live_shares: each client's share of the connections for live events and of their memory, so that no client
 * can exhaust them; and the connections of each subject of a quota. */
#ifndef STAMPD_LIVE_LIVE_SHARES_H
#define STAMPD_LIVE_LIVE_SHARES_H

#include "base/base.h"

struct live_share {
    uint64_t client; /* address_client, or a key of operation/quota.h */
    size_t count, memory;
    size_t searches; /* that its connections follow */
    struct live_share *next;
};

struct live_shares;

struct live_shares *live_shares_create(void) __attribute__((returns_nonnull));
void live_shares_destroy(struct live_shares *shares); /* when no shares are left */

/* The client's share; NULL: it has no connection. */
const struct live_share *live_shares_find(const struct live_shares *shares, uint64_t client);
/* Adds a connection; the share is valid until live_shares_leave. */
struct live_share *live_shares_join(struct live_shares *shares, uint64_t client)
    __attribute__((returns_nonnull));
void live_shares_leave(struct live_shares *shares, struct live_share *share);

#endif
