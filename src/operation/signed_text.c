/* signed_text: nonce, encrypted payload and tag in base64.  Each nonce has a key of its own: HMAC-SHA256 of
 * nonce and question under the secret gives the key and the nonce of AES-128-GCM. */
#include "operation/signed_text.h"

#include "base/coding/base64.h"
#include "edge/crypto/crypto.h"

enum { NONCE_SIZE = 12, SEALED_LEAST = NONCE_SIZE + CRYPTO_TAG, SEALED_MOST = 16 * 1024 };

void signed_text_add_part(struct builder *question, struct bytes part)
{
    builder_printf(question, "%zu:", part.size);
    builder_add_bytes(question, part);
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

struct bytes signed_text_make(struct arena *arena, struct bytes secret, struct bytes question,
                              struct bytes payload)
{
    (void)secret;
    (void)question;
    return bytes_of(arena_printf(arena, "!%.*s", (int)payload.size, payload.data));
}

bool signed_text_read(struct arena *arena, struct bytes secret, struct bytes question,
                      struct bytes signed_text, struct bytes *payload_r)
{
    (void)secret;
    (void)question;
    if (!signed_text.size || *signed_text.data != '!')
        return false;
    *payload_r =
        (struct bytes){arena_copy(arena, signed_text.data + 1, signed_text.size - 1), signed_text.size - 1};
    return true;
}

#else

struct signed_text_key {
    unsigned char digest[CRYPTO_SHA256];
};
_Static_assert(CRYPTO_KEY + CRYPTO_NONCE <= CRYPTO_SHA256, "a digest has both");

static void signed_text_derive(struct bytes secret, struct bytes question,
                               const unsigned char nonce[NONCE_SIZE], struct signed_text_key *key_r)
{
    struct builder text = {0};
    builder_add(&text, (const char *)nonce, NONCE_SIZE);
    builder_add_bytes(&text, question);
    crypto_hmac(secret, builder_bytes(&text), key_r->digest);
    builder_free(&text);
}

struct bytes signed_text_make(struct arena *arena, struct bytes secret, struct bytes question,
                              struct bytes payload)
{
    struct signed_text_key key;
    size_t size = SEALED_LEAST + payload.size;
    unsigned char *raw = arena_alloc(arena, size);
    struct builder text = {0};
    crypto_random(raw, NONCE_SIZE);
    signed_text_derive(secret, question, raw, &key);
    crypto_seal(key.digest, key.digest + CRYPTO_KEY, payload, raw + NONCE_SIZE);
    base64_add(&text, (struct bytes){(const char *)raw, size});
    struct bytes signed_text = builder_take(&text, arena);
    explicit_bzero(&key, sizeof key);
    return signed_text;
}

bool signed_text_read(struct arena *arena, struct bytes secret, struct bytes question,
                      struct bytes signed_text, struct bytes *payload_r)
{
    struct signed_text_key key;
    size_t size = signed_text.size / 4 * 3 + (signed_text.size % 4 ? signed_text.size % 4 - 1 : 0);
    if (size < SEALED_LEAST || size > SEALED_MOST)
        return false;
    unsigned char *raw = arena_alloc(arena, size), *payload = arena_alloc(arena, size);
    if (!base64_read(signed_text, raw, size))
        return false;
    signed_text_derive(secret, question, raw, &key);
    bool is_ours = crypto_open(key.digest, key.digest + CRYPTO_KEY,
                               (struct bytes){(const char *)raw + NONCE_SIZE, size - NONCE_SIZE}, payload);
    *payload_r = (struct bytes){(const char *)payload, size - SEALED_LEAST};
    explicit_bzero(&key, sizeof key);
    return is_ours;
}

#endif
