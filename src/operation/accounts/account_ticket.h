/* account_ticket: what the secret of a mail permits: the document Ticket/<SHA-256 of the secret>, item Mail
 * {"kind","account","address","proof","expires"}.  Used once; deleted by a task after its expiry. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_TICKET_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_TICKET_H

#include "model/account/letter.h"
#include "operation/accounts/account_gate.h"

struct account_ticket {
    enum letter_kind kind;
    struct bytes account; /* empty: it makes one */
    struct bytes address;
    struct bytes proof; /* of account_ticket_proof, when the ticket was made; empty: none */
    struct draft *draft;
};
/* The document of what a secret permits, also that of an invitation; and its key, in the arena. */
struct document_name account_ticket_name(struct bytes key);
struct bytes account_ticket_key(struct attempt *attempt, struct bytes secret);
/* Writes Ticket/<key>, which expires after these minutes, and plans its deletion. */
MUST_USE enum fault account_ticket_create(struct attempt *attempt, struct bytes key,
                                          const struct account_ticket *ticket, int64_t minutes);
/* How the operations with mails begin: checks that there are accounts, and reads the member `ticket` of
 * `param`; NO_BYTES: a mail is requested. */
MUST_USE enum fault account_ticket_read(struct attempt *attempt, struct bytes *secret_r);
/* Finds the ticket of this secret and kind; the caller deletes the draft.  FAULT_SKEY: it is wrong, used or
 * expired; the fault is the same in all cases. */
MUST_USE enum fault account_ticket_fetch(struct attempt *attempt, struct bytes secret, enum letter_kind kind,
                                         struct account_ticket *ticket_r);
enum fault account_ticket_refuse(struct attempt *attempt);
/* Plans the deletion of Ticket/<key> at this stamp. */
MUST_USE enum fault account_ticket_plan_end(struct attempt *attempt, struct bytes key, int64_t expires);
/* Changes with what ends a ticket of this kind, in the arena: with the password, and of LETTER_LOGIN also
 * with each use of such a ticket of the account. */
struct bytes account_ticket_proof(struct attempt *attempt, enum letter_kind kind,
                                  const struct draft *account);
/* The account of a ticket to sign in or to set a password: FAULT_SKEY unless it is not disabled, has
 * confirmed the address of the ticket, and has the proof of then. */
MUST_USE enum fault account_ticket_fetch_account(struct attempt *attempt, const struct account_ticket *ticket,
                                                 struct draft **draft_r, struct account *account_r);
/* From now on every other ticket to sign in to this account is refused; deletes this one. */
void account_ticket_use_login(struct attempt *attempt, struct draft *account, struct account_ticket *ticket);

#endif
