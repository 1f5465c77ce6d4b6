/* live_follow: whether the database follows the rules of a namespace: records which documents callers lose by
 * their contents (doc/explanation/sight.md).
 *
 * The process declares the places of the rules, as workers do for collections.  Until that was tried, nothing
 * is sent to listeners under rules.  If it cannot be done at the moment, they are served without departures,
 * and it is tried again; once it is done, those that were served in between read everything. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_FOLLOW_H
#define STAMPD_LIVE_ACCESS_LIVE_FOLLOW_H

#include "edge/pg/pg.h"
#include "live/live_audience.h"

struct live_listener;

/* Was it tried with the present rules?  True also where no rule depends on contents. */
bool live_follow_is_settled(const struct live_audience *audience);
/* Documents were loaded while these rules (the version of their item) were followed.  False: not the present
 * ones although they had been, so what was loaded may not be judged. */
MUST_USE bool live_follow_confirm(struct live_audience *audience, int64_t followed);
/* A number for what decides beside documents what the listener can see: its account, its roles and the rules.
 * An id has it, so that it is of use under the same alone.  0: it sees everything. */
int64_t live_follow_sight(struct live_listener *listener);
/* Adds to the query LOOK the rules that must have been followed (0: any), its principals in teams, and the
 * class of each of those; listener NULL: none. */
void live_follow_add_teams(const struct live_listener *listener, struct pg_params *params);
/* The connection is closed: a query under way has no result. */
void live_follow_drop(struct live_audience *audience);

/* Behind these, listeners under rules are to be flushed.  The query of the state, and the declaration: is one
 * due, its parameters, its result. */
bool live_follow_is_due(const struct live_audience *audience);
void live_follow_take(struct live_audience *audience, const struct pg_result *result);
bool live_follow_must_declare(const struct live_audience *audience);
void live_follow_declare(const struct live_audience *audience, struct pg_params *params);
void live_follow_take_declared(struct live_audience *audience);
void live_follow_fail(struct live_audience *audience);

#endif
