/* account_invitation: the right to an account with a name, and the roles that an invitation gives.
 *
 * The configuration decides it for every way by which an account gets its name: register, and the conversion
 * of an anonymous account by account or confirm.  The administrator gives names whatever it says. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_INVITATION_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_INVITATION_H

#include "model/account/account.h"
#include "operation/attempt.h"

/* FAULT_SCLOSED: registration is closed, or needs an invitation and `invitation` is NO_BYTES. */
MUST_USE enum fault account_invitation_check(struct attempt *attempt, struct bytes invitation);
/* Finds the invitation: its roles, NULL: none, and its document.  FAULT_SKEY: wrong, used or expired. */
MUST_USE enum fault account_invitation_fetch(struct attempt *attempt, struct bytes invitation,
                                             const struct json **roles_r, struct draft **draft_r);
/* The same, and uses it up. */
MUST_USE enum fault account_invitation_take(struct attempt *attempt, struct bytes invitation,
                                            const struct json **roles_r);
/* An account without a name is to get one: checks the configuration, counts an attempt, and uses up the
 * member `invitation` of param, if it is there.  roles_r: those of the account and of the invitation; NULL:
 * they do not change. */
MUST_USE enum fault account_invitation_convert(struct attempt *attempt, const struct account *account,
                                               const struct json **roles_r);

#endif
