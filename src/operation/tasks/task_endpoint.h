/* task_endpoint: requests of queue managers to a namespace, with the queue's key: run tasks, find those that
 * are due or lost (tasks.md, "The interface of queue managers"). */
#ifndef STAMPD_OPERATION_TASKS_TASK_ENDPOINT_H
#define STAMPD_OPERATION_TASKS_TASK_ENDPOINT_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* As route_admit, for CALL_TASKS. */
MUST_USE enum fault task_endpoint_admit(struct worker_context *worker_context, struct call *call,
                                        struct reply *reply);
/* Answers CALL_TASKS.  A fault is recorded in the reply. */
MUST_USE enum fault task_endpoint_answer(struct worker_context *worker_context, struct call *call,
                                         struct reply *reply);

#endif
