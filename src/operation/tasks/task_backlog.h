/* task_backlog: counts the tasks of a namespace for the metrics, behind scans. */
#ifndef STAMPD_OPERATION_TASKS_TASK_BACKLOG_H
#define STAMPD_OPERATION_TASKS_TASK_BACKLOG_H

#include "operation/operation.h"

/* Looks at the call's namespace, unless somebody has just now.  A bounded number of rows is read, however
 * many tasks there are.  Without the database the last look stays, and grows old. */
void task_backlog_look(struct worker_context *worker_context, struct call *call, int ns);

#endif
