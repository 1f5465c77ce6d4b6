/* proof: a message in the log, which nobody reads. */
#include "store/proof.h"

#include "base/log.h"
#include "edge/pg_pipeline.h"

/* A transaction that writes no log is not waited for, hence the message.  An administrator may have lowered
 * synchronous_commit: for the commits of the server, but not for this one. */
static const struct pg_statement prove = {
    "proof",
    "select pg_logical_emit_message(true, 'stampd', ''),"
    " case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
    " then set_config('synchronous_commit', 'on', true) end",
    0};

enum fault proof_run(struct pg *pg, struct arena *arena, int64_t limit_ms)
{
    struct pg_params none;
    struct pg_verdict verdict;
    pg_params_start(&none, arena);
    enum fault fault = pg_pipeline_begin(pg, arena);
    if (fault)
        return fault;
    pg_pipeline_add(pg, &prove, &none);
    pg_pipeline_run(pg, limit_ms, &verdict);
    if (verdict.outcome == PG_COMMITTED)
        return FAULT_NONE;
    if (verdict.fault == FAULT_XTIME)
        log_often(LOG_LEVEL_WARNING, "proof",
                  "postgresql commits nothing in time: does it wait for a standby that is away?");
    return verdict.outcome == PG_UNKNOWN ? FAULT_XAWAY : verdict.fault;
}

enum fault proof_begin(struct pg *pg, struct arena *arena, int64_t limit_ms)
{
    enum fault fault = pg_prepare(pg, &prove, 1);
    return fault ? fault : proof_run(pg, arena, limit_ms);
}
