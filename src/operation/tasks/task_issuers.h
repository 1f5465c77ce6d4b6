/* task_issuers: creates the tasks that fetch the keys of OpenID providers (issuer_keys.h): one for each
 * issuer of the namespace, when a fetch is due. */
#ifndef STAMPD_OPERATION_TASKS_TASK_ISSUERS_H
#define STAMPD_OPERATION_TASKS_TASK_ISSUERS_H

#include "operation/call.h"
#include "operation/worker_context.h"

/* For a call whose accounts are known. */
MUST_USE enum fault task_issuers(struct worker_context *worker_context, struct call *call, int ns);
#define TASK_ISSUERS_OPERATION "issuers"

#endif
