/* curve: passes numbers and points to OpenSSL's keys as parameters and returns results as plain bytes. */
#include "edge/crypto/curve.h"

#include "edge/crypto/crypto.h"
#include "edge/crypto/crypto_private.h"

enum { UNCOMPRESSED = 4 };

static EC_GROUP *open_group(void)
{
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    crypto_must(group != NULL);
    return group;
}

bool curve_take_key(const unsigned char secret[CURVE_SECRET], struct curve_key *key_r)
{
    EC_GROUP *group = open_group();
    BIGNUM *number = BN_bin2bn(secret, CURVE_SECRET, NULL);
    crypto_must(number != NULL);
    bool is_key = !BN_is_zero(number) && BN_cmp(number, EC_GROUP_get0_order(group)) < 0;
    if (is_key) {
        EC_POINT *point = EC_POINT_new(group);
        BN_set_flags(number, BN_FLG_CONSTTIME);
        crypto_must(point && EC_POINT_mul(group, point, number, NULL, NULL, NULL) == 1 &&
                    EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, key_r->point, CURVE_POINT,
                                       NULL) == CURVE_POINT);
        memcpy(key_r->secret, secret, CURVE_SECRET);
        EC_POINT_free(point);
    }
    BN_clear_free(number);
    EC_GROUP_free(group);
    return is_key;
}

void curve_make_key(struct curve_key *key_r)
{
    unsigned char secret[CURVE_SECRET];
    do
        crypto_random(secret, sizeof secret);
    while (!curve_take_key(secret, key_r));
    explicit_bzero(secret, sizeof secret);
}

/* OpenSSL's key of a point and, unless NULL, its secret; NULL: not a point of the curve. */
static EVP_PKEY *open_key(const unsigned char point[CURVE_POINT], const unsigned char *secret)
{
    char group[] = "P-256";
    unsigned char native[CURVE_SECRET]; /* a number in native byte order */
    OSSL_PARAM params[4] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)point, CURVE_POINT),
        OSSL_PARAM_construct_end(),
        OSSL_PARAM_construct_end(),
    };
    if (point[0] != UNCOMPRESSED)
        return NULL;
    if (secret) {
        BIGNUM *number = BN_bin2bn(secret, CURVE_SECRET, NULL);
        crypto_must(number && BN_bn2nativepad(number, native, CURVE_SECRET) == CURVE_SECRET);
        BN_clear_free(number);
        params[2] = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, native, CURVE_SECRET);
    }
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    crypto_must(context && EVP_PKEY_fromdata_init(context) == 1);
    if (EVP_PKEY_fromdata(context, &key, secret ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    explicit_bzero(native, sizeof native);
    ERR_clear_error(); /* else other users of OpenSSL, such as libpq, would report this error */
    return key;
}

bool curve_is_point(const unsigned char point[CURVE_POINT])
{
    EVP_PKEY *key = open_key(point, NULL);
    EVP_PKEY_free(key);
    return key != NULL;
}

bool curve_agree(const struct curve_key *own, const unsigned char other[CURVE_POINT],
                 unsigned char shared_r[CURVE_SECRET])
{
    EVP_PKEY *theirs = open_key(other, NULL);
    if (!theirs)
        return false;
    EVP_PKEY *ours = open_key(own->point, own->secret);
    crypto_must(ours != NULL);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, ours, NULL);
    size_t size = CURVE_SECRET;
    crypto_must(context && EVP_PKEY_derive_init(context) == 1 &&
                EVP_PKEY_derive_set_peer(context, theirs) == 1 &&
                EVP_PKEY_derive(context, shared_r, &size) == 1 && size == CURVE_SECRET);
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(ours);
    EVP_PKEY_free(theirs);
    return true;
}

void curve_sign(const struct curve_key *key, struct bytes text, unsigned char signature_r[CURVE_SIGNATURE])
{
    enum { DER_MOST = 80 };
    unsigned char der[DER_MOST];
    const unsigned char *at = der;
    size_t size = sizeof der;
    EVP_PKEY *ours = open_key(key->point, key->secret);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    crypto_must(ours && context &&
                EVP_DigestSignInit_ex(context, NULL, "SHA256", NULL, NULL, ours, NULL) == 1 &&
                EVP_DigestSign(context, der, &size, (const unsigned char *)text.data, text.size) == 1);
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)size);
    crypto_must(pair && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature_r, 32) == 32 &&
                BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature_r + 32, 32) == 32);
    ECDSA_SIG_free(pair);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(ours);
}
