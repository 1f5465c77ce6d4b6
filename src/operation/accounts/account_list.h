/* account_list: a page of the accounts of a namespace, for the administrator. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_LIST_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_LIST_H

#include "operation/accounts/account_gate.h"

/* Answers the wish {"name","limit","cursor"} with {"accounts":[…],"cursor"}: at most `limit` accounts, 1 to
 * 100, as account_change_write writes them.  With `name`, those whose name begins so, in the order of names;
 * without, all, in the order of ids.  A page may hold fewer, even none: only an absent cursor is the end.
 * FAULT_AARG: a member is malformed. */
MUST_USE enum fault account_list_answer(struct attempt *attempt, const struct reader *reader,
                                        const struct json *wish);

#endif
