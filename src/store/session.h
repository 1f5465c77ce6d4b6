/* session: the only way to connect to a namespace's database: open(ns) of freshness.md.
 *
 * A session holds the advisory lock of its process (installation, generation, index) while it lives: once
 * another session obtains that lock, the former session of the index has ended, its commit included.  This
 * holds for workers, recovery processes and readers alike.  The lock needs a PostgreSQL session of its own:
 * no transaction pooler in between. */
#ifndef STAMPD_STORE_SESSION_H
#define STAMPD_STORE_SESSION_H

#include "base/arena.h"
#include "base/fault.h"
#include "base/settings.h"
#include "edge/pg/pg.h"
#include "segment/lineage.h"
#include "segment/segment.h"

/* Opens a session on the database of `ns` for the process of the handle `segment`: connects, ends sessions
 * of former generations at first use, takes the lock (ends any other holder, unless it waits for a standby),
 * and proves what is visible (proof.h).  Statements are prepared on first use.  One attempt, of at most about
 * three times connect_timeout_s; backoff is up to the caller. FAULT_XAWAY (also: a former session does not
 * end), FAULT_ODATABASE (missing, or its schema is not the expected one, or it has lost commits), FAULT_OTWIN
 * (another installation serves the database and hosts = one). */
MUST_USE enum fault session_open(const struct settings *settings, struct segment *segment, int ns,
                                 struct pg **pg_r, uint32_t *timeline_r);
/* Opens a session on a standby, for reads with an age alone: no lock, and nothing is proven
 * (session_standing). FAULT_XAWAY, FAULT_ODATABASE. */
MUST_USE enum fault session_open_replica(const struct settings *settings, struct segment *segment, int ns,
                                         struct pg **pg_r);
/* What the standby shows is not older than this moment of clock_boot_ms; 0: nothing is known.  It holds for
 * all later reads of the session. */
MUST_USE enum fault session_standing(struct segment *segment, int ns, struct pg *pg, struct arena *arena,
                                     int64_t *as_of_ms_r);
/* Compares what a connection has met with what this host knows; logs.  FAULT_XAWAY: a former primary. */
MUST_USE enum fault session_meet(struct segment *segment, int ns, const struct lineage_met *met);

/* The recovery process of an index: if the entry of our index names a database, opens a session there
 * (retried with growing delay; a missing database will do too), moves the stamps of the slots with our bit
 * and clears it.  Returns false if `give_up` became true while waiting. */
MUST_USE bool session_recover(const struct settings *settings, struct segment *segment,
                              bool (*give_up)(void));

/* Backoff after that many consecutive failures (from 1): grows to some seconds, with jitter. */
int64_t session_pause_ms(int failures);

#endif
