/* curve: keys of the curve P-256, behind OpenSSL: shared secrets (ECDH) and signatures (ES256).
 *
 * A secret is a number of 32 bytes; a point is uncompressed: 4 and its two coordinates, as RFC 8291 requires.
 * Keys are values; the owner of a key erases it (explicit_bzero). */
#ifndef STAMPD_EDGE_CRYPTO_CURVE_H
#define STAMPD_EDGE_CRYPTO_CURVE_H

#include "base/bytes.h"

enum { CURVE_SECRET = 32, CURVE_POINT = 65, CURVE_SIGNATURE = 64 };

struct curve_key {
    unsigned char secret[CURVE_SECRET];
    unsigned char point[CURVE_POINT]; /* its public half */
};

/* Generates a key. */
void curve_make_key(struct curve_key *key_r);
/* Derives the key of a secret; false: the number is 0 or too large. */
MUST_USE bool curve_take_key(const unsigned char secret[CURVE_SECRET], struct curve_key *key_r);
/* Is it a point of the curve? */
bool curve_is_point(const unsigned char point[CURVE_POINT]);
/* Computes the shared secret of two keys; false: `other` is not a point of the curve. */
MUST_USE bool curve_agree(const struct curve_key *own, const unsigned char other[CURVE_POINT],
                          unsigned char shared_r[CURVE_SECRET]);
/* ECDSA over the SHA-256 of the text: r and s, 32 bytes each (RFC 7518, section 3.4). */
void curve_sign(const struct curve_key *key, struct bytes text, unsigned char signature_r[CURVE_SIGNATURE]);

#endif
