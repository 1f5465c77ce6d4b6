/* store_tasks: tasks in PostgreSQL: claimed, put back, found.  They are created and ended by store_commit. */
#ifndef STAMPD_STORE_STORE_TASKS_H
#define STAMPD_STORE_STORE_TASKS_H

#include "store/statements.h"
#include "store/store.h"
#include "model/task.h"

enum claim_result {
    CLAIM_DONE,    /* the task is this attempt's */
    CLAIM_GONE,    /* there is no such task */
    CLAIM_WAITING, /* its time has not come */
    CLAIM_RUNNING, /* it is another attempt's */
    CLAIM_TURN,    /* its domain is at work, or another of it goes first */
    CLAIM_BUSY,    /* its row is locked (several together only) */
};
struct task_claim {
    struct bytes id;
    enum claim_result result;
    struct task task; /* DONE: all of it; WAITING: its start */
};
/* Claims in one round trip, not durably: a claim that PostgreSQL forgets cannot end either.  Several together
 * leave out rows that are locked and tasks of domains.  `claim` is the stamp, `holder` names this process. */
MUST_USE enum fault store_claim_tasks(struct store *store, int ns, struct arena *arena,
                                      struct task_claim *claims, size_t count, int64_t claim,
                                      struct bytes holder);

/* How an attempt ended without success. */
struct task_end {
    int64_t start;   /* when it may start again; TASK_PARKED */
    bool is_failure; /* it counts */
    struct bytes code, report;
};
/* Puts the task back to wait, and remembers the attempt.  start_r: of what waits now, it or another for its
 * resource; 0: the attempt was over already. */
MUST_USE enum fault store_put_task_back(struct store *store, int ns, struct arena *arena,
                                        const struct task_fence *fence, const struct task_end *end,
                                        int64_t *start_r);
/* After a commit of unknown outcome, when its session is gone: where the attempt stands. */
struct task_state {
    bool is_held; /* it is still this attempt's */
    bool is_done; /* this attempt has done it */
    int64_t step; /* held: commits made so far */
};
MUST_USE enum fault store_look_at_task(struct store *store, int ns, struct arena *arena,
                                       const struct task_fence *fence, struct task_state *state_r);
/* Of a domain the task whose turn it is; no id: none is due. */
MUST_USE enum fault store_next_task(struct store *store, int ns, struct arena *arena, struct bytes domain,
                                    struct task *task_r);

/* What may start at `before`, at most `limit` a queue, by queue, priority, start, without what was to start
 * before `since`.  Of each: id, operation, queue, priority, start, attempt, batch, domain. */
MUST_USE enum fault store_due_tasks(struct store *store, int ns, struct arena *arena, int64_t limit,
                                    int64_t before, int64_t since, struct task **tasks_r, size_t *count_r);
/* The earliest start from `since` on among what waits; STAMP_MAX: nothing does. */
MUST_USE enum fault store_oldest_task(struct store *store, int ns, struct arena *arena, int64_t since,
                                      int64_t *start_r);

/* A task of whose failures nobody was told. */
struct failed_task {
    struct bytes id, operation, info, code, report;
    int64_t failures, start;
};
MUST_USE enum fault store_untold_tasks(struct store *store, int ns, struct arena *arena, int64_t failures,
                                       int64_t limit, struct failed_task **tasks_r, size_t *count_r);
/* Somebody was told that the task has failed so often. */
MUST_USE enum fault store_tell_task(struct store *store, int ns, struct arena *arena, struct bytes id,
                                    int64_t failures);
/* Deletes tasks that were parked before the stamp; how many. */
MUST_USE enum fault store_expire_tasks(struct store *store, int ns, struct arena *arena, int64_t before,
                                       int64_t batch, int64_t *count_r);
/* How many tasks there are that clients have asked for: of one, counted up to `most_of_client`, of all. */
MUST_USE enum fault store_asked_tasks(struct store *store, int ns, struct arena *arena, int64_t client,
                                      int64_t most_of_client, int64_t most, int64_t *of_client_r,
                                      int64_t *of_all_r);
/* The operations of this server, for those that make tasks by SQL. */
struct task_declaration {
    struct bytes operation;
    int32_t queue, batch;
};
MUST_USE enum fault store_declare_operations(struct store *store, int ns, struct arena *arena,
                                             const struct task_declaration *operations, size_t count,
                                             int64_t param_bytes);
/* What runs.  Of each: id, operation, queue, claim, attempt, start, and who holds it. */
struct held_task {
    struct task task;
    struct bytes holder;
};
MUST_USE enum fault store_running_tasks(struct store *store, int ns, struct arena *arena,
                                        struct held_task **tasks_r, size_t *count_r);
/* Forgets ends before the stamp, out of the `batch` oldest. */
MUST_USE enum fault store_purge_history(struct store *store, int ns, struct arena *arena, int64_t before,
                                        int64_t batch, int64_t *count_r);

/* For administrators: one of the statements TASK_LIST to TASK_BACKLOG, whose parameters and rows task_rows.h
 * tells. */
MUST_USE enum fault store_administer_tasks(struct store *store, int ns, enum statement statement,
                                           const struct pg_params *params, struct pg_result **rows_r);

#endif
