/* store_run: what may be repeated, reads above all, is repeated once if its session was found dead.  A commit
 * never is. */
#include "store/store_private.h"

bool store_run_again(struct store *store, int ns, enum fault fault, int attempt)
{
    struct store_session *session = &store->sessions[ns];
    if (!fault || !session->pg || session->in_snapshot || pg_is_usable(session->pg))
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
    return pg_run(store->sessions[ns].pg, &statements[run->statement], run->params, run->result_r);
}

enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                               const struct pg_params *params, struct pg_result **result_r)
{
    return store_run(store, ns, run_statement, &(struct statement_run){statement, params, result_r});
}
