/* jwt: tokens of OpenID providers: JSON Web Tokens, signed (RFC 7515, 7519, 8725).
 *
 * The order is: jwt_read, which trusts nothing; the issuer that it names, if the namespace has it; the
 * signature, by a key of that issuer; jwt_refuse, and jwt_find_roles.
 *
 * The header selects the key by `kid`, and its `alg` must be one that the issuer may use and that of the key:
 * a token never selects how it is checked.  There is neither "none" nor HMAC.  Keys and addresses in the
 * header (jwk, jku, x5u, x5c) are never used; `crit` is refused.  Pure: no I/O. */
#ifndef STAMPD_MODEL_ACCOUNT_JWT_H
#define STAMPD_MODEL_ACCOUNT_JWT_H

#include "model/account/issuer.h"

struct jwt {
    enum signature_algorithm algorithm;
    struct bytes key; /* kid; NO_BYTES: none */
    struct bytes issuer, subject;
    const struct json *claims;           /* an object */
    int64_t expires_s;                   /* since 1970; exp */
    struct bytes signed_text, signature; /* the bytes of both */
};

/* Has it the form of one: three parts, the first of which could be an object?  So a token is told apart from
 * other keys. */
bool jwt_is_one(struct bytes text);
/* Its texts are slices of the token, or in the arena.  NULL: read; otherwise why not, a clause. */
MUST_USE const char *jwt_read(struct arena *arena, struct bytes text, struct jwt *jwt_r);
/* Are its claims valid for this issuer at this time?  NULL: they are; otherwise why not, a clause. */
MUST_USE const char *jwt_refuse(const struct jwt *jwt, const struct issuer *issuer, int64_t now_s);
/* Which roles of the issuer's map the claim gives: bits by place in the map. */
uint32_t jwt_find_roles(const struct jwt *jwt, const struct issuer *issuer);

#endif
