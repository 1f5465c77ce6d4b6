/* task_retry: when a task is tried again after failures, by the policy of its operation (tasks.md,
 * "Failures"). */
#ifndef STAMPD_OPERATION_TASKS_TASK_RETRY_H
#define STAMPD_OPERATION_TASKS_TASK_RETRY_H

#include "base/settings.h"
#include "model/task/task.h"
#include "model/task/worker_queues.h"

/* The start after that many failures of a task of the operation; TASK_PARKED: no more tries.  `workers`:
 * what the namespace declares, or NULL. */
int64_t task_retry_start(const struct settings *settings, const struct worker_queues *workers,
                         struct bytes operation, int64_t failures);

#endif
