/* external_token: is a token of an OpenID provider valid, and whose is it?  Used by workers, which remember
 * the answer (verified_tokens.h), and by live events. */
#ifndef STAMPD_OPERATION_ACCESS_EXTERNAL_TOKEN_H
#define STAMPD_OPERATION_ACCESS_EXTERNAL_TOKEN_H

#include "model/document/document.h"
#include "model/account/issuer.h"
#include "model/account/jwt.h"
#include "model/rules/rules.h"
#include "operation/access/issuer_keys.h"

enum token_verdict {
    TOKEN_VALID,
    TOKEN_WRONG, /* it is refused */
    TOKEN_LATER  /* its key may be fetched soon */
};

/* What a valid token proves. */
struct external_proof {
    const struct issuer *issuer;
    struct bytes account; /* in the arena */
    uint32_t roles;       /* of the issuer's map: jwt_find_roles */
    int64_t end_ms;       /* since 1970: it must be verified again from then on */
    int64_t token_end_ms; /* it is not valid from then on, whatever the keys */
};

/* The token and its issuer; nothing is verified yet.  False: it is malformed, or of no issuer of the
 * namespace.
 */
MUST_USE bool external_token_read(struct arena *arena, const struct issuers *issuers, struct bytes text,
                                  struct jwt *jwt_r, const struct issuer **issuer_r);
/* Checks its claims and its signature. */
MUST_USE enum token_verdict external_token_check(const struct settings *settings, struct arena *arena,
                                                 const struct jwt *jwt, const struct issuer *issuer,
                                                 const struct issuer_keys *keys, int64_t now_ms,
                                                 struct external_proof *proof_r);
/* The caller: the roles of the token and those that the document of the account adds; in the arena, or slices
 * of the document and the issuer.  False: the account is disabled, or its document is malformed. */
MUST_USE bool external_token_admit(struct arena *arena, const struct external_proof *proof,
                                   const struct document *account, struct rules_caller *caller_r);

#endif
