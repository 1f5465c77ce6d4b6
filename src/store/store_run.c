/* store_run: runs work of a session, again if the session was found dead and that does no harm. */
#include "store/store_run.h"

#include "base/base.h"
#include "base/clock.h"
#include "segment/counts/metrics.h"
#include "segment/counts/waits.h"
#include "store/proof.h"
#include "store/statements.h"
#include "store/store_sealing.h"

/* --- kinds of changes --- */

/* Which statements change rows, and which of them may be repeated (changes_table.h).  The table, by
 * statement. */

enum change_kind { KIND_READ, KIND_ONCE, KIND_AGAIN, KIND_UPKEEP, KIND_COMMIT };

static const enum change_kind kinds[STATEMENT_COUNT] = {
#define CHANGE(word, kind) [STATEMENT_##word] = KIND_##kind,
#include "store/changes_table.h"
#undef CHANGE
};

/* May the statement be run again when its session was lost?  It reads, or is upkeep. */
static bool changes_are_repeated(enum statement statement)
{
    return kinds[statement] == KIND_READ || kinds[statement] == KIND_UPKEEP;
}

/* --- running --- */

bool store_run_again(struct store *store, int ns, enum fault fault, int attempt)
{
    struct pg *pg = store_pg(store, ns);
    if (!fault || !pg || store_in_snapshot(store, ns) || pg_is_usable(pg))
        return false;
    store_close(store, ns);
    return fault == FAULT_XAWAY && attempt == 0;
}

enum fault store_run(struct store *store, int ns, store_work *work, void *context)
{
    enum fault fault;
    int attempt = 0;
    do {
        struct pg *pg;
        fault = FAULT_FIRST(store_use(store, ns, &pg), work(store, ns, context));
    } while (store_run_again(store, ns, fault, attempt++));
    return fault;
}

static enum fault run_statement(struct store *store, int ns, void *context)
{
    const struct statement_run *run = context;
    if (store_sealing_refuses(store, ns, run->statement))
        return FAULT_OENCRYPTED;
    return pg_run(store_pg(store, ns), &statements[run->statement], run->params, run->result_r);
}

enum fault store_run_dry(struct store *store, int ns, enum statement statement,
                         const struct pg_params *params, struct pg_result **result_r)
{
    return store_run(store, ns, run_statement, &(struct statement_run){statement, params, result_r});
}

enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                               const struct pg_params *params, struct pg_result **result_r)
{
    assert(changes_are_repeated(statement));
    return store_run_dry(store, ns, statement, params, result_r);
}

/* --- changes --- */

/* NULL: of a process without requests. */
static struct pulse *store_run_pulse_of(const struct store *store)
{
    const struct segment *segment = store_segment(store);
    int index = segment ? segment_index(segment) : SEGMENT_NO_INDEX;
    return index == SEGMENT_NO_INDEX ? NULL : metrics_pulse(segment, index);
}

void store_run_forget_change(struct store *store)
{
    struct pulse *pulse = store_run_pulse_of(store);
    if (pulse)
        pulse_undo_change(pulse);
}

enum fault store_run_change(struct store *store, int ns, enum statement statement,
                            const struct pg_params *params, struct pg_result **result_r)
{
    struct pg *pg;
    struct pg_verdict verdict;
    assert(!changes_are_repeated(statement));
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    if (store_in_snapshot(store, ns)) /* where nothing can be changed */
        return FAULT_CONTENTION;
    enum fault fault = store_run_begin(store, ns, params->arena, &pg);
    if (fault)
        return fault;
    pg_pipeline_add(pg, &statements[statement], params);
    fault = store_run_end(store, ns, &verdict);
    if (!fault && result_r)
        *result_r = verdict.results[0];
    return fault == FAULT_STALE ? FAULT_CONTENTION : fault; /* the next try needs no snapshot */
}

enum fault store_run_change_again(struct store *store, int ns, enum statement statement,
                                  const struct pg_params *params, struct pg_result **result_r)
{
    enum fault fault = store_run_change(store, ns, statement, params, result_r);
    if (fault == FAULT_XUNKNOWN && !store_run_change(store, ns, statement, params, result_r))
        fault = FAULT_NONE;
    return fault;
}

enum fault store_run_begin(struct store *store, int ns, struct arena *arena, struct pg **pg_r)
{
    return FAULT_FIRST(store_connect(store, ns), store_use(store, ns, pg_r), pg_pipeline_begin(*pg_r, arena));
}

enum fault store_run_end(struct store *store, int ns, struct pg_verdict *verdict_r)
{
    struct pg *pg = store_pg(store, ns);
    struct pulse *pulse = store_run_pulse_of(store);
    if (pulse)
        pulse_begin_change(pulse);
    pg_pipeline_run(pg, store_pipeline_ms(store), verdict_r);
    if (pulse && verdict_r->outcome == PG_REFUSED)
        pulse_undo_change(pulse);
    if (!pg_is_usable(pg))
        store_close(store, ns);
    return verdict_r->outcome == PG_UNKNOWN ? FAULT_XUNKNOWN : verdict_r->fault;
}

enum fault store_run_proof(struct store *store, int ns, struct arena *arena)
{
    struct pg *pg;
    enum fault fault = store_use(store, ns, &pg);
    if (fault)
        return fault;
    if (store_in_snapshot(store, ns)) /* which shows what was there when it began */
        return FAULT_STALE;
    waits_begin(store_segment(store), clock_monotonic_ms());
    fault = proof_run(pg, arena, store_settings(store)->connect_timeout_s * 1000);
    waits_end(store_segment(store));
    if (!pg_is_usable(pg))
        store_close(store, ns);
    return fault;
}
