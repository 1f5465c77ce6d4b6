/* crypto: OpenSSL's EVP digests, its random generator, its comparison. */
#include "edge/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/log.h"

void crypto_sha256_hex(struct bytes text, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!EVP_Digest(text.data ? text.data : "", text.size, digest, &size, EVP_sha256(), NULL) || size != 32)
        log_fatal("SHA-256 is not available");
    for (unsigned int i = 0; i < size; i++) {
        hex_r[2 * i] = digits[digest[i] >> 4];
        hex_r[2 * i + 1] = digits[digest[i] & 15];
    }
    hex_r[CRYPTO_SHA256_HEX] = '\0';
}

bool crypto_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && CRYPTO_memcmp(a.data, b.data, a.size) == 0;
}

void crypto_random(void *buffer, size_t size)
{
    if (RAND_bytes(buffer, (int)size) != 1)
        log_fatal("no random bytes from the system");
}
