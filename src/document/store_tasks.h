/* store_tasks: tasks in PostgreSQL: claimed, put back, found.  They are created and ended by store_commit. */
#ifndef STAMPD_DOCUMENT_STORE_TASKS_H
#define STAMPD_DOCUMENT_STORE_TASKS_H

#include "document/statements.h"
#include "document/store.h"
#include "document/task.h"

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
MUST_USE enum fault store_claim_tasks(struct store *store, int space, struct arena *arena,
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
MUST_USE enum fault store_put_task_back(struct store *store, int space, struct arena *arena,
                                        const struct task_fence *fence, const struct task_end *end,
                                        int64_t *start_r);
/* After a commit of unknown outcome, when its session is gone: where the attempt stands. */
struct task_state {
    bool is_held; /* it is still this attempt's */
    bool is_done; /* this attempt has done it */
    int64_t step; /* held: commits made so far */
};
MUST_USE enum fault store_look_at_task(struct store *store, int space, struct arena *arena,
                                       const struct task_fence *fence, struct task_state *state_r);
/* Of a domain the task whose turn it is; no id: none is due. */
MUST_USE enum fault store_next_task(struct store *store, int space, struct arena *arena, struct bytes domain,
                                    struct task *task_r);

/* What may start at `before`, at most `limit` a queue, by queue, priority, start.  Of each: id, operation,
 * queue, priority, start, attempt, batch, domain. */
MUST_USE enum fault store_due_tasks(struct store *store, int space, struct arena *arena, int64_t limit,
                                    int64_t before, struct task **tasks_r, size_t *count_r);
/* What runs.  Of each: id, operation, queue, claim, attempt, start, and who holds it. */
struct held_task {
    struct task task;
    struct bytes holder;
};
MUST_USE enum fault store_running_tasks(struct store *store, int space, struct arena *arena,
                                        struct held_task **tasks_r, size_t *count_r);
/* Forgets ends before the stamp, out of the `batch` oldest. */
MUST_USE enum fault store_purge_history(struct store *store, int space, struct arena *arena, int64_t before,
                                        int64_t batch, int64_t *count_r);

/* For administrators: one of the statements TASK_LIST to TASK_BACKLOG, whose parameters and rows task_rows.h
 * tells. */
MUST_USE enum fault store_administer_tasks(struct store *store, int space, enum statement statement,
                                           const struct pg_params *params, struct pg_result **rows_r);

#endif
