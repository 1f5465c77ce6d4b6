/* live_listener: one connection, from the request to its end, and what is done with all listeners of an
 * audience.
 *
 * A listener waits until the rules of its namespace are known and admit it, then until what has changed since
 * its last id is known; then it is open.  Changes are marks at its definitions, written when the connection
 * accepts output: a slow client gets fewer and larger events. */
#ifndef STAMPD_LIVE_LIVE_LISTENER_H
#define STAMPD_LIVE_LIVE_LISTENER_H

#include "edge/events.h"
#include "edge/exchange.h"
#include "live/live_audience.h"
#include "live/live_question.h"

struct live_listener;
struct live_opening;
struct reply;

/* --- requests --- */
/* Answers a request that does not become a stream. */
void live_listener_answer_at_once(struct exchange *exchange, struct live_opening *opening,
                                  struct reply *reply);
/* Takes ownership of the exchange and the opening; the definitions are in the index from now on.  `client` 0:
 * no share. */
struct live_listener *live_listener_create(struct live_audience *audience, struct exchange *exchange,
                                           struct live_opening *opening, uint64_t client,
                                           bool is_administrator);

/* --- the rules --- */
/* The rules are known: admits the listener, or answers and frees it; ends an open stream that they forbid. */
void live_listener_judge(struct live_listener *listener);
void live_listener_judge_all(struct live_audience *audience);
/* The rules cannot be read: refuses those that wait for them. */
void live_listener_refuse_unjudged(struct live_audience *audience);

/* --- what has changed since the last id --- */
/* Does any wait?  Refuses those in front whose last id is not of this namespace. */
bool live_listener_is_waiting(struct live_audience *audience);
/* Takes the first of them: what has changed for it is being queried. */
struct live_listener *live_listener_take_waiting(struct live_audience *audience);
/* The query has a result: the listener; NULL: it has disconnected. */
struct live_listener *live_listener_take_queried(struct live_audience *audience);
/* The query has failed: refuses this listener; and those that wait. */
void live_listener_refuse_queried(struct live_audience *audience, enum fault fault);
void live_listener_refuse_waiting(struct live_audience *audience, enum fault fault);
const struct live_question *live_listener_question(const struct live_listener *listener);
const struct live_horizon *live_listener_last(const struct live_listener *listener); /* horizon 0: new */
/* Its definition `number` has changed; version 0: unknown. */
void live_listener_match(struct live_listener *listener, size_t number, int64_t version);
/* Begins the answer; `is_reset`: the client's copies may be old. */
void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset);
/* Answers with a fault, or, if the stream is open, sends the reason for its end; frees the listener.  The
 * argument is copied. */
void live_listener_refuse(struct live_listener *listener, enum fault fault, struct bytes argument,
                          const char *detail);

/* --- open streams --- */
/* Writes the changes of all listeners that have any, as far as there is room. */
void live_listener_flush_all(struct live_audience *audience);
/* All changes below the horizon have been sent to all. */
void live_listener_advance_all(struct live_audience *audience, const struct live_horizon *known);
/* What has changed is not known: all clients read everything. */
void live_listener_reset_all(struct live_audience *audience);
/* Sends the keep-alives that are due. */
void live_listener_keep_alive(struct live_audiences *audiences);
/* Ends some streams, those with the oldest keep-alive first; their clients reconnect. */
void live_listener_end_some(struct live_audiences *audiences, size_t count);

#endif
