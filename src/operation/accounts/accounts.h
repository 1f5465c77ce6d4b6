/* accounts: the operations on accounts (model/account/account.h), in namespaces that have accounts.
 *
 * | operation | param | for |
 * | --- | --- | --- |
 * | register | {"name","password","address","invitation",…}; without a name: anonymous | everybody |
 * | login | {"name","password","device","cookie"} | everybody |
 * | logout | {} | a session |
 * | account | {}, {"set":{…}} or {"delete":true}, with a proof | an account |
 * | sessions | {} or {"revoke":session, "others" or "all"} | an account |
 * | accounts | find, get, list, create, set, invite, key, revoke, delete | the administrator |
 * | passkey | begin, create, login, list, drop | an account, or everybody |
 * | confirm, reset, maillogin | a request of a mail, or {"ticket",…} | an account, or everybody |
 * | membership | invite, list, revoke, look, join | members of documents, and those who become one |
 * | whois | {"name"} or {"address"} | the callers that the namespace admits |
 *
 * They change documents of the reserved classes Account, Login and Ticket, which no rule can name.  Their
 * param and their answers contain secrets and are never stored. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNTS_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNTS_H

#include "operation/operation.h"

extern const struct operation accounts_account, accounts_accounts, accounts_confirm, accounts_issuers,
    accounts_login, accounts_logout, accounts_maillogin, accounts_membership, accounts_passkey,
    accounts_register, accounts_reset, accounts_sessions, accounts_whois;
/* Tasks that only the server schedules: accountmail {"kind","name","address","account"} sends a mail,
 * ticketend {"ticket"} deletes a ticket that has expired,
 * accountclean {} settles what deleted accounts have left (account_change.c), accountend {"account"} deletes
 * an anonymous account that is not used (account_end.h), accountsweep {} plans the ends of those that were
 * there before (account_end.c). */
extern const struct operation accounts_accountmail, accounts_ticketend, accounts_accountclean,
    accounts_accountend, accounts_accountsweep;

#endif
