/* task_sweep: creates the task that finds the anonymous accounts whose end nobody has planned
 * (accounts/account_end.c), when a namespace bounds them by another `anonymous_days` than it did.
 *
 * The document Ticket/ends says by which number of days all accounts were visited: item Days, its content the
 * number. */
#ifndef STAMPD_OPERATION_TASKS_TASK_SWEEP_H
#define STAMPD_OPERATION_TASKS_TASK_SWEEP_H

#include "model/document/document.h"
#include "operation/call.h"
#include "operation/worker_context.h"

#define TASK_SWEEP_OPERATION "accountsweep"
#define TASK_SWEEP_ITEM      "Days"

struct document_name task_sweep_name(void);
/* From the content of Days; NO_BYTES, or malformed: 0. */
int64_t task_sweep_read(struct bytes days);

/* For a call whose accounts are known. */
MUST_USE enum fault task_sweep(struct worker_context *worker_context, struct call *call, int ns);

#endif
