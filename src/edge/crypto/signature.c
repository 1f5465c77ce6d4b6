/* signature: passes numbers to OpenSSL's keys as parameters, as curve.c does. */
#include "edge/crypto/signature.h"
#include "base/memory.h"

#include <stdlib.h>

#include "edge/crypto/crypto_private.h"

enum { HALF = 32, POINT = 65, UNCOMPRESSED = 4, ED25519 = 32, ED25519_SIGNATURE = 64, EXPONENT_MOST = 4 };

struct signature_key {
    enum signature_algorithm algorithm;
    EVP_PKEY *key;
};

/* --- keys --- */

static EVP_PKEY *open_parameters(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    crypto_must(context && EVP_PKEY_fromdata_init(context) == 1);
    if (EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

static BIGNUM *signature_read_number(struct bytes bytes)
{
    BIGNUM *number = BN_bin2bn((const unsigned char *)bytes.data, (int)bytes.size, NULL);
    crypto_must(number != NULL);
    return number;
}

static EVP_PKEY *open_numbers(const BIGNUM *n, const BIGNUM *e)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    crypto_must(builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
                OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    crypto_must(params != NULL);
    EVP_PKEY *key = open_parameters("RSA", params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static EVP_PKEY *open_rsa(struct bytes modulus, struct bytes exponent)
{
    if (modulus.size > SIGNATURE_RSA_MOST / 8 + 1 || !exponent.size || exponent.size > EXPONENT_MOST)
        return NULL;
    BIGNUM *n = signature_read_number(modulus), *e = signature_read_number(exponent);
    int bits = BN_num_bits(n);
    bool is_key = bits >= SIGNATURE_RSA_LEAST && bits <= SIGNATURE_RSA_MOST && BN_is_odd(n) && BN_is_odd(e) &&
                  !BN_is_one(e);
    EVP_PKEY *key = is_key ? open_numbers(n, e) : NULL;
    BN_free(n);
    BN_free(e);
    return key;
}

static EVP_PKEY *open_point(struct bytes x, struct bytes y)
{
    char group[] = "P-256";
    unsigned char point[POINT] = {UNCOMPRESSED};
    if (x.size != HALF || y.size != HALF)
        return NULL;
    memcpy(point + 1, x.data, HALF);
    memcpy(point + 1 + HALF, y.data, HALF);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, POINT),
        OSSL_PARAM_construct_end(),
    };
    return open_parameters("EC", params);
}

static EVP_PKEY *open_edwards(struct bytes x)
{
    if (x.size != ED25519)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)x.data, x.size);
}

struct signature_key *signature_open(const struct signature_numbers *numbers)
{
    EVP_PKEY *inner = numbers->algorithm == SIGNATURE_RS256   ? open_rsa(numbers->n, numbers->e)
                      : numbers->algorithm == SIGNATURE_ES256 ? open_point(numbers->x, numbers->y)
                                                              : open_edwards(numbers->x);
    ERR_clear_error(); /* else other users of OpenSSL, such as libpq, would report this error */
    if (!inner)
        return NULL;
    struct signature_key *key = memory_zeroed(1, sizeof *key, "signature");
    *key = (struct signature_key){numbers->algorithm, inner};
    return key;
}

void signature_close(struct signature_key *key)
{
    if (key)
        EVP_PKEY_free(key->key);
    free(key);
}

/* --- signatures --- */

static bool signature_check(const struct signature_key *key, const char *digest, struct bytes text,
                            const unsigned char *signature, size_t size)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    crypto_must(context != NULL);
    bool is_valid =
        EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, key->key, NULL) == 1 &&
        EVP_DigestVerify(context, signature, size, (const unsigned char *)text.data, text.size) == 1;
    EVP_MD_CTX_free(context);
    return is_valid;
}

/* OpenSSL reads the two numbers as DER. */
static bool check_curve(const struct signature_key *key, struct bytes text, struct bytes signature)
{
    unsigned char *der = NULL;
    if (signature.size != 2 * HALF)
        return false;
    BIGNUM *r = signature_read_number((struct bytes){signature.data, HALF}),
           *s = signature_read_number((struct bytes){signature.data + HALF, HALF});
    ECDSA_SIG *pair = ECDSA_SIG_new();
    crypto_must(pair && ECDSA_SIG_set0(pair, r, s) == 1);
    int size = i2d_ECDSA_SIG(pair, &der);
    crypto_must(size > 0);
    bool is_valid = signature_check(key, "SHA256", text, der, (size_t)size);
    OPENSSL_free(der);
    ECDSA_SIG_free(pair);
    return is_valid;
}

bool signature_is_valid(const struct signature_key *key, struct bytes text, struct bytes signature)
{
    const unsigned char *bytes = (const unsigned char *)signature.data;
    bool is_valid = false;
    if (key->algorithm == SIGNATURE_ES256)
        is_valid = check_curve(key, text, signature);
    else if (key->algorithm == SIGNATURE_EDDSA)
        is_valid =
            signature.size == ED25519_SIGNATURE && signature_check(key, NULL, text, bytes, signature.size);
    else
        is_valid = signature.size == (size_t)EVP_PKEY_get_size(key->key) &&
                   signature_check(key, "SHA256", text, bytes, signature.size);
    ERR_clear_error();
    return is_valid;
}
