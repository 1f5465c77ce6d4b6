/* siv_private: AES-256-SIV (RFC 5297) with one text of associated data, for names: short texts under a key
 * that stays set.  The same cipher of OpenSSL has to be copied with its key for each text, which costs
 * several times as much as to encrypt a name.  For the files of src/edge that encrypt. */
#ifndef STAMPD_SEAL_SIV_PRIVATE_H
#define STAMPD_SEAL_SIV_PRIVATE_H

#include "base/bytes.h"
#include "edge/crypto/crypto_private.h"

enum { SIV_KEY = 64, SIV_BLOCK = 16, SIV_TAG = SIV_BLOCK };

/* AES-256 under a key, for single blocks; and the subkey of its CMAC for a last block that is whole.  Zeros:
 * no key. */
struct siv_block_cipher {
    EVP_CIPHER_CTX *context;
    unsigned char subkey[SIV_BLOCK];
};

/* The key may replace another one. */
void siv_block_set_key(struct siv_block_cipher *cipher, const unsigned char key[SIV_KEY / 2]);
/* Frees the context and erases all. */
void siv_block_forget(struct siv_block_cipher *cipher);

struct siv {
    struct siv_block_cipher mac, counter; /* under the first half of the key; the second */
    unsigned char start[SIV_BLOCK];       /* the doubled CMAC of zeros */
};

void siv_set_key(struct siv *siv, const unsigned char key[SIV_KEY]);
void siv_forget(struct siv *siv);

/* Writes SIV_TAG + text.size bytes. */
void siv_encrypt(const struct siv *siv, struct bytes aad, struct bytes text, unsigned char *sealed_r);
/* Writes sealed.size - SIV_TAG bytes; false: it was not encrypted so, and nothing of it is left there. */
MUST_USE bool siv_decrypt(const struct siv *siv, struct bytes aad, struct bytes sealed,
                          unsigned char *text_r);

#endif
