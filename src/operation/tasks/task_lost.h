/* task_lost: attempts that are lost (tasks.md, "Lost attempts"): their tasks are put back. */
#ifndef STAMPD_OPERATION_TASKS_TASK_LOST_H
#define STAMPD_OPERATION_TASKS_TASK_LOST_H

#include "store/tasks/store_tasks.h"
#include "operation/call.h"
#include "operation/worker_context.h"
#include "operation/tasks/task_owner.h"

struct lost_task {
    const struct held_task *held;
    struct task_loss loss;
    int64_t start; /* out: of the next attempt; 0: the attempt was already over */
};

/* Is the claim, whose row was read before, lost?  Of an external worker: has it ended? */
bool task_lost_is(struct worker_context *worker_context, const struct held_task *held,
                  struct task_loss *loss_r);
/* Puts the task back, and records the attempt. */
MUST_USE enum fault task_lost_put_back(struct worker_context *worker_context, const struct call *call, int ns,
                                       struct lost_task *lost);
/* Puts back tasks of a queue of external workers whose claims have ended, a bounded number. */
MUST_USE enum fault task_lost_overdue(struct worker_context *worker_context, const struct call *call, int ns,
                                      int queue);

/* Does it count as a failure? */
bool task_lost_counts(const struct task_loss *loss);
/* The word for it, and the text for the history and the administrators. */
const char *task_lost_word(const struct task_loss *loss);
struct bytes task_lost_report(struct arena *arena, const struct lost_task *lost);

#endif
