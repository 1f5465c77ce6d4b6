/* stored_caller: the caller for whom something is done after its request, by a task or a push message: what
 * is stored of its credential, and the rights that it has when it is done.
 *
 * The account is stored, and its rights are those of the moment at which something is done for it.  The roles
 * in a token of an OpenID provider are known from the token alone, so they are stored with it:
 * "token END ISSUER ROLE ROLE…", END the stamp at which the token ends, at most ISSUER_MAP_MOST roles.  They
 * hold until then, as long as the namespace accepts tokens of the issuer and maps a value to the role.
 *
 * A session or service key is stored as the work needs it: tasks store the words TASK_SESSION and TASK_KEY,
 * since they outlive a session; subscriptions store the key of its item, with which they end. */
#ifndef STAMPD_OPERATION_ACCESS_STORED_CALLER_H
#define STAMPD_OPERATION_ACCESS_STORED_CALLER_H

#include "model/document/document.h"
#include "operation/access/configurations.h"

/* The text of the token that the call was sent with, or of the one with which its task was requested; in the
 * arena.  NO_BYTES: another credential, or none. */
struct bytes stored_caller_token(const struct call *call);

/* What applies at this moment to a caller without the administrator's key. */
struct stored_caller_rights {
    const struct configuration *own; /* held by the request */
    const struct quotas *quotas;     /* held by the request; NULL: none */
    const struct filters *filters;   /* NULL: none */
    enum access_level level;
};
MUST_USE enum fault stored_caller_find_rights(struct worker_context *worker_context, struct call *call,
                                              struct stored_caller_rights *rights_r);

/* Is the account still served: the namespace has accounts; it is neither deleted nor disabled; of a service
 * key (`by_key`), not all are revoked; of a provider, the stored token holds?  Sets the caller, whose texts
 * are slices of the document and the configuration, or in the arena.  A session is not checked. */
MUST_USE bool stored_caller_is_served(struct arena *arena, const struct ns_accounts *accounts,
                                      struct bytes credential, const struct document *account, bool by_key,
                                      struct rules_caller *caller_r);

#endif
