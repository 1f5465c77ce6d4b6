/* issuer: OpenID providers whose tokens a namespace accepts: the member `issuers` of its configuration's
 * `accounts`, an array of at most 8 objects.
 *
 * - issuer: https://…, exactly as in the tokens' `iss`.
 * - audiences: array of 1 to 8 texts, one of which is in the tokens' `aud`.
 * - jwks: https://…, where the keys are; absent: as issuer/.well-known/openid-configuration states.
 * - algorithms: array of RS256, ES256, EdDSA; absent: all.
 * - roles: {"claim":name or array of names, a path,"map":{value:role}}, roles that values of a claim stand
 * for; absent: none.
 * - leeway_s: 0 to 300, how far clocks may differ; absent: 60.
 *
 * Pure: no I/O. */
#ifndef STAMPD_MODEL_ACCOUNT_ISSUER_H
#define STAMPD_MODEL_ACCOUNT_ISSUER_H

#include "base/arena.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"
#include "edge/crypto/signature.h"

enum {
    ISSUER_MOST = 8,
    ISSUER_AUDIENCES_MOST = 8,
    ISSUER_NAME_MOST = 255, /* bytes */
    ISSUER_ADDRESS_MOST = 500,
    ISSUER_PATH_MOST = 4,     /* names */
    ISSUER_MAP_MOST = 32,     /* values of the claim */
    ISSUER_LEEWAY_MOST = 300, /* s */
    ISSUER_SUBJECT_MOST = 255,
    ISSUER_DOCUMENT_ID = 43 /* characters of base64url */
};

struct issuer_mapping {
    struct bytes value, role;
};
struct issuer {
    struct bytes name, jwks;             /* jwks empty: to be discovered */
    unsigned char digest[CRYPTO_SHA256]; /* of the name */
    const struct json *audiences;        /* an array */
    bool algorithms[SIGNATURE_ALGORITHMS];
    struct bytes path[ISSUER_PATH_MOST]; /* of the claim */
    size_t path_count;
    struct issuer_mapping map[ISSUER_MAP_MOST];
    size_t map_count;
    int64_t leeway_s;
};
struct issuers {
    size_t count;
    struct issuer list[ISSUER_MOST];
};

/* Reads the member; the texts are slices of it, or in the arena.  False: it is malformed. */
MUST_USE bool issuer_read(struct arena *arena, const struct json *value, const struct issuers **issuers_r);
/* NULL: none has this name. */
const struct issuer *issuer_find(const struct issuers *issuers, struct bytes name);

/* Is it an address of an issuer or its keys: https://host, with a port and a path if need be, without a user
 * or a fragment? */
bool issuer_is_address(struct bytes text, size_t most);
/* Algorithms by their names in JOSE. */
MUST_USE bool issuer_find_algorithm(struct bytes name, enum signature_algorithm *algorithm_r);
const char *issuer_algorithm_word(enum signature_algorithm algorithm);

/* The account of a subject: the same id on every host, 22 characters: 126 bits of a SHA-256 of both texts,
 * and an "x".  The random id of another account encodes 16 bytes and so ends with A, Q, g or w: none is that
 * of a subject.  Two subjects have the same with a probability of 2^-126; who finds two in 2^63 tries has two
 * names of one account of his own. */
struct bytes issuer_account(struct arena *arena, struct bytes issuer, struct bytes subject);
/* Is the id of this form? */
bool issuer_is_account(struct bytes id);
/* The id of the document Issuer/<id> with the keys of an issuer. */
struct bytes issuer_document_id(struct arena *arena, struct bytes issuer);

#endif
