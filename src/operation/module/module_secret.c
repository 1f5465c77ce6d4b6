/* module_secret: digests, random values and comparison for modules (stampd.h). */
#include "operation/module/module_try.h"

#include "base/coding/base64.h"
#include "base/coding/hex.h"
#include "edge/crypto/crypto.h"

static struct bytes bytes_from(struct stampd_bytes bytes)
{
    return (struct bytes){bytes.data ? bytes.data : "", bytes.size};
}

void stampd_sha256(struct stampd_bytes bytes, unsigned char digest_r[STAMPD_SHA256_BYTES])
{
    char hex[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(bytes_from(bytes), hex);
    for (size_t i = 0; i < STAMPD_SHA256_BYTES; i++)
        digest_r[i] = (unsigned char)hex_byte(hex + 2 * i);
}

void stampd_hmac_sha256(struct stampd_bytes key, struct stampd_bytes bytes,
                        unsigned char digest_r[STAMPD_SHA256_BYTES])
{
    crypto_hmac(bytes_from(key), bytes_from(bytes), digest_r);
}

const char *stampd_hex(struct stampd_call *call, struct stampd_bytes bytes)
{
    char *text = arena_zalloc(module_try_arena(call), bytes.size + 1, 2);
    hex_write((const unsigned char *)bytes.data, bytes.size, text);
    return text;
}

const char *stampd_base64url(struct stampd_call *call, struct stampd_bytes bytes)
{
    struct builder text = {0};
    base64_add(&text, bytes_from(bytes));
    const char *copy = arena_copy(module_try_arena(call), text.size ? text.data : "", text.size);
    builder_free(&text);
    return copy;
}

bool stampd_equal_secrets(struct stampd_bytes a, struct stampd_bytes b)
{
    return crypto_equal(bytes_from(a), bytes_from(b));
}

void stampd_random(void *buffer, size_t size)
{
    crypto_random(buffer, size);
}

const char *stampd_random_token(struct stampd_call *call)
{
    unsigned char secret[STAMPD_SHA256_BYTES];
    crypto_random(secret, sizeof secret);
    return stampd_base64url(call, (struct stampd_bytes){(const char *)secret, sizeof secret});
}
