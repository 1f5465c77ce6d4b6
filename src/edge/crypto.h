/* crypto: digests, random bytes and constant-time comparison, behind OpenSSL. */
#ifndef STAMPD_EDGE_CRYPTO_H
#define STAMPD_EDGE_CRYPTO_H

#include "base/base.h"
#include "base/bytes.h"

enum { CRYPTO_SHA256_HEX = 64 };

/* SHA-256 in lower-case hexadecimal, with a NUL. */
void crypto_sha256_hex(struct bytes text, char hex_r[CRYPTO_SHA256_HEX + 1]);
/* Compares in a time that depends on the sizes only. */
bool crypto_equal(struct bytes a, struct bytes b);
/* Fills with random bytes; ends the process when the system has none. */
void crypto_random(void *buffer, size_t size);

#endif
