/* digest: SHA-256 of a text that comes in pieces; crypto.h has it for one that is in memory. */
#ifndef STAMPD_EDGE_CRYPTO_DIGEST_H
#define STAMPD_EDGE_CRYPTO_DIGEST_H

#include "edge/crypto/crypto.h"

struct digest;

struct digest *digest_create(void) __attribute__((returns_nonnull));
void digest_destroy(struct digest *digest); /* NULL is allowed */
void digest_add(struct digest *digest, struct bytes piece);
/* The digest of all pieces; the next piece begins another text. */
void digest_end(struct digest *digest, unsigned char digest_r[CRYPTO_SHA256]);
/* The same in lower-case hexadecimal, with a NUL. */
void digest_end_hex(struct digest *digest, char hex_r[CRYPTO_SHA256_HEX + 1]);

#endif
