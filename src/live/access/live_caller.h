/* live_caller: the account of a listener: from its session or service key (model/account/account.h), or its
 * token of an OpenID provider (operation/access/external_token.h), to what rules depend on.  The documents of
 * the account and of the provider's keys are loaded by live_accounts.h; until they are known, and while they
 * may have changed, nothing is sent. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_CALLER_H
#define STAMPD_LIVE_ACCESS_LIVE_CALLER_H

#include "base/arena.h"
#include "base/settings.h"
#include "model/namespace.h"
#include "model/rules/rules.h"
#include "operation/access/external_token.h"

struct live_caller;

/* A credential that is not well-formed is kept, too: it is never admitted.  `is_cookie`: it is ignored where
 * the namespace has no accounts. */
struct live_caller *live_caller_create(const struct settings *settings, struct bytes token, bool is_cookie)
    __attribute__((returns_nonnull));
void live_caller_destroy(struct live_caller *caller);       /* NULL is allowed */
size_t live_caller_bytes(const struct live_caller *caller); /* of memory, about; NULL is allowed */
bool live_caller_is_cookie(const struct live_caller *caller);

/* The issuer that its token names; NO_BYTES: it is not a token of a provider. */
struct bytes live_caller_issuer(const struct live_caller *caller);
enum { LIVE_CALLER_DOCUMENTS = 1 + ISSUER_KEYS_DOCUMENTS };
/* The documents that decide: the account, and of an issuer those of its keys; returns how many.  The names
 * are in the arena. */
size_t live_caller_name(const struct live_caller *caller, struct arena *arena,
                        struct document_name names_r[LIVE_CALLER_DOCUMENTS]);
/* Is it one of them, other than the state of the keys? */
bool live_caller_depends_on(const struct live_caller *caller, struct bytes class, struct bytes id);
/* Do they admit it?  What rules depend on is known from then on. */
MUST_USE enum token_verdict live_caller_admit(struct live_caller *caller, struct arena *arena,
                                              const struct issuers *issuers,
                                              const struct document *const documents[LIVE_CALLER_DOCUMENTS]);
const struct rules_caller *live_caller_rules(const struct live_caller *caller);
/* Has its session or token expired? */
bool live_caller_is_over(const struct live_caller *caller);

#endif
