/* crypto: OpenSSL's digests, key derivation, ciphers, random generator and constant-time comparison. */
#include "edge/crypto/crypto.h"

#include <limits.h>

#include "base/coding/hex.h"
#include "edge/crypto/crypto_private.h"
#include "edge/crypto/gcm_private.h"

void crypto_sha256(struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned int size = 0;
    if (!EVP_Digest(text.data ? text.data : "", text.size, digest_r, &size, EVP_sha256(), NULL) ||
        size != CRYPTO_SHA256)
        log_fatal("SHA-256 is not available");
}

bool crypto_md5(struct bytes text, unsigned char digest_r[CRYPTO_MD5])
{
    unsigned int size = 0;
    return EVP_Digest(text.data ? text.data : "", text.size, digest_r, &size, EVP_md5(), NULL) &&
           size == CRYPTO_MD5;
}

void crypto_sha256_hex(struct bytes text, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    unsigned char digest[CRYPTO_SHA256];
    crypto_sha256(text, digest);
    hex_write(digest, sizeof digest, hex_r);
    hex_r[CRYPTO_SHA256_HEX] = '\0';
}

void crypto_hmac(struct bytes key, struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned int size = CRYPTO_SHA256;
    assert(key.size <= INT_MAX);
    crypto_must(HMAC(EVP_sha256(), key.data ? key.data : "", (int)key.size, (const unsigned char *)text.data,
                     text.size, digest_r, &size) != NULL);
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

static OSSL_PARAM octets(const char *name, struct bytes bytes)
{
    return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)(bytes.data ? bytes.data : ""),
                                             bytes.size);
}

void crypto_derive(struct bytes salt, struct bytes secret, struct bytes info, void *key_r, size_t size)
{
    EVP_KDF *method = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(method);
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        octets(OSSL_KDF_PARAM_SALT, salt),
        octets(OSSL_KDF_PARAM_KEY, secret),
        octets(OSSL_KDF_PARAM_INFO, info),
        OSSL_PARAM_construct_end(),
    };
    crypto_must(context && EVP_KDF_derive(context, key_r, size, params) == 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(method);
}

void crypto_seal(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes text, unsigned char *sealed_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    gcm_encrypt(context, EVP_aes_128_gcm(), key, nonce, BYTES(""), text, sealed_r);
    EVP_CIPHER_CTX_free(context);
}

bool crypto_open(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes sealed, unsigned char *text_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is_whole = gcm_decrypt(context, EVP_aes_128_gcm(), key, nonce, BYTES(""), sealed, text_r);
    EVP_CIPHER_CTX_free(context);
    return is_whole;
}
