/* task_backlog: counts the tasks of a namespace for the metrics, after scans. */
#ifndef STAMPD_OPERATION_TASKS_TASK_BACKLOG_H
#define STAMPD_OPERATION_TASKS_TASK_BACKLOG_H

#include "operation/call.h"
#include "operation/worker_context.h"

/* Counts for the call's namespace, unless that has just been done.  Reads a bounded number of rows, however
 * many tasks there are.  Without the database the last counts stay, and age. */
void task_backlog_look(struct worker_context *worker_context, struct call *call, int ns);

#endif
