/* live_round: a round advances the horizon of listeners, whose changes came from the change feed and
 * notifications, not from queries.
 *
 * The horizon of a snapshot may be adopted once all changes committed before it have been sent.  The
 * conditions: the echo of the round's own notification has come back, which follows those of all earlier
 * commits (PostgreSQL keeps their order); each entry of the segment was once without a commit in flight,
 * since workers publish before a commit ends; the pipe was empty after that; and the database was queried
 * about all news received by then, and all that was held by then was judged.  Sessions of a former generation
 * of the segment publish nothing: while there may be any, or were in the round before, everything is queried
 * instead. */
#ifndef STAMPD_LIVE_LIVE_ROUND_H
#define STAMPD_LIVE_LIVE_ROUND_H

#include "live/live_catch_up.h"
#include "live/live_news.h"

struct live_round;

/* What a round connects; all of it is borrowed. */
struct live_round_parts {
    struct segment *segment;
    struct live_audience *audience;
    struct live_news *news;
    struct live_ruled *ruled;
    struct live_catch_up *catch_up;
    uint64_t nonce;               /* of this process */
    void (*drain)(void *context); /* handles all events of the change feed */
    void *context;
};

struct live_round *live_round_create(const struct live_round_parts *parts) __attribute__((returns_nonnull));
void live_round_destroy(struct live_round *round);

/* No listener is open: what is committed before has no importance. */
void live_round_begin(struct live_round *round);
/* There is a change since the last round: the next one is due soon. */
void live_round_wake(struct live_round *round);
/* The present round ends without a result. */
void live_round_rest(struct live_round *round);

/* The query: is one due, its parameters, the horizon of its result (NULL: it has none). */
bool live_round_is_due(const struct live_round *round, const struct settings *settings);
void live_round_query(struct live_round *round, struct pg_params *params);
void live_round_take(struct live_round *round, const struct live_horizon *known, int64_t next);

/* Handles the echo of a round.  True: it waits for workers now, and live_round_go_on is to be called soon. */
bool live_round_receive(struct live_round *round, struct bytes payload);
/* Continues as far as possible; true: call it again in some milliseconds. */
bool live_round_go_on(struct live_round *round);
/* A query of news, or a judgement, has ended: continues a round that waits for it. */
void live_round_finish(struct live_round *round);
/* Has the echo not come for so long that notifications must be considered broken? */
bool live_round_is_late(const struct live_round *round, int64_t now_ms);

#endif
