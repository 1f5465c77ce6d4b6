/* sealing_ciphers: tables of the ciphers used last, each in the place of the first byte of its key; keys
 * are random. */
#include "seal/sealing_ciphers_private.h"

#include <string.h>

enum { KEPT = 16 };

/* The key of a kept cipher; one that is free has none. */
struct kept_key {
    bool is_set;
    unsigned char key[SEALING_NAME_KEY];
};

/* The place of the key, which is written there; `is_known_r`: it was there already. */
static size_t sealing_ciphers_find(struct kept_key *table, const unsigned char *key, size_t size,
                                   bool *is_known_r)
{
    struct kept_key *kept = &table[key[0] % KEPT];
    *is_known_r = kept->is_set && CRYPTO_memcmp(kept->key, key, size) == 0;
    if (!*is_known_r)
        memcpy(kept->key, key, size);
    kept->is_set = true;
    return (size_t)(kept - table);
}

/* --- blocks --- */

static struct kept_key block_keys[KEPT];
static struct siv_block_cipher blocks[KEPT];

const struct siv_block_cipher *sealing_ciphers_block(const unsigned char key[SEALING_KEY])
{
    bool is_known;
    struct siv_block_cipher *cipher = &blocks[sealing_ciphers_find(block_keys, key, SEALING_KEY, &is_known)];
    if (!is_known)
        siv_block_set_key(cipher, key);
    return cipher;
}

/* --- the others --- */

static EVP_CIPHER_CTX *gcm_context; /* has the key of the last text */

EVP_CIPHER_CTX *sealing_ciphers_gcm(void)
{
    static const EVP_CIPHER *gcm;
    if (!gcm_context) {
        gcm_context = EVP_CIPHER_CTX_new();
        crypto_must(gcm_context && EVP_CipherInit_ex2(gcm_context, crypto_cipher(&gcm, "AES-256-GCM"), NULL,
                                                      NULL, 1, NULL) == 1);
    }
    return gcm_context;
}

static struct kept_key name_keys[KEPT];
static struct siv names[KEPT];

const struct siv *sealing_ciphers_siv(const unsigned char key[SEALING_NAME_KEY])
{
    bool is_known;
    struct siv *siv = &names[sealing_ciphers_find(name_keys, key, SEALING_NAME_KEY, &is_known)];
    if (!is_known)
        siv_set_key(siv, key);
    return siv;
}

void sealing_forget(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        siv_block_forget(&blocks[i]);
        siv_forget(&names[i]);
    }
    OPENSSL_cleanse(block_keys, sizeof block_keys);
    OPENSSL_cleanse(name_keys, sizeof name_keys);
    EVP_CIPHER_CTX_free(gcm_context);
    gcm_context = NULL;
}
