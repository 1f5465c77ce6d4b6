/* siv: S2V, that is CMAC of the associated data, then of the text; and the counter mode from that tag. */
#include "seal/siv_private.h"

#include <string.h>

/* --- blocks --- */

static void encrypt(const struct siv_block_cipher *cipher, unsigned char block[SIV_BLOCK])
{
    int size = 0;
    crypto_must(EVP_EncryptUpdate(cipher->context, block, &size, block, SIV_BLOCK) == 1 && size == SIV_BLOCK);
}

static void siv_add(unsigned char block[SIV_BLOCK], const unsigned char *other)
{
    for (int i = 0; i < SIV_BLOCK; i++)
        block[i] ^= other[i];
}

/* Multiplies by x. */
static void multiply(unsigned char block[SIV_BLOCK])
{
    const unsigned char carry = block[0] >> 7;
    for (int i = 0; i < SIV_BLOCK - 1; i++)
        block[i] = (unsigned char)(block[i] << 1 | block[i + 1] >> 7);
    block[SIV_BLOCK - 1] = (unsigned char)(block[SIV_BLOCK - 1] << 1 ^ (0x87 & -carry));
}

/* A block of fewer bytes than it has. */
static void pad(unsigned char block[SIV_BLOCK], const void *text, size_t size)
{
    memset(block, 0, SIV_BLOCK);
    if (size)
        memcpy(block, text, size);
    block[size] = 0x80;
}

void siv_block_set_key(struct siv_block_cipher *cipher, const unsigned char key[SIV_KEY / 2])
{
    static const EVP_CIPHER *aes;
    if (!cipher->context)
        cipher->context = EVP_CIPHER_CTX_new();
    crypto_must(cipher->context &&
                EVP_EncryptInit_ex2(cipher->context, crypto_cipher(&aes, "AES-256-ECB"), key, NULL, NULL) ==
                    1 &&
                EVP_CIPHER_CTX_set_padding(cipher->context, 0) == 1);
    memset(cipher->subkey, 0, SIV_BLOCK);
    encrypt(cipher, cipher->subkey);
    multiply(cipher->subkey);
}

void siv_block_forget(struct siv_block_cipher *cipher)
{
    EVP_CIPHER_CTX_free(cipher->context);
    OPENSSL_cleanse(cipher, sizeof *cipher);
}

/* --- tags --- */

/* Whole blocks. */
static void absorb(const struct siv *siv, unsigned char state[SIV_BLOCK], const unsigned char *text,
                   size_t size)
{
    for (; size; text += SIV_BLOCK, size -= SIV_BLOCK) {
        siv_add(state, text);
        encrypt(&siv->mac, state);
    }
}

/* The CMAC of what the state has absorbed and of the text. */
static void siv_finish(const struct siv *siv, unsigned char state[SIV_BLOCK], const void *text, size_t size)
{
    unsigned char last[SIV_BLOCK], subkey[SIV_BLOCK];
    const unsigned char *bytes = text;
    const size_t before = size ? (size - 1) / SIV_BLOCK * SIV_BLOCK : 0, rest = size - before;
    absorb(siv, state, bytes, before);
    memcpy(subkey, siv->mac.subkey, sizeof subkey);
    if (rest == SIV_BLOCK) {
        memcpy(last, bytes + before, sizeof last);
    } else {
        pad(last, rest ? bytes + before : NULL, rest);
        multiply(subkey);
    }
    siv_add(last, subkey);
    OPENSSL_cleanse(subkey, sizeof subkey);
    absorb(siv, state, last, sizeof last);
}

static void compute_tag(const struct siv *siv, struct bytes aad, struct bytes text,
                        unsigned char tag_r[SIV_TAG])
{
    unsigned char sum[SIV_BLOCK] = {0}, end[2 * SIV_BLOCK];
    siv_finish(siv, sum, aad.data, aad.size);
    siv_add(sum, siv->start);
    memset(tag_r, 0, SIV_TAG);
    if (text.size < SIV_BLOCK) {
        pad(end, text.data, text.size);
        multiply(sum);
        siv_add(end, sum);
        siv_finish(siv, tag_r, end, SIV_BLOCK);
        return;
    }
    /* The sum is added to the last bytes, which begin within a block. */
    const size_t size = SIV_BLOCK + text.size % SIV_BLOCK, before = text.size - size;
    absorb(siv, tag_r, (const unsigned char *)text.data, before);
    memcpy(end, text.data + before, size);
    siv_add(end + size - SIV_BLOCK, sum);
    siv_finish(siv, tag_r, end, size);
}

/* Encrypts or decrypts. */
static void run_counter(const struct siv *siv, const unsigned char tag[SIV_TAG], const char *text,
                        size_t size, unsigned char *text_r)
{
    unsigned char counter[SIV_BLOCK], stream[SIV_BLOCK];
    memcpy(counter, tag, sizeof counter);
    counter[8] &= 0x7f; /* by the RFC, so that it may be added to as 32 or 64 bits */
    counter[12] &= 0x7f;
    for (size_t at = 0; at < size; at++) {
        if (at % SIV_BLOCK == 0) {
            memcpy(stream, counter, sizeof stream);
            encrypt(&siv->counter, stream);
            for (int i = SIV_BLOCK - 1; i >= 0 && ++counter[i] == 0; i--)
                ;
        }
        text_r[at] = (unsigned char)((unsigned char)text[at] ^ stream[at % SIV_BLOCK]);
    }
}

/* --- texts --- */

void siv_set_key(struct siv *siv, const unsigned char key[SIV_KEY])
{
    static const unsigned char zeros[SIV_BLOCK];
    siv_block_set_key(&siv->mac, key);
    siv_block_set_key(&siv->counter, key + SIV_KEY / 2);
    memset(siv->start, 0, SIV_BLOCK);
    siv_finish(siv, siv->start, zeros, sizeof zeros);
    multiply(siv->start);
}

void siv_forget(struct siv *siv)
{
    siv_block_forget(&siv->mac);
    siv_block_forget(&siv->counter);
    OPENSSL_cleanse(siv, sizeof *siv);
}

void siv_encrypt(const struct siv *siv, struct bytes aad, struct bytes text, unsigned char *sealed_r)
{
    compute_tag(siv, aad, text, sealed_r);
    run_counter(siv, sealed_r, text.data, text.size, sealed_r + SIV_TAG);
}

bool siv_decrypt(const struct siv *siv, struct bytes aad, struct bytes sealed, unsigned char *text_r)
{
    unsigned char tag[SIV_TAG];
    if (sealed.size < SIV_TAG)
        return false;
    const size_t size = sealed.size - SIV_TAG;
    run_counter(siv, (const unsigned char *)sealed.data, sealed.data + SIV_TAG, size, text_r);
    compute_tag(siv, aad, (struct bytes){(const char *)text_r, size}, tag);
    const bool is_whole = CRYPTO_memcmp(tag, sealed.data, SIV_TAG) == 0;
    if (!is_whole)
        OPENSSL_cleanse(text_r, size);
    return is_whole;
}
