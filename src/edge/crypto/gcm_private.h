/* gcm_private: AES-GCM of OpenSSL, as one call.  For the files of src/edge that encrypt; each has its own
 * keys, nonces and forms. */
#ifndef STAMPD_EDGE_CRYPTO_GCM_PRIVATE_H
#define STAMPD_EDGE_CRYPTO_GCM_PRIVATE_H

#include "base/base.h"
#include "base/bytes.h"
#include "edge/crypto/crypto_private.h"

enum { GCM_NONCE = 12, GCM_TAG = 16 };

/* Writes text.size + GCM_TAG bytes.  Never use a key and nonce twice.  `cipher`: AES-128-GCM or AES-256-GCM;
 * the key has its size; NULL: that of the context.  The context may be used again. */
void gcm_encrypt(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                 const unsigned char nonce[GCM_NONCE], struct bytes aad, struct bytes text,
                 unsigned char *sealed_r);
/* Writes sealed.size - GCM_TAG bytes; false: it was not encrypted so. */
MUST_USE bool gcm_decrypt(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                          const unsigned char nonce[GCM_NONCE], struct bytes aad, struct bytes sealed,
                          unsigned char *text_r);

#endif
