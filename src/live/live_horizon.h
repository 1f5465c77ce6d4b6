/* live_horizon: the transactions whose changes a client has received: all below a number, in one incarnation
 * of the database.  The id of an event is a horizon that is encrypted and authenticated with the namespace's
 * secret. */
#ifndef STAMPD_LIVE_LIVE_HORIZON_H
#define STAMPD_LIVE_LIVE_HORIZON_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/pg/pg.h"

struct live_horizon {
    int64_t life;    /* of the database */
    int64_t horizon; /* 0: unknown */
    int64_t floor;   /* zombies below it were purged */
    int64_t sight;   /* in ids: what the client could see, beside documents; 0: everything */
};

/* Reads the horizon of a result of LOOK or ROUND, and the first transaction number not assigned yet. */
MUST_USE bool live_horizon_read(const struct pg_result *result, struct live_horizon *known_r,
                                int64_t *next_r);
/* Does the result of LOOK show that what a caller sees has changed since then by the documents of its
 * definitions alone? */
MUST_USE bool live_horizon_is_sight_known(const struct pg_result *result);
/* Are all changes since then still recorded? */
MUST_USE bool live_horizon_is_within_reach(const struct live_horizon *since, const struct live_horizon *known,
                                           int64_t next);

/* Writes and reads an event id; `ns` is the code of the namespace, `secret` the key that signs its ids. */
struct bytes live_horizon_write_id(struct arena *arena, struct bytes secret, struct bytes ns,
                                   const struct live_horizon *known);
MUST_USE bool live_horizon_read_id(struct arena *arena, struct bytes secret, struct bytes ns, struct bytes id,
                                   struct live_horizon *known_r);

#endif
