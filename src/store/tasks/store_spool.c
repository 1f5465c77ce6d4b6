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
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, batch->account);
    pg_params_add_text(&params, batch->series);
    pg_params_add_i64_array(&params, batch->sequences, batch->count);
    enum fault fault = store_run_statement(store, ns, STATEMENT_SPOOL_FIND, &params, &rows);
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
    pg_params_add_text(params, batch->account);
    pg_params_add_text(params, batch->series);
    pg_params_add_i64_array(params, batch->sequences, batch->count);
    pg_params_add_text_array(params, batch->digests, batch->count);
    pg_params_add_i64(params, run->commit->stop);
    return FAULT_NONE;
}

const struct commit_part commit_part_spool = {.plan = plan_names};

static enum fault plan_purge(struct commit_run *run)
{
    const struct spool_batch *batch = run->commit->spool;
    if (!batch)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_SPOOL_PURGE]);
    pg_params_add_i64(params, stamp_add_ms(stamp_now(), -1000 * store_settings(run->store)->spool_s));
    pg_params_add_i32(params, (int32_t)(PURGED_FOR_EACH * batch->count));
    pg_params_add_text(params, batch->account);
    pg_params_add_text(params, batch->series);
    pg_params_add_i64(params, batch->sequences[0]);
    return FAULT_NONE;
}

const struct commit_part commit_part_old_spools = {.plan = plan_purge};
