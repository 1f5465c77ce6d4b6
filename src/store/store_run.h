/* store_run: what may be repeated, reads above all, is repeated once if its session was found dead.  A commit
 * never is. */
#ifndef STAMPD_STORE_STORE_RUN_H
#define STAMPD_STORE_STORE_RUN_H

#include "edge/pg_pipeline.h"
#include "store/statements.h"
#include "store/store_private.h"

/* Work that may be repeated: a read, or a write guarded by the state that it has seen.  Called with an open
 * session. */
typedef enum fault store_work(struct store *store, int ns, void *context);
/* Runs the work, once more if its session was found dead. */
MUST_USE enum fault store_run(struct store *store, int ns, store_work *work, void *context);
/* The same, for one statement. */
MUST_USE enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                                        const struct pg_params *params, struct pg_result **result_r);
/* After work that may be repeated: closes the session if it is unusable.  True: it was found dead, repeat.
 * `attempt` counts from 0. */
bool store_run_again(struct store *store, int ns, enum fault fault, int attempt);

/* A pipeline that is not repeated: opens the session, and begins; then its statements are added. */
MUST_USE enum fault store_run_begin(struct store *store, int ns, struct arena *arena, struct pg **pg_r);
/* Runs what was added.  Closes the session if it is unusable afterwards. */
void store_run_end(struct store *store, int ns, struct pg_verdict *verdict_r);

/* A statement to be run, and where its result goes: the context of store_run_statement and its long twin. */
struct statement_run {
    enum statement statement;
    const struct pg_params *params;
    struct pg_result **result_r;
};

#endif
