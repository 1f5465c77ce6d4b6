/* sealing_ciphers_private: ciphers of OpenSSL that keep their key between texts: to set a key costs more than
 * to encrypt a small text.  For src/seal/sealing.c.
 *
 * What is returned may be used until the next call of the same function.  For processes with one thread. */
#ifndef STAMPD_SEAL_SEALING_CIPHERS_PRIVATE_H
#define STAMPD_SEAL_SEALING_CIPHERS_PRIVATE_H

#include "base/base.h"
#include "edge/crypto/crypto_private.h"
#include "seal/sealing.h"
#include "seal/siv_private.h"

enum { SEALING_BLOCK = SIV_BLOCK };

const struct siv_block_cipher *sealing_ciphers_block(const unsigned char key[SEALING_KEY])
    __attribute__((returns_nonnull));
/* AES-256-GCM, without a key. */
EVP_CIPHER_CTX *sealing_ciphers_gcm(void) __attribute__((returns_nonnull));
/* AES-256-SIV under a key. */
const struct siv *sealing_ciphers_siv(const unsigned char key[SEALING_NAME_KEY])
    __attribute__((returns_nonnull));

#endif
