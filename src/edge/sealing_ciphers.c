/* sealing_ciphers: a table of the contexts used last, each in the place of the first byte of its key; keys
 * are random. */
#include "edge/sealing_ciphers_private.h"

#include <string.h>

enum { KEPT = 16 };

/* Under the key of a kept context; one that is free has no context. */
struct kept_cipher {
    unsigned char key[SEALING_NAME_KEY];
    EVP_CIPHER_CTX *context;
};

/* Fetched once: a fetch costs as much as a small text. */
static const EVP_CIPHER *fetch(const EVP_CIPHER **cipher, const char *name)
{
    if (!*cipher)
        *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    crypto_must(*cipher != NULL);
    return *cipher;
}

/* The place of the key; `is_known_r`: its context has the key. */
static struct kept_cipher *find(struct kept_cipher *table, const unsigned char *key, size_t size,
                                bool *is_known_r)
{
    struct kept_cipher *kept = &table[key[0] % KEPT];
    *is_known_r = kept->context && CRYPTO_memcmp(kept->key, key, size) == 0;
    if (!kept->context)
        kept->context = EVP_CIPHER_CTX_new();
    crypto_must(kept->context != NULL);
    memcpy(kept->key, key, size);
    return kept;
}

static void free_all(struct kept_cipher *table)
{
    for (size_t i = 0; i < KEPT; i++)
        EVP_CIPHER_CTX_free(table[i].context);
    OPENSSL_cleanse(table, KEPT * sizeof *table);
}

/* --- blocks --- */

static struct kept_cipher blocks[KEPT];
static struct sealing_block_cipher block_ciphers[KEPT];

static void derive_subkey(struct sealing_block_cipher *cipher)
{
    unsigned char *subkey = cipher->subkey;
    int size = 0;
    memset(subkey, 0, SEALING_BLOCK);
    crypto_must(EVP_EncryptUpdate(cipher->context, subkey, &size, subkey, SEALING_BLOCK) == 1);
    unsigned char carry = subkey[0] >> 7;
    for (int i = 0; i < SEALING_BLOCK - 1; i++)
        subkey[i] = (unsigned char)(subkey[i] << 1 | subkey[i + 1] >> 7);
    subkey[SEALING_BLOCK - 1] = (unsigned char)(subkey[SEALING_BLOCK - 1] << 1 ^ (carry ? 0x87 : 0));
}

const struct sealing_block_cipher *sealing_ciphers_block(const unsigned char key[SEALING_KEY])
{
    static const EVP_CIPHER *aes;
    bool is_known;
    struct kept_cipher *kept = find(blocks, key, SEALING_KEY, &is_known);
    struct sealing_block_cipher *cipher = &block_ciphers[kept - blocks];
    if (is_known)
        return cipher;
    cipher->context = kept->context;
    crypto_must(EVP_EncryptInit_ex2(kept->context, fetch(&aes, "AES-256-ECB"), key, NULL, NULL) == 1 &&
                EVP_CIPHER_CTX_set_padding(kept->context, 0) == 1);
    derive_subkey(cipher);
    return cipher;
}

/* --- the others --- */

static EVP_CIPHER_CTX *gcm_context; /* has the key of the last text */

EVP_CIPHER_CTX *sealing_ciphers_gcm(void)
{
    static const EVP_CIPHER *gcm;
    if (!gcm_context) {
        gcm_context = EVP_CIPHER_CTX_new();
        crypto_must(gcm_context &&
                    EVP_CipherInit_ex2(gcm_context, fetch(&gcm, "AES-256-GCM"), NULL, NULL, 1, NULL) == 1);
    }
    return gcm_context;
}

static struct kept_cipher names[2][KEPT];
static EVP_CIPHER_CTX *copied;

/* OpenSSL encrypts one text by a context of this cipher: a copy of the kept one, which stays as it is. */
EVP_CIPHER_CTX *sealing_ciphers_siv(const unsigned char key[SEALING_NAME_KEY], bool encrypts)
{
    static const EVP_CIPHER *siv;
    bool is_known;
    struct kept_cipher *kept = find(names[encrypts], key, SEALING_NAME_KEY, &is_known);
    if (!is_known)
        crypto_must(
            EVP_CipherInit_ex2(kept->context, fetch(&siv, "AES-256-SIV"), key, NULL, encrypts, NULL) == 1);
    if (!copied)
        copied = EVP_CIPHER_CTX_new();
    crypto_must(copied && EVP_CIPHER_CTX_copy(copied, kept->context) == 1);
    return copied;
}

void sealing_forget(void)
{
    free_all(blocks);
    free_all(names[0]);
    free_all(names[1]);
    OPENSSL_cleanse(block_ciphers, sizeof block_ciphers);
    EVP_CIPHER_CTX_free(copied);
    copied = NULL;
    EVP_CIPHER_CTX_free(gcm_context);
    gcm_context = NULL;
}
