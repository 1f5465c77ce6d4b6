/* task_scan: the scan of a queue manager: puts back lost tasks, deletes old history, returns what is due and
 * what runs. */
#ifndef STAMPD_OPERATION_TASKS_TASK_SCAN_H
#define STAMPD_OPERATION_TASKS_TASK_SCAN_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* The member scan of the call's param: {"before","limit","unreported","failures"}.  Writes the answer. */
MUST_USE enum fault task_scan(struct worker_context *worker_context, struct call *call, struct reply *reply,
                              int ns);

#endif
