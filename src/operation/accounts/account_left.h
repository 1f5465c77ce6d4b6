/* account_left: what deleted accounts leave behind.
 *
 * The commit that deletes an account writes the document Ticket/left <account> and plans the task
 * `accountclean`, of which a namespace has one that waits and one that runs at most.  The task visits the
 * documents of the classes that the rules concern (model/rules/rules_left.h), page by page; each cycle is one
 * commit, bounded by limit_documents, and its checkpoint says where the next one continues.  At the end of
 * the walk the documents Ticket/left … that it has served are deleted: until then everything can be done
 * again.
 *
 * A request of the account that was under way may still commit until limit_operation_s later; a walk serves
 * the accounts that were deleted before that.  Every change is decided again by the newest document, which
 * the commit verifies. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_LEFT_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_LEFT_H

#include "operation/accounts/account_gate.h"

/* The account is deleted by this commit. */
MUST_USE enum fault account_left_add(struct attempt *attempt, struct bytes id);

#endif
