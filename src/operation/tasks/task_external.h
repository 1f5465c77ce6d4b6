/* task_external: operations whose tasks external workers take.  The configuration of the namespace declares
 * them (model/task/worker_queues.h), and nothing of them is code of the server. */
#ifndef STAMPD_OPERATION_TASKS_TASK_EXTERNAL_H
#define STAMPD_OPERATION_TASKS_TASK_EXTERNAL_H

#include "operation/call.h"
#include "operation/operation.h"

/* The operation of this name as one that can be scheduled: of the server, else an external one, in the call's
 * arena, which the caller may schedule if its queue says so; NULL: there is none. */
const struct operation *task_external_find(const struct call *call, struct bytes name);

/* The queues, by their bits, whose tasks the caller may take and end.  0: none. */
uint32_t task_external_queues(const struct call *call);

#endif
