/* caller: which account calls: checks the session or service key of a call (model/account/account.h), or its
 * token of an OpenID provider (external_token.h), once for each request.
 *
 * The credential is, in this order: a token in `Authorization: Bearer`; in a namespace with accounts, the
 * argument `key`, or the cookie __Host-stampd-<code>.  A wrong, expired or revoked one is refused; the call
 * is never continued as an anonymous one.  The argument `account`, if given, must be the credential's
 * account.
 *
 * This reads one document, Account/<id>, proven newest by the shared segment: logging out, disabling an
 * account and changing its roles are commits, and take effect at the next request of every worker.  For a
 * read with an age it may be older while PostgreSQL cannot be reached (operation/old_reads.h). */
#ifndef STAMPD_OPERATION_ACCESS_CALLER_H
#define STAMPD_OPERATION_ACCESS_CALLER_H

#include "model/document/document.h"
#include "model/namespace.h"
#include "operation/reply.h"
#include "operation/worker_context.h"

/* Sets call->caller, caller_session and is_by_cookie.  `has_key`: the call carries the administrator's key,
 * and a cookie is ignored.  FAULT_SKEY, with status 401, or FAULT_XBUSY while the keys of a provider
 * are unknown, recorded in the reply. */
MUST_USE enum fault caller_find(struct worker_context *worker_context, struct call *call,
                                const struct ns_accounts *accounts, bool has_key, struct reply *reply);

/* Is `text` "z_" and a session or a service key of an account of z that has the role `administrator`?
 * Reads one document, as caller_find does. */
MUST_USE enum fault caller_is_administrator(const struct worker_context *worker_context, struct call *call,
                                            struct bytes text, bool *is_right_r);

/* A session or service key, without its secret. */
struct caller_claim {
    bool is_service;
    struct bytes digest; /* SHA-256 of the token's secret in hexadecimal */
};
struct caller_proof {
    struct rules_caller caller;
    struct bytes session; /* the key of its item */
    int64_t expires;      /* a stamp; 0: never */
};
/* Does the snapshot of an account admit the claim now?  The texts are slices of the document, or in the
 * arena. */
MUST_USE bool caller_is_admitted(struct arena *arena, const struct document *account,
                                 const struct caller_claim *claim, struct caller_proof *proof_r);

/* Without a credential, of what was requested before: is the account neither deleted nor disabled, and its
 * service keys (`by_key`) not all revoked?  Its roles as of the snapshot.  Not for accounts of providers:
 * stored_caller.h. */
MUST_USE bool caller_is_served(struct arena *arena, const struct document *account, bool by_key,
                               struct rules_caller *caller_r);

/* FAULT_SKEY with status 401: `where` names the argument or header. */
enum fault caller_refuse(const struct worker_context *worker_context, struct call *call, struct reply *reply,
                         const char *where, const char *detail);

/* The header Set-Cookie of the namespace's cookie, in the arena; `token` empty: the cookie is removed. */
const char *caller_cookie(struct call *call, struct bytes token, int64_t seconds);

#endif
