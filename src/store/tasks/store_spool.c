/* store_spool: finds names, and stores them in a commit. */
#include "store/tasks/store_spool.h"

#include "model/document/stamp.h"
#include "store/documents/commit_part.h"
#include "store/store_run.h"

/* So that the table has only what is young enough in the long run. */
enum { PURGED_FOR_EACH = 2 };

enum fault store_spool_find(struct store *store, int ns, struct arena *arena, const struct spool_batch *batch,
                            struct spool_known *known_r, int64_t *forgotten_r)
{
    enum { FORGOTTEN, SEQUENCE, DIGEST };
    struct pg_result *rows;
    enum fault fault = store_run_statement(store, ns, STATEMENT_SPOOL_FIND,
                                           PG_PARAMS(arena, PG_TEXT(batch->account), PG_TEXT(batch->series),
                                                     PG_I64S(batch->sequences, batch->count)),
                                           &rows);
    if (fault)
        return fault;
    *forgotten_r = pg_rows(rows) ? pg_get_i64(rows, 0, FORGOTTEN) : 0;
    memset(known_r, 0, batch->count * sizeof *known_r);
    for (int row = 0; row < pg_rows(rows); row++)
        for (size_t i = 0; i < batch->count; i++)
            if (!pg_is_null(rows, row, SEQUENCE) && pg_get_i64(rows, row, SEQUENCE) == batch->sequences[i])
                known_r[i] = (struct spool_known){true, pg_get_text(rows, row, DIGEST)};
    bool has_known = pg_rows(rows) && !pg_is_null(rows, 0, SEQUENCE);
    return has_known ? store_run_proof(store, ns, arena) : FAULT_NONE;
}

/* --- parts of a commit --------------------------------------------------------------------------- */

static enum fault plan_names(struct commit_run *run)
{
    const struct spool_batch *batch = run->commit->spool;
    if (!batch)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_SPOOL_NOTE]);
    PG_PARAMS_ADD(params, PG_TEXT(batch->account), PG_TEXT(batch->series),
                  PG_I64S(batch->sequences, batch->count), PG_TEXTS(batch->digests, batch->count),
                  PG_I64(run->commit->stop));
    return FAULT_NONE;
}

const struct commit_part commit_part_spool = {.plan = plan_names};

static enum fault plan_purge(struct commit_run *run)
{
    const struct spool_batch *batch = run->commit->spool;
    if (!batch)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_SPOOL_PURGE]);
    PG_PARAMS_ADD(params, PG_I64(stamp_add_ms(stamp_now(), -1000 * store_settings(run->store)->spool_s)),
                  PG_I32((int32_t)(PURGED_FOR_EACH * batch->count)), PG_TEXT(batch->account),
                  PG_TEXT(batch->series), PG_I64(batch->sequences[0]));
    return FAULT_NONE;
}

const struct commit_part commit_part_old_spools = {.plan = plan_purge};
