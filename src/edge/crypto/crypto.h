/* crypto: digests, key derivation, sealed texts, random bytes and constant-time comparison, behind OpenSSL.
 * Functions that can fail only when memory runs out end the process then. */
#ifndef STAMPD_EDGE_CRYPTO_CRYPTO_H
#define STAMPD_EDGE_CRYPTO_CRYPTO_H

#include "base/base.h"
#include "base/bytes.h"

enum { CRYPTO_SHA256_HEX = 64, CRYPTO_SHA256 = 32 };
enum { CRYPTO_KEY = 16, CRYPTO_NONCE = 12, CRYPTO_TAG = 16 }; /* of AES-128-GCM */

/* SHA-256 in lower-case hexadecimal, with a NUL. */
void crypto_sha256_hex(struct bytes text, char hex_r[CRYPTO_SHA256_HEX + 1]);
/* SHA-256 in bytes. */
void crypto_sha256(struct bytes text, unsigned char digest_r[CRYPTO_SHA256]);
/* HMAC with SHA-256 (RFC 2104). */
void crypto_hmac(struct bytes key, struct bytes text, unsigned char digest_r[CRYPTO_SHA256]);
/* Compares in a time that depends on the sizes only. */
bool crypto_equal(struct bytes a, struct bytes b);
/* Fills the buffer with random bytes; ends the process when the system has none. */
void crypto_random(void *buffer, size_t size);
/* HKDF with SHA-256, extract and expand (RFC 5869). */
void crypto_derive(struct bytes salt, struct bytes secret, struct bytes info, void *key_r, size_t size);
/* AES-128-GCM: writes the encrypted text and its tag, text.size + CRYPTO_TAG bytes.  Never use a key and
 * nonce twice. */
void crypto_seal(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes text, unsigned char *sealed_r);
/* Writes the text that crypto_seal encrypted, sealed.size - CRYPTO_TAG bytes; false: it was not sealed with
 * this key. */
MUST_USE bool crypto_open(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                          struct bytes sealed, unsigned char *text_r);

#endif
