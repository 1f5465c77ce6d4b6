/* digest: OpenSSL's SHA-256, fetched once. */
#include "edge/crypto/digest.h"

#include <stdlib.h>

#include "base/coding/hex.h"
#include "base/memory.h"
#include "edge/crypto/crypto_private.h"

struct digest {
    EVP_MD *method;
    EVP_MD_CTX *context;
};

struct digest *digest_create(void)
{
    struct digest *digest = memory_zeroed(1, sizeof *digest, "digest");
    digest->method = EVP_MD_fetch(NULL, "SHA256", NULL);
    digest->context = EVP_MD_CTX_new();
    crypto_must(digest->method && digest->context &&
                EVP_DigestInit_ex2(digest->context, digest->method, NULL) == 1);
    return digest;
}

void digest_destroy(struct digest *digest)
{
    if (!digest)
        return;
    EVP_MD_CTX_free(digest->context);
    EVP_MD_free(digest->method);
    free(digest);
}

void digest_add(struct digest *digest, struct bytes piece)
{
    crypto_must(EVP_DigestUpdate(digest->context, piece.data ? piece.data : "", piece.size) == 1);
}

void digest_end(struct digest *digest, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned int size = CRYPTO_SHA256;
    crypto_must(EVP_DigestFinal_ex(digest->context, digest_r, &size) == 1 && size == CRYPTO_SHA256 &&
                EVP_DigestInit_ex2(digest->context, digest->method, NULL) == 1);
}

void digest_end_hex(struct digest *digest, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    unsigned char bytes[CRYPTO_SHA256];
    digest_end(digest, bytes);
    hex_write(bytes, sizeof bytes, hex_r);
    hex_r[CRYPTO_SHA256_HEX] = '\0';
}
