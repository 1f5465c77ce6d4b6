/* crypto: OpenSSL's digests, key derivation, ciphers, random generator and constant-time comparison. */
#include "edge/crypto/crypto.h"

#include <string.h>

#include "base/coding/hex.h"
#include "edge/crypto/crypto_private.h"
#include "edge/crypto/gcm_private.h"

/* SHA-256, fetched once: a fetch costs more than the digest of a small text. */
static const EVP_MD *crypto_sha256_method(void)
{
    static const EVP_MD *method;
    if (!method)
        method = EVP_MD_fetch(NULL, "SHA256", NULL);
    crypto_must(method != NULL);
    return method;
}

void crypto_sha256(struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned int size = 0;
    if (!EVP_Digest(text.data ? text.data : "", text.size, digest_r, &size, crypto_sha256_method(), NULL) ||
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

enum { HMAC_BLOCK = 64, HMAC_INNER = 0x36, HMAC_OUTER = 0x5c };

/* The digest of the block, each byte changed by `pad`, and the text. */
static void crypto_digest_padded(EVP_MD_CTX *context, const unsigned char block[HMAC_BLOCK],
                                 unsigned char pad, struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned char padded[HMAC_BLOCK];
    unsigned int size = CRYPTO_SHA256;
    for (size_t i = 0; i < HMAC_BLOCK; i++)
        padded[i] = block[i] ^ pad;
    crypto_must(EVP_DigestInit_ex2(context, crypto_sha256_method(), NULL) == 1 &&
                EVP_DigestUpdate(context, padded, sizeof padded) == 1 &&
                EVP_DigestUpdate(context, text.data ? text.data : "", text.size) == 1 &&
                EVP_DigestFinal_ex(context, digest_r, &size) == 1 && size == CRYPTO_SHA256);
    OPENSSL_cleanse(padded, sizeof padded);
}

/* OpenSSL 3 fetches HMAC and its digest at each call, which takes longer than the two digests. */
void crypto_hmac(struct bytes key, struct bytes text, unsigned char digest_r[CRYPTO_SHA256])
{
    unsigned char block[HMAC_BLOCK] = {0}, inner[CRYPTO_SHA256];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    crypto_must(context != NULL);
    if (key.size > HMAC_BLOCK)
        crypto_sha256(key, block);
    else if (key.size)
        memcpy(block, key.data, key.size);
    crypto_digest_padded(context, block, HMAC_INNER, text, inner);
    crypto_digest_padded(context, block, HMAC_OUTER, (struct bytes){(const char *)inner, sizeof inner},
                         digest_r);
    EVP_MD_CTX_free(context);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(inner, sizeof inner);
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

static const EVP_CIPHER *crypto_aes_128_gcm(void)
{
    static const EVP_CIPHER *cipher;
    return crypto_cipher(&cipher, "AES-128-GCM");
}

void crypto_seal(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes text, unsigned char *sealed_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    gcm_encrypt(context, crypto_aes_128_gcm(), key, nonce, BYTES(""), text, sealed_r);
    EVP_CIPHER_CTX_free(context);
}

bool crypto_open(const unsigned char key[CRYPTO_KEY], const unsigned char nonce[CRYPTO_NONCE],
                 struct bytes sealed, unsigned char *text_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool is_whole = gcm_decrypt(context, crypto_aes_128_gcm(), key, nonce, BYTES(""), sealed, text_r);
    EVP_CIPHER_CTX_free(context);
    return is_whole;
}
