/* account_session: sessions of an account within a draft: begun, ended, listed. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_SESSION_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_SESSION_H

#include "operation/accounts/account_gate.h"

/* How a client wants its session. */
struct session_wish {
    struct bytes device; /* text of the client for the list of sessions; empty: none */
    bool is_cookie;      /* the token goes into the namespace's cookie, not into the answer */
};
/* The members `device` and `cookie`.  FAULT_SORIGIN: the page may not have its visitor's browser keep a
 * cookie: it would log the visitor in to an account of its own choice. */
MUST_USE enum fault account_session_read(const struct reader *reader, const struct json *object,
                                         struct session_wish *wish_r);

/* A new account id, in the arena. */
struct bytes account_session_new_id(struct attempt *attempt);
/* A random secret of 43 characters, and the key of the item or document that is found by it; in the arena. */
struct bytes account_session_new_secret(struct attempt *attempt, struct bytes *key_r);

/* Begins a session: removes those that have expired, and the oldest of too many; answers
 * {"account","token","expires"}, or with a cookie {"account","expires"}.  Of an account that may be
 * anonymous, account_end_plan follows. */
void account_session_begin(struct attempt *attempt, struct draft *account, struct bytes id,
                           const struct session_wish *wish);
/* Adds a service key; returns its token. */
const char *account_session_add_key(struct attempt *attempt, struct draft *account, struct bytes id,
                                    struct bytes label);
/* Ends the sessions and keys whose item key begins with `prefix`, except `kept` (NO_BYTES: no exception);
 * returns how many. */
size_t account_session_end(struct attempt *attempt, struct draft *account, struct bytes prefix,
                           struct bytes kept);
/* Appends [{"session","created","expires","device","current","service"}…]; `session` is the beginning of the
 * item's key, enough to revoke it. */
void account_session_write(struct attempt *attempt, const struct draft *account);
/* Has it a service key? */
bool account_session_has_key(struct attempt *attempt, const struct draft *account);
/* When the last of its sessions expires; STAMP_MIN: it has none. */
int64_t account_session_last(struct attempt *attempt, const struct draft *account);
size_t account_session_count(const struct draft *account);

enum { ACCOUNT_SESSION_NAME = 16 }; /* characters of `session` */

#endif
