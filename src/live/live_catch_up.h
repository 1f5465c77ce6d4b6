/* live_catch_up: finds which definitions have changed since a horizon: for a listener that begins or resumes,
 * and for all listeners after a loss, which is called a gap.
 *
 * A horizon is defined as for collections (collections.md): all transactions below it had ended in the
 * snapshot that returned it.  The column xmin of a document holds the transaction that wrote it last; for a
 * member of a collection, xid does.  So a client that has everything below a horizon misses only the changes
 * that these two name, and changes to a collection as a whole, which the xmin of its own row shows. */
#ifndef STAMPD_LIVE_LIVE_CATCH_UP_H
#define STAMPD_LIVE_LIVE_CATCH_UP_H

#include "live/live_audience.h"
#include "live/access/live_ruled.h"
#include "segment/feed.h"
#include "segment/segment.h"

struct live_catch_up;

/* Called when a gap is noted; may be NULL. */
typedef void live_gap_noted(void *context);

/* All are borrowed; `database` is for the log. */
struct live_catch_up *live_catch_up_create(struct segment *segment, struct subscriber *subscriber,
                                           struct live_audience *audience, struct live_ruled *ruled,
                                           const char *database, live_gap_noted *noted, void *context)
    __attribute__((returns_nonnull));
void live_catch_up_destroy(struct live_catch_up *catch_up);

/* --- losses --- */
/* Changes may have been missed: the database will be queried. */
void live_catch_up_note_gap(struct live_catch_up *catch_up);
bool live_catch_up_has_gap(const struct live_catch_up *catch_up); /* noted, or being queried */
/* Has the change feed lost events that no query covers yet? */
bool live_catch_up_has_losses(const struct live_catch_up *catch_up);
/* If so, notes a gap. */
void live_catch_up_check_losses(struct live_catch_up *catch_up);
/* All losses so far are of no importance: no listener is open. */
void live_catch_up_forgive(struct live_catch_up *catch_up);
/* The notifications of the database arrive from now on; earlier ones were not received.  All slot stamps are
 * advanced, so a client that gets an event or reads everything from now on never gets an old value. */
void live_catch_up_begin(struct live_catch_up *catch_up);

/* --- the query of a gap --- */
bool live_catch_up_is_due(struct live_catch_up *catch_up);
/* Returns true if the gap begins with this query. */
bool live_catch_up_query(struct live_catch_up *catch_up, struct pg_params *params);
void live_catch_up_take(struct live_catch_up *catch_up, const struct pg_result *result);
/* Sends resets: clients read everything, so earlier losses no longer matter; a round sets a new horizon. */
void live_catch_up_fail(struct live_catch_up *catch_up, enum fault fault);
/* A query in progress is lost. */
void live_catch_up_drop(struct live_catch_up *catch_up);

/* --- the query of a listener that begins or resumes: the first that waits --- */
void live_catch_up_query_listener(struct live_catch_up *catch_up, struct pg_params *params);
/* True: it is open now; false: it was refused, or has disconnected. */
bool live_catch_up_take_listener(struct live_catch_up *catch_up, const struct pg_result *result);

#endif
