/* task: reads the param of the operation `task`, for operations that request tasks for others. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_TASK_H
#define STAMPD_OPERATION_ADMINISTRATION_TASK_H

#include "operation/tasks/task_request.h"

/* The request in call->param, with what the caller may request; a refusal is in the reply.  `more`: members
 * of the param that are read elsewhere, each after a blank. */
MUST_USE enum fault task_read(struct attempt *attempt, const char *more, struct task_request *request_r);

#endif
