/* account_password: passwords in operations: read, digested and compared, by at most argon2_share of the
 * workers at once.  What a try has computed is kept for the next one. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_PASSWORD_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_PASSWORD_H

#include "operation/accounts/account_gate.h"

/* The member, 8 to 1,024 bytes; absent: NO_BYTES, refused when it `is_needed`. */
MUST_USE enum fault account_password_read(const struct reader *reader, const struct json *object,
                                          const char *member, bool is_needed, struct bytes *password_r);
/* Sets the item Secret.  FAULT_XBUSY: the share is used up. */
MUST_USE enum fault account_password_set(struct attempt *attempt, struct draft *account,
                                         struct bytes password);
/* Is it the account's?  The same work for an account that does not exist or has no password. */
MUST_USE enum fault account_password_compare(struct attempt *attempt, const struct draft *account,
                                             struct bytes password, bool *is_right_r);
/* FAULT_SKEY with status 401. */
enum fault account_password_refuse(struct attempt *attempt, const char *detail);

#endif
