/* task_attempt: one attempt at a task, and how it ends other than by a commit. */
#ifndef STAMPD_OPERATION_TASKS_TASK_ATTEMPT_H
#define STAMPD_OPERATION_TASKS_TASK_ATTEMPT_H

#include "store/tasks/store_tasks.h"
#include "operation/attempt.h"
#include "operation/tasks/task_run.h"

enum { TASK_WAIT_MS = 1000 /* before a task looks again for a process that may serve it */ };

/* All attempts of one request. */
struct task_run {
    struct worker_context *worker_context;
    struct call *call; /* of the manager */
    int ns;
    struct builder *scratch; /* for answers (task_result.h) */
};

enum cycle { CYCLE_FAILED, CYCLE_DONE, CYCLE_GOES_ON, CYCLE_OVER };

/* One attempt. */
struct task_attempt {
    struct task *task;
    struct task_outcome *outcome;
    const struct operation *operation;
    struct call call; /* the operation's own: without a key */
    struct attempt attempt;
    struct task_fence fence;
    int cycles;         /* committed in this request */
    int64_t longest_ms; /* of them */
    int64_t spent_us;   /* in this request; of one that shared a commit its share */
    int64_t wait_s;     /* its client has used up its writes for so long; 0: it has not */
    enum cycle cycle;   /* the outcome of the last */
    bool is_over;       /* the outcome is known */
};

struct task_attempt *task_attempt_of(struct attempt *attempt);
struct store *task_attempt_store(const struct task_run *run);

/* The outcome is known: a word of the answer. */
void task_attempt_end(struct task_attempt *work, const char *result);

/* The next task of its domain, for the answer.  One for external workers is nothing for the manager. */
void task_attempt_set_next(const struct task_run *run, struct task_attempt *work, const struct task *next);

/* It has failed: the task is put back, or parked if it must not be repeated. */
void task_attempt_fail(const struct task_run *run, struct task_attempt *work, enum fault fault);

/* It is a long request, and the workers that may serve those of its client or namespace are busy, or they
 * have used up their writes: it starts again a little later, or after wait_s, and no failure is counted. */
void task_attempt_wait(const struct task_run *run, struct task_attempt *work);

/* Time or memory ran out between two cycles, or before the first.  A task that was not begun, or has a
 * domain, keeps its place in the queue; any other starts again from now. */
void task_attempt_interrupt(const struct task_run *run, struct task_attempt *work);

/* Its outcome is unknown: a scan finds the task. */
void task_attempt_end_unknown(const struct task_run *run, struct task_attempt *work);

#endif
