/* object_signature: the canonical request, the text to sign, and the key of a day, region and service. */
#include "blob/object_signature.h"

#include <stdio.h>
#include <time.h>

#include "base/coding/hex.h"
#include "base/log.h"

enum { DAY = 8, SCOPE_BYTES = 200 };

void object_signature_date(int64_t time_s, char date_r[OBJECT_SIGNATURE_DATE + 1])
{
    time_t seconds = (time_t)time_s;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) ||
        strftime(date_r, OBJECT_SIGNATURE_DATE + 1, "%Y%m%dT%H%M%SZ", &parts) != OBJECT_SIGNATURE_DATE)
        log_fatal("the clock is wrong");
}

static void hash_request(const struct object_signature *signature, const char *date,
                         char hex_r[CRYPTO_SHA256_HEX + 1])
{
    struct builder text = {0};
    builder_printf(&text,
                   "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n"
                   "host;x-amz-content-sha256;x-amz-date\n%s",
                   signature->method, signature->path, signature->query, signature->host,
                   signature->body_sha256, date, signature->body_sha256);
    crypto_sha256_hex(builder_bytes(&text), hex_r);
    builder_free(&text);
}

static void chain(unsigned char key[CRYPTO_SHA256], struct bytes text)
{
    unsigned char next[CRYPTO_SHA256];
    crypto_hmac((struct bytes){(char *)key, CRYPTO_SHA256}, text, next);
    memcpy(key, next, sizeof next);
    explicit_bzero(next, sizeof next);
}

static void make_key(const struct object_signature *signature, const char *date,
                     unsigned char key_r[CRYPTO_SHA256])
{
    struct builder secret = {0};
    builder_printf(&secret, "AWS4%s", signature->secret_key);
    crypto_hmac(builder_bytes(&secret), (struct bytes){date, DAY}, key_r);
    explicit_bzero(secret.data, secret.size);
    builder_free(&secret);
    chain(key_r, bytes_of(signature->region));
    chain(key_r, BYTES("s3"));
    chain(key_r, BYTES("aws4_request"));
}

void object_signature_add(struct builder *builder, const struct object_signature *signature)
{
    char date[OBJECT_SIGNATURE_DATE + 1], request[CRYPTO_SHA256_HEX + 1], hex[CRYPTO_SHA256_HEX + 1];
    char scope[SCOPE_BYTES];
    unsigned char key[CRYPTO_SHA256];
    struct builder text = {0};
    object_signature_date(signature->time_s, date);
    hash_request(signature, date, request);
    snprintf(scope, sizeof scope, "%.8s/%s/s3/aws4_request", date, signature->region);
    builder_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, request);
    make_key(signature, date, key);
    chain(key, builder_bytes(&text));
    hex_write(key, sizeof key, hex);
    hex[CRYPTO_SHA256_HEX] = '\0';
    builder_printf(builder,
                   "AWS4-HMAC-SHA256 Credential=%s/%s,"
                   "SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=%s",
                   signature->key_id, scope, hex);
    builder_free(&text);
}
