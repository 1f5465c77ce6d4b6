/* store_tasks: tasks in PostgreSQL: claiming, putting back, finding. store_commit creates and ends them. */
#ifndef STAMPD_STORE_TASKS_STORE_TASKS_H
#define STAMPD_STORE_TASKS_STORE_TASKS_H

#include "store/statements.h"
#include "store/store.h"
#include "model/task/task.h"
#include "segment/counts/backlog.h"

enum claim_result {
    CLAIM_DONE,     /* the task belongs to this attempt */
    CLAIM_GONE,     /* there is no such task */
    CLAIM_WAITING,  /* its start is in the future */
    CLAIM_RUNNING,  /* it belongs to another attempt */
    CLAIM_TURN,     /* its domain is running a task, or another task of it goes first */
    CLAIM_BUSY,     /* its row is locked (only when claiming several) */
    CLAIM_EXTERNAL, /* it is for external workers */
    CLAIM_PAUSED,   /* its queue or its operation is paused */
    CLAIM_LIMITED,  /* as many run as a limit of its queue, its operation or its key allows */
    CLAIM_ELSEWHERE /* it is free, and its operation is run by another process */
};
struct task_claim {
    struct bytes id;
    enum claim_result result;
    struct task task; /* DONE: all of it; WAITING: its start */
};
/* Claims in one round trip, not durably: a claim that PostgreSQL loses cannot be ended either.  Claiming
 * several skips locked rows and tasks of domains. `claim` is the stamp, `holder` names this process; tasks of
 * the operation `elsewhere` ("": none) are not claimed. */
MUST_USE enum fault store_tasks_claim(struct store *store, int ns, struct arena *arena,
                                      struct task_claim *claims, size_t count, int64_t claim,
                                      struct bytes holder, struct bytes elsewhere);

/* The end of an unsuccessful attempt. */
struct task_end {
    int64_t start;   /* when it may start again; TASK_PARKED */
    bool is_failure; /* it counts as a failure */
    struct bytes code, report;
};
/* Puts the task back to wait, and records the attempt. start_r: start of the waiting task, this one or
 * another for its resource; 0: the attempt was already over.  FAULT_XUNKNOWN: it may wait or not. */
MUST_USE enum fault store_tasks_put_back(struct store *store, int ns, struct arena *arena,
                                         const struct task_fence *fence, const struct task_end *end,
                                         int64_t *start_r);
/* After a commit of unknown outcome, when its session is gone: the state of the attempt. */
struct task_state {
    bool is_held; /* it still belongs to this attempt */
    bool is_done; /* this attempt has done it */
    int64_t step; /* held: commits made so far */
};
MUST_USE enum fault store_tasks_state(struct store *store, int ns, struct arena *arena,
                                      const struct task_fence *fence, struct task_state *state_r);
/* The task of a domain that goes next; no id: none is due. */
MUST_USE enum fault store_tasks_next(struct store *store, int ns, struct arena *arena, struct bytes domain,
                                     struct task *task_r);

/* Tasks that may start at `before`, at most `limit` per queue, by queue, priority, start, except those with
 * a start before that of the scan.  Of each: id, operation, queue, priority, start, attempt, batch, domain.
 */
MUST_USE enum fault store_tasks_due(struct store *store, int ns, struct arena *arena, int64_t limit,
                                    int64_t before, const struct backlog_scan *scan, struct task **tasks_r,
                                    size_t *count_r);
/* What bounds the scan that follows: the earliest start of a waiting task, and the snapshot in which it is
 * the earliest. */
MUST_USE enum fault store_tasks_oldest(struct store *store, int ns, struct arena *arena,
                                       const struct backlog_scan *scan, struct backlog_bound *bound_r);

/* A task whose failures have not been reported. */
struct failed_task {
    struct bytes id, operation, info, code, report;
    int64_t failures, start;
};
MUST_USE enum fault store_tasks_unreported(struct store *store, int ns, struct arena *arena, int64_t failures,
                                           int64_t limit, struct failed_task **tasks_r, size_t *count_r);
