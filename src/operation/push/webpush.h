/* webpush: a message to a browser that is closed, through the push service of its vendor: encrypted for the
 * browser (RFC 8291, in the coding aes128gcm of RFC 8188), with a proof of the sender (VAPID, RFC 8292).
 *
 * Pure: random input is an argument, so results are reproducible. */
#ifndef STAMPD_OPERATION_PUSH_WEBPUSH_H
#define STAMPD_OPERATION_PUSH_WEBPUSH_H

#include "base/arena.h"
#include "edge/crypto/curve.h"

enum {
    WEBPUSH_AUTH = 16,
    WEBPUSH_SALT = 16,
    WEBPUSH_ENDPOINT_MOST = 2048, /* bytes */
    WEBPUSH_BODY_MOST = 4096,     /* every push service accepts it (RFC 8030, section 7.2) */
    WEBPUSH_TEXT_MOST = 3993,     /* of it: the text with its padding */
};

/* The destination of a subscription's messages. */
struct webpush_target {
    struct bytes endpoint, origin; /* https://host/path, and https://host of it */
    unsigned char point[CURVE_POINT];
    unsigned char auth[WEBPUSH_AUTH];
};

/* Parses a browser's subscription: an address, and its keys in base64.  `may_be_local`: the address may also
 * be http: on the loopback.  Returns why the subscription is unusable, in one sentence, or NULL. */
const char *webpush_read_target(struct arena *arena, struct bytes endpoint, struct bytes p256dh,
                                struct bytes auth, bool may_be_local, struct webpush_target *target_r);

/* Encrypts the text with `padding` bytes that hide its size, together at most WEBPUSH_TEXT_MOST, as one body.
 * `once` is a key for this message alone. */
struct bytes webpush_encrypt(struct arena *arena, const struct webpush_target *target,
                             const struct curve_key *idempotency, const unsigned char salt[WEBPUSH_SALT],
                             struct bytes text, size_t padding);

/* Value of the header Authorization: permits the owner of the key, reachable at `contact` (mailto: or
 * https:), to send to the origin for half a day from `now_ms` on. */
struct bytes webpush_authorization(struct arena *arena, const struct curve_key *key, struct bytes origin,
                                   const char *contact, int64_t now_ms);

#endif
