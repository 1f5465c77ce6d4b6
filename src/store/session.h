/* session: the only way to a connection with a namespace's database: open(ns) of freshness.md.
 *
 * A session holds the advisory lock of its process (installation, generation, index) for as long as it lives,
 * so who waits for that lock knows that the former session of the index has ended, its commit included.  For
 * workers, recovery processes and readers alike.  The lock needs a session of PostgreSQL of one's own: no
 * transaction pooler in between. */
#ifndef STAMPD_STORE_SESSION_H
#define STAMPD_STORE_SESSION_H

#include "base/fault.h"
#include "base/settings.h"
#include "edge/pg.h"
#include "segment/segment.h"

/* Opens a session on the database of `space` for the process that `stamps` says we are: connects, cleans away
 * sessions of former generations at first use, takes the lock (ends its other holder).
 * Statements are prepared when they are first used.  One attempt, of at most about three times
 * connect_timeout_s; back-off is the caller's. FAULT_XAWAY (also: a former session does not end),
 * FAULT_ODATABASE (missing, or its schema is not the expected one), FAULT_OTWIN (another installation serves
 * the database and hosts = one). */
MUST_USE enum fault session_open(const struct settings *settings, struct segment *segment, int ns,
                                 struct pg **pg_r);

/* recovery process(index): when the entry of our index names a database, opens a session there (again with
 * growing delay; a missing database is enough too), moves and unmarks the slots of our bit.  Returns false
 * when `give_up` became true while waiting. */
MUST_USE bool session_recover(const struct settings *settings, struct segment *segment,
                              bool (*give_up)(void));

/* How long to wait after that many failures in a row (from 1): growing to some seconds, never twice the same.
 */
int64_t session_pause_ms(int failures);

#endif
