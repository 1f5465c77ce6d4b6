/* accounts: the operations on accounts (model/account/account.h), in namespaces that have accounts.
 *
 * | operation | param | for |
 * | --- | --- | --- |
 * | register | {"name","password","address","invitation","device","cookie"}; without a name: anonymous |
 * everybody | | login | {"name","password","device","cookie"} | everybody | | logout | {} | a session | |
 * account | {} or {"set":{"name","address","password"}} or {"delete":true}, with {"password"}: the present
 * one | an account | | sessions | {} or {"revoke":session, "others" or "all"} | an account | | accounts | one
 * of find, get, list, create, set, invite, key, revoke, delete | the administrator | | passkey | one of
 * begin, create, login, list, drop | an account, or everybody |
 *
 * They change documents of the reserved classes Account, Login and Ticket, which no rule can name.  Their
 * param and their answers contain secrets and are never stored. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNTS_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNTS_H

#include "operation/operation.h"

extern const struct operation accounts_account, accounts_accounts, accounts_confirm, accounts_issuers,
    accounts_login, accounts_logout, accounts_passkey, accounts_register, accounts_reset, accounts_sessions;
/* Tasks that only the server schedules: accountmail {"kind","name","address","account"} sends a mail,
 * ticketend {"ticket"} deletes a ticket that has expired,
 * accountclean {} settles what deleted accounts have left (account_change.c), accountend {"account"} deletes
 * an anonymous account that is not used (account_end.h), accountsweep {} plans the ends of those that were
 * there before (account_sweep.c). */
extern const struct operation accounts_accountmail, accounts_ticketend, accounts_accountclean,
    accounts_accountend, accounts_accountsweep;

#endif
