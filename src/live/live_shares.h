/* live_shares: what each client has of the connections for live events and of their memory.  One client must
 * not take what is there for all. */
#ifndef STAMPD_LIVE_LIVE_SHARES_H
#define STAMPD_LIVE_LIVE_SHARES_H

#include "base/base.h"

struct live_share {
    uint64_t client; /* address_client */
    size_t count, memory;
    struct live_share *next;
};

struct live_shares;

struct live_shares *live_shares_create(void) __attribute__((returns_nonnull));
void live_shares_destroy(struct live_shares *shares); /* when nobody has any more */

/* NULL: it has nothing. */
const struct live_share *live_shares_find(const struct live_shares *shares, uint64_t client);
/* One connection more; its share, until it is left. */
struct live_share *live_shares_join(struct live_shares *shares, uint64_t client)
    __attribute__((returns_nonnull));
void live_shares_leave(struct live_shares *shares, struct live_share *share);

#endif
