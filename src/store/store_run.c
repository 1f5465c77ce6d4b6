/* store_run: runs work of a session, again if the session was found dead. */
#include "store/store_run.h"

#include "store/store_sealing.h"

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
        fault = store_use(store, ns, &pg);
        if (!fault)
            fault = work(store, ns, context);
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

enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                               const struct pg_params *params, struct pg_result **result_r)
{
    return store_run(store, ns, run_statement, &(struct statement_run){statement, params, result_r});
}

enum fault store_run_begin(struct store *store, int ns, struct arena *arena, struct pg **pg_r)
{
    enum fault fault = store_connect(store, ns);
    if (!fault)
        fault = store_use(store, ns, pg_r);
    return fault ? fault : pg_pipeline_begin(*pg_r, arena);
}

void store_run_end(struct store *store, int ns, struct pg_verdict *verdict_r)
{
    struct pg *pg = store_pg(store, ns);
    pg_pipeline_run(pg, store_pipeline_ms(store), verdict_r);
    if (!pg_is_usable(pg))
        store_close(store, ns);
}
