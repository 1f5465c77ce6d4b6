/* webauthn: what authenticators sign (WebAuthn level 3), behind libfido2, which is used for its formats and
 * signatures alone: no device is ever opened.
 *
 * An authenticator binds what it signs to a relying party by the digest of the party's id.  A user must have
 * been present and verified, else nothing is accepted.  What the client says of its page (the client data) is
 * signed too, but read elsewhere (model/account/passkey.h). */
#ifndef STAMPD_EDGE_CRYPTO_WEBAUTHN_H
#define STAMPD_EDGE_CRYPTO_WEBAUTHN_H

#include "base/arena.h"
#include "base/bytes.h"

/* Is there libfido2 in this build?  Without it no key is valid, and nothing is verified. */
bool webauthn_is_there(void);
#define WEBAUTHN_MISSING "This server was built without libfido2: it has no passkeys."

enum webauthn_algorithm { WEBAUTHN_ES256 = -7, WEBAUTHN_EDDSA = -8, WEBAUTHN_RS256 = -257 };
enum { WEBAUTHN_ID_LEAST = 16, WEBAUTHN_ID_MOST = 1023, WEBAUTHN_KEY_MOST = 259 }; /* bytes */

/* A public key: a point of P-256 (64 bytes), of Ed25519 (32), or an RSA key of 2048 bits (259). */
struct webauthn_key {
    int64_t algorithm;
    struct bytes key;
};
bool webauthn_is_key(const struct webauthn_key *key);

struct webauthn_credential {
    struct bytes id;
    struct webauthn_key key;
    int64_t count;   /* of signatures; 0: the authenticator does not count */
    bool may_backup; /* the key may be copied to other devices of its owner */
};
/* Reads an attestation object, the answer to a request without attestation: the format `none`, or `packed`
 * with a signature by the new key itself, which is verified.  `rp`: id of the relying party.  The texts are
 * in the arena.  Returns NULL, or one sentence about what is wrong. */
const char *webauthn_read_credential(struct arena *arena, const char *rp, struct bytes client_data,
                                     struct bytes attestation, struct webauthn_credential *credential_r);

struct webauthn_assertion {
    struct bytes client_data, authenticator_data, signature;
};
/* Has the key signed the assertion, for this relying party?  `count_r`, `may_backup_r`: as in a credential.
 * False also if a text is malformed. */
MUST_USE bool webauthn_verify(const char *rp, const struct webauthn_key *key,
                              const struct webauthn_assertion *assertion, int64_t *count_r,
                              bool *may_backup_r);
/* A key that belongs to nobody: to verify with it takes the time of a real one. */
struct webauthn_key webauthn_key_of_nobody(void);

#endif