/* Records that this number of failures of the task has been reported. */
MUST_USE enum fault store_tasks_reported(struct store *store, int ns, struct arena *arena, struct bytes id,
                                         int64_t failures);
/* Deletes tasks parked before the stamp, and counts them. */
MUST_USE enum fault store_tasks_expire(struct store *store, int ns, struct arena *arena, int64_t before,
                                       int64_t batch, int64_t *count_r);
/* Declares the operations of this server, for programs that create tasks by SQL. */
struct task_declaration {
    struct bytes operation;
    int32_t queue, batch;
    int32_t kept_bytes; /* the largest param that the history keeps */
};
MUST_USE enum fault store_tasks_declare(struct store *store, int ns, struct arena *arena,
                                        const struct task_declaration *operations, size_t count,
                                        int64_t param_bytes);
/* The running tasks.  Of each: id, operation, queue, claim, attempt, start, and its holder. */
struct held_task {
    struct task task;
    struct bytes holder;
    int64_t until; /* end of the claim of an external worker; 0: a process of a server has it */
};
MUST_USE enum fault store_tasks_running(struct store *store, int ns, struct arena *arena,
                                        struct held_task **tasks_r, size_t *count_r);
/* --- external workers (workers.md) --- */

/* Tasks of the queue whose claims have ended, at most `most`. */
MUST_USE enum fault store_tasks_overdue(struct store *store, int ns, struct arena *arena, int queue,
                                        int64_t most, struct held_task **tasks_r, size_t *count_r);
/* A task under the claim of a worker. */
struct task_hold {
    bool is_held;      /* the row belongs to this attempt */
    bool is_done;      /* this attempt has done it */
    struct bytes code; /* how this attempt has ended without success; NO_BYTES: it has not */
    int queue;         /* held or ended; -1: unknown */
    struct task task;  /* held: operation, domain, resource, start, period; else its start, 0: it is gone */
    int64_t until;     /* held: the end of the claim */
};
MUST_USE enum fault store_tasks_hold(struct store *store, int ns, struct arena *arena,
                                     const struct task_fence *fence, struct task_hold *hold_r);
/* Extends a claim that has not ended; `progress` NO_BYTES: as it was.  is_kept_r false: it has ended. */
MUST_USE enum fault store_tasks_keep(struct store *store, int ns, struct arena *arena,
                                     const struct task_fence *fence, int64_t until, struct bytes progress,
                                     bool *is_kept_r);

/* --- for those who have requested a task --- */

/* A task of the owner (NO_BYTES: of anybody), or how it ended. */
struct task_own {
    bool is_there;
    struct bytes state, operation, code, report, progress, result; /* NO_BYTES: none */
    int64_t attempt, start;
};
MUST_USE enum fault store_tasks_own(struct store *store, int ns, struct arena *arena, struct bytes id,
                                    struct bytes owner, struct task_own *own_r);
/* Deletes it; false: there is none. */
MUST_USE enum fault store_tasks_cancel(struct store *store, int ns, struct arena *arena, struct bytes id,
                                       struct bytes owner, bool *is_cancelled_r);

/* Purges ends before the stamp, among the `batch` oldest. */
MUST_USE enum fault store_tasks_purge_history(struct store *store, int ns, struct arena *arena,
                                              int64_t before, int64_t batch, int64_t *count_r);

/* For administrators: one of the statements TASK_LIST to TASK_BACKLOG that reads; task_rows.h has their
 * parameters and rows. */
MUST_USE enum fault store_tasks_administer(struct store *store, int ns, enum statement statement,
                                           const struct pg_params *params, struct pg_result **rows_r);
/* One of them that changes tasks, with parameters with which it only counts them. */
MUST_USE enum fault store_tasks_count(struct store *store, int ns, enum statement statement,
                                      const struct pg_params *params, struct pg_result **rows_r);
/* One that changes tasks.  FAULT_XUNKNOWN: it may have changed them or not. */
MUST_USE enum fault store_tasks_change(struct store *store, int ns, enum statement statement,
                                       const struct pg_params *params, struct pg_result **rows_r);

#endif
