/* account_mail: requests of mails about accounts.  The mail is sent by a task, which alone looks at the
 * account: a request reads and writes the same, and takes the same time, whether the account exists or not.
 *
 * The param of the task has no secret: {"kind", and "name", "address" or "account"}.  Equal requests that
 * wait are one task. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_MAIL_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_MAIL_H

#include "model/account/letter.h"
#include "operation/accounts/account_gate.h"

bool account_mail_is_set_up(const struct attempt *attempt);

struct account_mail_wish {
    enum letter_kind kind;
    struct bytes name, address, account; /* NO_BYTES: not given */
};
/* Plans the mail. */
MUST_USE enum fault account_mail_plan(struct attempt *attempt, const struct account_mail_wish *wish);
/* Checks, counts it for `subject`, plans, and answers {"sent":true}. */
MUST_USE enum fault account_mail_request(struct attempt *attempt, const struct account_mail_wish *wish,
                                         struct bytes subject);
/* The same to the account of the member `name` or `address` of the param, which has no other: the answer, and
 * the work, do not depend on whether there is such an account. */
MUST_USE enum fault account_mail_request_by(struct attempt *attempt, enum letter_kind kind);
/* The member `address`, to which mails can be sent; absent: NO_BYTES.  lower_r: in lower case. */
MUST_USE enum fault account_mail_read_address(const struct reader *reader, const struct json *object,
                                              struct bytes *address_r, struct bytes *lower_r);

#endif
