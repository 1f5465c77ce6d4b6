/* store_run: statements outside of a commit.  A read is repeated once if its session was found dead.  A
 * change is not, unless it leaves the same when it is made twice; its fault is FAULT_XUNKNOWN when it cannot
 * be known whether it was made.  Which statement is what: changes_table.h. */
#ifndef STAMPD_STORE_STORE_RUN_H
#define STAMPD_STORE_STORE_RUN_H

#include "edge/pg/pg_pipeline.h"
#include "store/statements.h"
#include "store/store_private.h"

/* Work that may be repeated.  Called with an open session. */
typedef enum fault store_work(struct store *store, int ns, void *context);
/* Runs the work, once more if its session was found dead. */
MUST_USE enum fault store_run(struct store *store, int ns, store_work *work, void *context);
/* The same, for one statement that reads, or is upkeep. */
MUST_USE enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                                        const struct pg_params *params, struct pg_result **result_r);
/* The same, for a statement that changes rows, with parameters with which it only counts them. */
MUST_USE enum fault store_run_dry(struct store *store, int ns, enum statement statement,
                                  const struct pg_params *params, struct pg_result **result_r);
/* After work that may be repeated: closes the session if it is unusable.  True: it was found dead, repeat.
 * `attempt` counts from 0. */
bool store_run_again(struct store *store, int ns, enum fault fault, int attempt);

/* Runs and commits a statement that changes rows, once.  FAULT_XUNKNOWN: the session was lost, or did not
 * answer in time, after it was sent.  FAULT_CONTENTION: a lock was not to be had.  After any other fault
 * nothing was changed.  pg_sqlstate is that of a refusal. */
MUST_USE enum fault store_run_change(struct store *store, int ns, enum statement statement,
                                     const struct pg_params *params, struct pg_result **result_r);
/* The same for a change that leaves the same, with the same result, when it is made twice: made again, once,
 * if it is unknown whether it was made.  FAULT_XUNKNOWN also if the second one fails. */
MUST_USE enum fault store_run_change_again(struct store *store, int ns, enum statement statement,
                                           const struct pg_params *params, struct pg_result **result_r);
/* The last change was none of what the request is for, or none at all: it does not count for its answer. */
void store_run_forget_change(struct store *store);

/* A pipeline of changes, which is not repeated: opens the session, and begins; then its statements are added.
 */
MUST_USE enum fault store_run_begin(struct store *store, int ns, struct arena *arena, struct pg **pg_r);
/* Runs what was added.  Closes the session if it is unusable afterwards.  The fault as that of
 * store_run_change, but FAULT_STALE is left to the caller. */
MUST_USE enum fault store_run_end(struct store *store, int ns, struct pg_verdict *verdict_r);

/* Proves what has become visible since the session was opened (proof.h): before an answer says that something
 * is stored already.  FAULT_XAWAY: not proven. */
MUST_USE enum fault store_run_proof(struct store *store, int ns, struct arena *arena);

/* A statement to be run, and where its result goes: the context of store_run_statement and its long twin. */
struct statement_run {
    enum statement statement;
    const struct pg_params *params;
    struct pg_result **result_r;
};

#endif
