/* proof: a message in the log, which nobody reads. */
#include "store/proof.h"

#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/pg/pg_pipeline.h"

/* The log was replayed to where the timeline of a server begins that was a standby and has taken over.  No
 * operators: each that a session uses costs it memory for a part of the catalogs. */
#define HISTORY                                                                                              \
    "(select system_identifier from pg_catalog.pg_control_system()),"                                        \
    " pg_walfile_name(pg_current_wal_insert_lsn()), pg_last_wal_replay_lsn(), pg_current_wal_insert_lsn()"

/* A transaction that writes no log is not waited for, hence the message. */
static const struct pg_statement prove = {
    "proof", "select " HISTORY ", pg_logical_emit_message(true, 'stampd', ''), " PROOF_SYNCHRONOUS, 0};
static const struct pg_statement look = {"lineage", "select " HISTORY, 0};

enum { TIMELINE_BYTES = 4 };

/* The name of a file of the log begins with the digits of the timeline. */
static uint32_t timeline_of(struct bytes file)
{
    uint32_t timeline = 0;
    for (size_t i = 0; i < TIMELINE_BYTES && 2 * i + 1 < file.size; i++)
        timeline = timeline << 8 | (uint32_t)hex_byte(file.data + 2 * i);
    return timeline;
}

static void take_met(const struct pg_result *row, struct lineage_met *met_r)
{
    met_r->system = (uint64_t)pg_get_i64(row, 0, 0);
    met_r->timeline = timeline_of(pg_get_text(row, 0, 1));
    met_r->start = (uint64_t)pg_get_i64(row, 0, 2);
    met_r->position = (uint64_t)pg_get_i64(row, 0, 3);
}

static enum fault run_proof(struct pg *pg, struct arena *arena, int64_t limit_ms, struct lineage_met *met_r)
{
    struct pg_params none;
    struct pg_verdict verdict;
    pg_params_start(&none, arena);
    enum fault fault = pg_pipeline_begin(pg, arena);
    if (fault)
        return fault;
    pg_pipeline_add(pg, &prove, &none);
    pg_pipeline_run(pg, limit_ms, &verdict);
    if (verdict.outcome == PG_COMMITTED) {
        if (met_r)
            take_met(verdict.results[0], met_r);
        return FAULT_NONE;
    }
    if (verdict.fault == FAULT_XTIME)
        log_often(LOG_LEVEL_WARNING, "proof",
                  "postgresql commits nothing in time: does it wait for a standby that is away?");
    return verdict.outcome == PG_UNKNOWN ? FAULT_XAWAY : verdict.fault;
}

enum fault proof_run(struct pg *pg, struct arena *arena, int64_t limit_ms)
{
    return run_proof(pg, arena, limit_ms, NULL);
}

enum fault proof_begin(struct pg *pg, struct arena *arena, int64_t limit_ms, struct lineage_met *met_r)
{
    return FAULT_FIRST(pg_prepare(pg, &prove, 1), run_proof(pg, arena, limit_ms, met_r));
}

enum fault proof_look(struct pg *pg, struct arena *arena, struct lineage_met *met_r)
{
    struct pg_params none;
    struct pg_result *row;
    pg_params_start(&none, arena);
    enum fault fault = FAULT_FIRST(pg_prepare(pg, &look, 1), pg_run(pg, &look, &none, &row));
    if (!fault)
        take_met(row, met_r);
    return fault;
}
