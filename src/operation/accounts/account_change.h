/* account_change: changes of an account, by itself or by the administrator. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_CHANGE_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_CHANGE_H

#include "operation/accounts/account_gate.h"

/* What changes; NO_BYTES, NULL: it stays. */
struct account_change {
    struct bytes given, name; /* as given, and in lower case */
    struct bytes address;     /* empty: removed */
    struct bytes password;
    const struct json *roles;    /* an array */
    const struct json *disabled; /* true or false, as `confirmed` */
    const struct json *confirmed;
    const struct json *hidden;
};
/* The members name, address (null removes it), password, roles, disabled, confirmed, hidden, as far as the
 * caller has admitted them. */
MUST_USE enum fault account_change_read(const struct reader *reader, const struct json *object,
                                        struct account_change *change_r);
/* Applies it to the draft and to `account`, which was read from it.  Another address is not confirmed; a mail
 * informs the former one if it was. */
MUST_USE enum fault account_change_apply(struct attempt *attempt, struct draft *draft, struct bytes id,
                                         struct account *account, const struct account_change *change);
/* Deletes the account, its name and its confirmed address, and plans the end of what belongs to it
 * (account_change.c).  An account of a provider goes on with the provider's tokens: only what the
 * administrator gave it is deleted. */
MUST_USE enum fault account_change_delete(struct attempt *attempt, struct draft *draft,
                                          const struct account *account);
/* Appends
 * {"account","name","address","issuer","subject","confirmed","anonymous","external","disabled","hidden",
 * "roles","created"}, without what is false or absent. */
void account_change_write(struct attempt *attempt, struct bytes id, const struct account *account);
/* The same without the closing brace. */
void account_change_write_open(struct attempt *attempt, struct bytes id, const struct account *account);

#endif
