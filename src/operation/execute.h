/* execute: runs the operation that a request calls: finds it, checks access, and goes through work →
 * validation (attempt.h) → afterwork → sync (architecture.md). */
#ifndef STAMPD_OPERATION_EXECUTE_H
#define STAMPD_OPERATION_EXECUTE_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* Checks a call before its body is read, by its address and the key in its header: how large its body may be
 * (call->body_most), and whether it is wrong already. */
MUST_USE enum fault execute_admit(struct worker_context *worker_context, struct call *call,
                                  struct reply *reply);

/* Appends the answer to the reply's body.  The reply need not have recorded the fault. */
MUST_USE enum fault execute_call(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply);

#endif
