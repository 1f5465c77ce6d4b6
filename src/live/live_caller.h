/* live_caller: the account of a listener: from its session or service key (model/account.h) to what rules
 * depend on.  The document of the account is loaded by live_accounts.h; until it is known, and while it may
 * have changed, nothing is sent. */
#ifndef STAMPD_LIVE_LIVE_CALLER_H
#define STAMPD_LIVE_LIVE_CALLER_H

#include "base/arena.h"
#include "model/rules.h"

struct live_caller;

/* A credential that is not well-formed is kept, too: it is never admitted.  `is_cookie`: it is ignored where
 * the namespace has no accounts. */
struct live_caller *live_caller_create(struct bytes token, bool is_cookie) __attribute__((returns_nonnull));
void live_caller_destroy(struct live_caller *caller);       /* NULL is allowed */
size_t live_caller_bytes(const struct live_caller *caller); /* of memory, about; NULL is allowed */
bool live_caller_is_cookie(const struct live_caller *caller);

/* The id of the account; empty: the credential is not well-formed. */
struct bytes live_caller_account(const struct live_caller *caller);
/* Does the document of its account admit it?  What rules depend on is known from then on. */
MUST_USE bool live_caller_admit(struct live_caller *caller, struct arena *arena,
                                const struct document *account);
const struct rules_caller *live_caller_rules(const struct live_caller *caller);
/* Has its session expired? */
bool live_caller_is_over(const struct live_caller *caller);

#endif
