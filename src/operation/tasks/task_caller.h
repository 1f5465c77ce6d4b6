/* task_caller: on whose behalf a task runs, and with which rights.
 *
 * A task that a client requested is stored with the account of its caller, and runs with the rights that the
 * account has at that moment: under the rules of the namespace as they are then, with the roles that it has
 * then (stored_caller.h); without an account as anybody.  A task of the server, of an administrator, of SQL
 * or of a module runs with all rights; if a module requested it for a caller, its operation knows the
 * account.
 *
 * The account is read in the transaction of each try and verified with it: a task whose commit comes after
 * that of a revocation has not used what was revoked. */
#ifndef STAMPD_OPERATION_TASKS_TASK_CALLER_H
#define STAMPD_OPERATION_TASKS_TASK_CALLER_H

#include "operation/attempt.h"

/* What the caller has signed in with, as tasks store it; NO_BYTES: it has no account. */
struct bytes task_caller_credential(const struct call *call);
/* Do they run with the same rights, so that they may share a commit? */
bool task_caller_is_same(const struct task *one, const struct task *other);

/* Before the work of each try: sets caller, rules, level and quotas of the task's call.  FAULT_SACCOUNT: the
 * account is no longer served; FAULT_SCLOSED: the operation is closed to it now.  Both are final,
 * and recorded in the reply. */
MUST_USE enum fault task_caller_enter(struct attempt *attempt);

#endif
