/* webpush: a message to a browser that is closed, by the push service of its vendor: encrypted for the
 * browser (RFC 8291, in the coding aes128gcm of RFC 8188), and with a proof of who sends (VAPID, RFC 8292).
 *
 * Pure: what is random is given, so that what comes out can be told. */
#ifndef STAMPD_OPERATION_PUSH_WEBPUSH_H
#define STAMPD_OPERATION_PUSH_WEBPUSH_H

#include "base/arena.h"
#include "edge/curve.h"

enum {
    WEBPUSH_AUTH = 16,
    WEBPUSH_SALT = 16,
    WEBPUSH_ENDPOINT_MOST = 2048, /* bytes */
    WEBPUSH_BODY_MOST = 4096,     /* what every push service takes (RFC 8030, section 7.2) */
    WEBPUSH_TEXT_MOST = 3993,     /* of it: padding included */
};

/* Where messages of a subscription go. */
struct webpush_target {
    struct bytes endpoint, origin; /* https://host/path, and https://host of it */
    unsigned char point[CURVE_POINT];
    unsigned char auth[WEBPUSH_AUTH];
};

/* Reads what a browser tells of its subscription: an address, and its keys in base64.  `may_be_local`: the
 * address may also be http: on the loopback.  Gives why nothing can be sent there, in one sentence, or NULL.
 */
const char *webpush_read_target(struct arena *arena, struct bytes endpoint, struct bytes p256dh,
                                struct bytes auth, bool may_be_local, struct webpush_target *target_r);

/* The text with `padding` bytes that hide its size, together no more than WEBPUSH_TEXT_MOST, as one encrypted
 * body.  `once` is a key for this message alone. */
struct bytes webpush_encrypt(struct arena *arena, const struct webpush_target *target,
                             const struct curve_key *idempotency, const unsigned char salt[WEBPUSH_SALT],
                             struct bytes text, size_t padding);

/* Value of the header Authorization: the owner of the key, to be reached at `contact` (mailto: or https:),
 * may send to the origin for half a day from `now_ms` on. */
struct bytes webpush_authorization(struct arena *arena, const struct curve_key *key, struct bytes origin,
                                   const char *contact, int64_t now_ms);

#endif
