/* crypto: OpenSSL's digests, key derivation, ciphers, random generator and constant-time comparison. */
#include "edge/crypto.h"

#include <limits.h>

#include "base/hex.h"
#include "edge/crypto_private.h"

void crypto_sha256(struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned int size = 0;
    if (!EVP_Digest(text.data ? text.data : "", text.size, digest_r, &size, EVP_sha256(), NULL) ||
        size != CRYPTO_SHA256)
        log_fatal("SHA-256 is not available");
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
    int size = 0, rest = 0;
    assert(text.size <= INT_MAX - CRYPTO_TAG);
    crypto_must(
        context && EVP_EncryptInit_ex2(context, EVP_aes_128_gcm(), key, nonce, NULL) == 1 &&
        EVP_EncryptUpdate(context, sealed_r, &size, (const unsigned char *)text.data, (int)text.size) == 1 &&
        EVP_EncryptFinal_ex(context, sealed_r + size, &rest) == 1 && (size_t)(size + rest) == text.size &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CRYPTO_TAG, sealed_r + text.size) == 1);
    EVP_CIPHER_CTX_free(context);
}

bool crypto_open(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes sealed, unsigned char *text_r)
{
    unsigned char tag[CRYPTO_TAG];
    int size = 0, rest = 0;
    if (sealed.size < CRYPTO_TAG || sealed.size > INT_MAX)
        return false;
    size_t text_size = sealed.size - CRYPTO_TAG;
    memcpy(tag, sealed.data + text_size, sizeof tag);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    crypto_must(
        context && EVP_DecryptInit_ex2(context, EVP_aes_128_gcm(), key, nonce, NULL) == 1 &&
        EVP_DecryptUpdate(context, text_r, &size, (const unsigned char *)sealed.data, (int)text_size) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CRYPTO_TAG, tag) == 1);
    bool is_whole = EVP_DecryptFinal_ex(context, text_r + size, &rest) == 1;
    EVP_CIPHER_CTX_free(context);
    return is_whole;
}
