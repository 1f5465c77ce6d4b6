/* account_gate: what the operations on accounts check first, and the documents that they find. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_GATE_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_GATE_H

#include "model/account/account.h"
#include "operation/attempt.h"
#include "operation/reader.h"

/* What the tries of a call keep: attempts are counted once, and digests computed once. */
struct account_kept {
    bool is_counted, is_mail_counted, is_account_counted;
    struct bytes counted_name; /* NO_BYTES: none */
    const char *compared;      /* the digest with which the password was compared; NULL: none */
    bool is_right;
    const char *made; /* the digest of the new password; NULL: none */
};
struct account_kept *account_gate_kept(struct attempt *attempt);

struct reader account_gate_reader(struct attempt *attempt);

/* The call of a task has no configuration: sets its accounts, those of the namespace as they are now. */
MUST_USE enum fault account_gate_find_accounts(struct attempt *attempt);
/* FAULT_SCLOSED: the namespace has no accounts. */
MUST_USE enum fault account_gate_check(struct attempt *attempt);
/* The same, and fetches the caller's account; FAULT_SCLOSED also: nobody has signed in, or by a service key.
 */
MUST_USE enum fault account_gate_fetch_caller(struct attempt *attempt, struct draft **account_r);
/* Is the caller an account of an OpenID provider?  account_gate_fetch_caller refuses it with FAULT_SCLOSED.
 */
bool account_gate_is_external(const struct attempt *attempt);
/* As account_gate_read, of an account of a provider, which need not have a document. */
MUST_USE enum fault account_gate_read_external(struct attempt *attempt, const struct draft *draft,
                                               struct account *account_r);
/* Counts an attempt of the client, and one at `name` (NO_BYTES: none); FAULT_XBUSY: too many, by
 * limit_client_attempts or limit_name_attempts.  An address cannot use up the attempts of another, but a site
 * of many (address.h) has not more than SITE_ADDRESSES addresses. */
MUST_USE enum fault account_gate_count(struct attempt *attempt, struct bytes name);
/* Counts a question of the caller's account, whatever its address, by limit_client_attempts. */
MUST_USE enum fault account_gate_count_account(struct attempt *attempt);
/* What was counted was no attempt, since no place was free to make it. */
void account_gate_give_back(struct attempt *attempt);
/* An attempt has failed: for a minute, the client comes after those without a failure. */
void account_gate_note_failure(struct attempt *attempt);
bool account_gate_has_failed(struct attempt *attempt);
/* Counts a mail of this kind that the client requests for the subject, an address or a name in lower case;
 * FAULT_XBUSY: too many, by limit_client_mails, limit_address_mails or limit_namespace_mails.  Each kind has
 * its own count for a subject, so that mails of one kind never use up those of another, and none of them
 * limits logins. */
MUST_USE enum fault account_gate_count_mail(struct attempt *attempt, const char *kind, struct bytes subject);
/* The client has shown that the name is its own: its attempts at it are forgotten. */
void account_gate_forget(struct attempt *attempt, struct bytes name);

struct document_name account_gate_name(struct bytes id);         /* Account/<id> */
struct document_name account_gate_login_name(struct bytes name); /* Login/<name in lower case> */
/* The id in a document Login/…, in the arena; NO_BYTES: none. */
struct bytes account_gate_find_id(struct attempt *attempt, const struct draft *login);
/* The same; an id that no account has, always the same for `text`, if there is none: what is read then does
 * not depend on the account. */
struct bytes account_gate_find_id_or_nobody(struct attempt *attempt, const struct draft *login,
                                            struct bytes text, bool *is_there_r);
/* The same from the content of its item Acc; NO_BYTES: there is none. */
struct bytes account_gate_id_of(struct attempt *attempt, struct bytes content);

/* Reads a draft's Self and Roles; FAULT_BCONTENT: malformed. */
MUST_USE enum fault account_gate_read(struct attempt *attempt, const struct draft *draft,
                                      struct account *account_r);
void account_gate_write(struct attempt *attempt, struct draft *draft, const struct account *account);

/* The member `name` in lower case, NO_BYTES: absent. */
MUST_USE enum fault account_gate_read_name(const struct reader *reader, const struct json *object,
                                           struct bytes *given_r, struct bytes *normal_r);
/* The member `address`; absent or null: NO_BYTES. */
MUST_USE enum fault account_gate_read_address(const struct reader *reader, const struct json *object,
                                              struct bytes *address_r);
/* The member `roles`; NULL: absent. */
MUST_USE enum fault account_gate_read_roles(const struct reader *reader, const struct json *object,
                                            const struct json **roles_r);
/* Makes Login/<normal> name the account; FAULT_AUNIQUE: it names another. */
MUST_USE enum fault account_gate_take_name(struct attempt *attempt, struct bytes normal, struct bytes id);

#endif
