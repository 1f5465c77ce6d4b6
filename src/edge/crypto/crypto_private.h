/* crypto_private: OpenSSL for the files of src/edge that wrap it; the only file that includes it. */
#ifndef STAMPD_EDGE_CRYPTO_CRYPTO_PRIVATE_H
#define STAMPD_EDGE_CRYPTO_CRYPTO_PRIVATE_H

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/log.h"

/* Checks calls that fail only when memory runs out, or when OpenSSL was built without a feature that we
 * need. */
static inline void crypto_must(bool is_done)
{
    if (!is_done)
        log_fatal("OpenSSL: %s", ERR_reason_error_string(ERR_peek_last_error()));
}

/* A cipher, fetched once by each that uses it: a fetch costs as much as a small text. */
static inline const EVP_CIPHER *crypto_cipher(const EVP_CIPHER **kept, const char *name)
{
    if (!*kept)
        *kept = EVP_CIPHER_fetch(NULL, name, NULL);
    crypto_must(*kept != NULL);
    return *kept;
}

#endif
