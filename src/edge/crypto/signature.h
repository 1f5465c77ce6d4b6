/* signature: checks signatures with the public keys of others, behind OpenSSL: RS256, ES256, and EdDSA with
 * Ed25519 (RFC 7518, RFC 8037).
 *
 * OpenSSL is used directly: in Debian 12, libjwt reads no key sets and has no EdDSA, and neither has cjose.
 * What a library would add beyond this file is the choice of the algorithm by the token, which is not wanted:
 * a key has one algorithm. */
#ifndef STAMPD_EDGE_CRYPTO_SIGNATURE_H
#define STAMPD_EDGE_CRYPTO_SIGNATURE_H

#include "base/bytes.h"

enum signature_algorithm { SIGNATURE_RS256, SIGNATURE_ES256, SIGNATURE_EDDSA };
enum { SIGNATURE_ALGORITHMS = 3 };

enum { SIGNATURE_RSA_LEAST = 2048, SIGNATURE_RSA_MOST = 8192 }; /* bits */

/* The numbers of a public key, with the most significant byte first. */
struct signature_numbers {
    enum signature_algorithm algorithm;
    struct bytes n, e; /* RS256: modulus; exponent, odd, from 3 to 2^32 - 1 */
    struct bytes x, y; /* ES256: a point of P-256, 32 bytes each; EDDSA: x alone, 32 bytes */
};

struct signature_key;

/* NULL: the numbers are not a key, or an RSA key of another size. */
MUST_USE struct signature_key *signature_open(const struct signature_numbers *numbers);
void signature_close(struct signature_key *key); /* NULL is allowed */
/* Has the key's owner signed the text?  ES256: r and s, 32 bytes each. */
MUST_USE bool signature_is_valid(const struct signature_key *key, struct bytes text, struct bytes signature);

#endif
