/* proof: what a session sees is durable, proven by a small synchronous commit of its own.
 *
 * After a crash of the primary, or after the end of a session that waited for the standby, commits are
 * visible that no standby has, and a failover would lose them.  PostgreSQL acknowledges a synchronous commit
 * when the standby has all of the log before it: so what was visible before the proof has been replicated.
 * Without synchronous replication the proof is one flush of the log. */
#ifndef STAMPD_STORE_PROOF_H
#define STAMPD_STORE_PROOF_H

#include "base/arena.h"
#include "base/fault.h"
#include "edge/pg/pg.h"
#include "segment/lineage.h"

/* A column of a statement that changes something: an administrator may have lowered synchronous_commit, for
 * the commits of the server, but not for this one. */
#define PROOF_SYNCHRONOUS                                                                                    \
    "case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"                    \
    " then set_config('synchronous_commit', 'on', true) end"

/* The first of a connection.  Waits for the standby up to `limit_ms`.  `met_r` may be NULL.  FAULT_XAWAY: not
 * proven, and the connection is unusable. */
MUST_USE enum fault proof_begin(struct pg *pg, struct arena *arena, int64_t limit_ms,
                                struct lineage_met *met_r);
/* A further one: of what has become visible since. */
MUST_USE enum fault proof_run(struct pg *pg, struct arena *arena, int64_t limit_ms);
/* Without a commit: which history the server has, for a connection whose reads prove nothing. */
MUST_USE enum fault proof_look(struct pg *pg, struct arena *arena, struct lineage_met *met_r);

#endif
