/* task_cron: periodic tasks: what modules declare, and the start of each rule's task (tasks.md). */
#ifndef STAMPD_OPERATION_TASKS_TASK_CRON_H
#define STAMPD_OPERATION_TASKS_TASK_CRON_H

#include "operation/call.h"
#include "operation/worker_context.h"

/* Part of a scan: creates the tasks of rules that have none, and moves those of rules that have changed.  In
 * the namespace z modules declare nothing. */
MUST_USE enum fault task_cron(struct worker_context *worker_context, const struct call *call, int ns);

#endif
