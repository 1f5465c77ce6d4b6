/* live_listener: one connection, from the request to its end, and what is done with all listeners of an
 * audience.
 *
 * A listener waits until the access of its namespace is known and admits it, under rules until its account is
 * known, then until what has changed since its last id is known; then it is open.  Changes are marks at its
 * definitions, written when the connection accepts output: a slow client gets fewer and larger events. */
#ifndef STAMPD_LIVE_LIVE_LISTENER_H
#define STAMPD_LIVE_LIVE_LISTENER_H

#include "edge/events.h"
#include "edge/exchange.h"
#include "live/live_audience.h"
#include "live/live_searcher.h"
#include "live/live_searches.h"
#include "live/topics/live_question.h"

struct live_caller;
struct live_listener;
struct live_opening;
struct reply;

/* Who listens. */
struct live_visitor {
    uint64_t client; /* 0: no share */
    bool is_administrator;
    struct live_caller *caller; /* NULL: without a credential */
    struct live_credential credential;
};

/* --- requests --- */
/* Answers a request that does not become a stream. */
void live_listener_answer_at_once(struct exchange *exchange, struct live_opening *opening,
                                  struct reply *reply);
/* Takes ownership of the exchange, the opening and the caller; the definitions are in the index from now on.
 */
struct live_listener *live_listener_create(struct live_audience *audience, struct exchange *exchange,
                                           struct live_opening *opening, const struct live_visitor *visitor);

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
/* Are its events judged by rules? */
bool live_listener_is_ruled(const struct live_listener *listener);
/* No other listener of the audience ever has it. */
uint64_t live_listener_serial(const struct live_listener *listener);
/* It has no id until so many changes have been judged. */
void live_listener_await(struct live_listener *listener, uint64_t judged);
/* Its definition `number` has changed; version 0: unknown. */
void live_listener_match(struct live_listener *listener, size_t number, int64_t version);
/* Begins the answer; `is_reset`: the client's copies may be old. */
void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset);
/* Answers with a fault, or, if the stream is open, sends the reason for its end; frees the listener.  The
 * argument is copied. */
void live_listener_refuse(struct live_listener *listener, enum fault fault, struct bytes argument,
                          const char *detail);

/* The same with FAULT_SKEY; for a listener with a credential. */
void live_listener_refuse_key(struct live_listener *listener, const char *detail);
#define LIVE_KEY_IS_WRONG "The session has ended, or the key is wrong."
/* Answers that there is nobody to serve it now, or ends the open stream without a reason, for the client to
 * reconnect; frees the listener. */
void live_listener_end(struct live_listener *listener);
/* Its share of memory has changed. */
void live_listener_count_memory(struct live_listener *listener);

/* --- open streams --- */
/* Writes what has changed, as far as there is room.  Under rules, nothing is written while its account or the
 * access of the namespace may have changed. */
void live_listener_flush(struct live_listener *listener);
/* Writes the changes of all listeners that have any, as far as there is room. */
void live_listener_flush_all(struct live_audience *audience);
/* The same for all under rules, which had to wait for the rules to be followed. */
void live_listener_flush_ruled(struct live_audience *audience);
/* All changes below the horizon have been sent to all. */
void live_listener_advance_all(struct live_audience *audience, const struct live_horizon *known);
/* What has changed is not known: all clients read everything. */
void live_listener_reset_all(struct live_audience *audience);
/* The same, for clients under rules alone. */
void live_listener_reset_ruled(struct live_audience *audience);
/* Sends the keep-alives that are due. */
void live_listener_keep_alive(struct live_audiences *audiences);
/* Ends some streams, those with the oldest keep-alive first; their clients reconnect. */
void live_listener_end_some(struct live_audiences *audiences, size_t count);

#endif
