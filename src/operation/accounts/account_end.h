/* account_end: the end of anonymous accounts that are not used (`anonymous_days`, model/namespace.h).
 *
 * A request writes nothing: the end of a session is the last time at which it can have been used.  The commit
 * that begins a session of an anonymous account plans the task `accountend` {"account"} for the end of that
 * session and `anonymous_days` later; an account has one that waits at most.  When it runs, it decides by the
 * account and the configuration as they are then: it deletes the account, plans itself again, or ends, if the
 * account was converted, or is no longer bounded. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_END_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_END_H

#include "operation/accounts/account_gate.h"

/* A session of the account, in whose draft it is already, begins with this commit. */
MUST_USE enum fault account_end_plan(struct attempt *attempt, const struct draft *account, struct bytes id);

#endif
