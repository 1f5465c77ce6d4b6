/* passkey: a public key by which an account signs in (WebAuthn), the item Key of its document, and what a
 * browser says when it uses one.
 *
 * Two classes of items of Account/<id>:
 *
 * - Key, its key the SHA-256 of the credential's id in hexadecimal: {"id","algorithm","key","count","backup",
 *   "name","created","used"}; id and key in base64url, `backup` if the key may be on several devices.
 * - Once: {"floor","used":[[issued,"end of the challenge"],…]}, the challenges that were used last.
 *
 * Challenges are used once.  Of those that were used, the account remembers the last PASSKEY_USED_MOST, and
 * the time at which the newest one it has forgotten was issued: `floor`.  A challenge that is remembered, or
 * was not issued after the floor, is refused.  This does not depend on clocks that agree: a challenge is
 * forgotten only when the floor has risen to it.
 *
 * Pure: no I/O, no signatures (edge/crypto/webauthn.h). */
#ifndef STAMPD_MODEL_ACCOUNT_PASSKEY_H
#define STAMPD_MODEL_ACCOUNT_PASSKEY_H

#include "base/arena.h"
#include "edge/crypto/webauthn.h"
#include "model/account/relying_party.h"

enum {
    PASSKEY_KEYS_MOST = 10, /* of one account */
    PASSKEY_USED_MOST = 8,
    PASSKEY_CLIENT_DATA_MOST = 4096 /* bytes */
};

struct passkey {
    struct webauthn_credential credential;
    struct bytes name;     /* text for the list; empty: none */
    int64_t created, used; /* stamps */
};
/* The content of an item Key; false: malformed. */
MUST_USE bool passkey_read(struct arena *arena, struct bytes content, struct passkey *passkey_r);
struct bytes passkey_write(struct arena *arena, const struct passkey *passkey);

/* The bytes of a text in base64url without padding, at most `most`; false: it is none, or has more. */
MUST_USE bool passkey_read_base64(struct arena *arena, struct bytes text, size_t most, struct bytes *bytes_r);

/* Marks a challenge as used in the content of the item Once (NO_BYTES: there is none): the new content;
 * false: it was used before, or the content is malformed.  `issued`: milliseconds since 1970. */
MUST_USE bool passkey_use_challenge(struct arena *arena, struct bytes content, int64_t issued,
                                    struct bytes challenge, struct bytes *content_r);

enum passkey_ceremony { PASSKEY_CREATE, PASSKEY_GET };
/* Reads the client data of a ceremony; returns NULL, and the challenge, or one sentence about what is wrong:
 * another ceremony, a page that is none of the relying party's, or a frame of another one. */
const char *passkey_read_client_data(struct arena *arena, const struct relying_party *party,
                                     enum passkey_ceremony ceremony, struct bytes text,
                                     struct bytes *challenge_r);

#endif
