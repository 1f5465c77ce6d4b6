/* account_proof: a caller shows that the account is its own before it changes it: a session alone may be in
 * other hands for a while, and must not suffice to stay in them. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_PROOF_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_PROOF_H

#include "operation/accounts/account_gate.h"

/* The proof is the member `password` or `passkey` of `object`; an account that has neither a password nor a
 * passkey needs none.  FAULT_SKEY with status 401: it is wrong. */
MUST_USE enum fault account_proof_check(struct attempt *attempt, const struct reader *reader,
                                        const struct json *object, struct draft *draft,
                                        const struct account *account);
/* Can somebody sign in by a password? */
bool account_proof_has_password(const struct draft *draft);
/* FAULT_SCLOSED: the namespace has no passkeys. */
MUST_USE enum fault account_proof_check_passkeys(struct attempt *attempt);

#endif
