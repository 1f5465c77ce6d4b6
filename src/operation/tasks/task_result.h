/* task_result: what a task that the server has run leaves in the history (tasks.md, "The history"). */
#ifndef STAMPD_OPERATION_TASKS_TASK_RESULT_H
#define STAMPD_OPERATION_TASKS_TASK_RESULT_H

#include "store/tasks/store_tasks.h"
#include "operation/attempt.h"

/* After the work of an attempt: its commit stores the answer that work has left, unless that has more than
 * task_result_bytes, or the task goes on.  For `complete` of struct attempt_commit: never fails. */
enum fault task_result_keep(struct attempt_commit *commit, struct attempt *attempt);

/* The text of a fault for the row: what the caller of an operation would have received. */
struct bytes task_result_report(struct arena *arena, const struct reply *reply);

/* Why a task was not claimed, for the manager; not CLAIM_DONE. */
const char *task_result_word(enum claim_result result);

#endif
