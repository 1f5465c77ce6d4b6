/* test_webpush: the example of RFC 8291, messages that a browser can read, proofs that a push service takes,
 * and subscriptions that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include "base/coding/base64.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"
#include "operation/push/webpush.h"

/* RFC 8291, section 5 and appendix A. */
#define RFC_TEXT     "When I grow up, I want to be a watermelon"
#define RFC_RECEIVER "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
#define RFC_P256DH   "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define RFC_AUTH     "BTBZMqHH6r4Tts7J_aSIgg"
#define RFC_SENDER   "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
#define RFC_SENDER_IS                                                                                        \
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
#define RFC_SALT "DGv6ra1nlYgDCS1FRnbzlw"
#define RFC_BODY                                                                                             \
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_"                                                         \
    "c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6"                                            \
    "PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"

#define ENDPOINT "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"

static struct arena *arena;

static struct bytes text_of(const void *data, size_t size)
{
    struct builder text = {0};
    base64_add(&text, (struct bytes){data, size});
    struct bytes copy = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return copy;
}

static struct curve_key take_key(struct bytes text)
{
    unsigned char secret[CURVE_SECRET];
    struct curve_key key;
    assert_true(base64_read(text, secret, sizeof secret));
    assert_true(curve_take_key(secret, &key));
    return key;
}

static struct webpush_target target_of(struct bytes p256dh, struct bytes auth)
{
    struct webpush_target target;
    assert_null(webpush_read_target(arena, BYTES(ENDPOINT), p256dh, auth, false, &target));
    return target;
}

static void the_example_of_the_rfc_is_made(void **state UNUSED)
{
    struct webpush_target target = target_of(BYTES(RFC_P256DH), BYTES(RFC_AUTH));
    struct curve_key sender = take_key(BYTES(RFC_SENDER));
    unsigned char salt[WEBPUSH_SALT];
    assert_true(base64_read(BYTES(RFC_SALT), salt, sizeof salt));
    assert_string_equal(text_of(sender.point, CURVE_POINT).data, RFC_SENDER_IS);
    assert_string_equal(text_of(take_key(BYTES(RFC_RECEIVER)).point, CURVE_POINT).data, RFC_P256DH);
    struct bytes body = webpush_encrypt(arena, &target, &sender, salt, BYTES(RFC_TEXT), 0);
    assert_string_equal(text_of(body.data, body.size).data, RFC_BODY);
}

/* --- what a browser does --- */

static bool open_record(const unsigned char *key, const unsigned char *nonce, const unsigned char *sealed,
                        size_t size, unsigned char *text_r)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int out = 0, rest = 0;
    unsigned char tag[CRYPTO_TAG];
    memcpy(tag, sealed + size, sizeof tag);
    bool is_good = EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), NULL, key, nonce) == 1 &&
                   EVP_DecryptUpdate(context, text_r, &out, sealed, (int)size) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, sizeof tag, tag) == 1 &&
                   EVP_DecryptFinal_ex(context, text_r + out, &rest) == 1;
    EVP_CIPHER_CTX_free(context);
    return is_good;
}

/* The text of a body with its padding cut off; NO_BYTES: it cannot be read. */
static struct bytes decrypt(const struct curve_key *browser, const unsigned char *auth, struct bytes body)
{
    enum { HEAD = 16 + 4 + 1 + CURVE_POINT };
    static const struct bytes key_info = {"Content-Encoding: aes128gcm", 28},
                              nonce_info = {"Content-Encoding: nonce", 24};
    const unsigned char *data = (const unsigned char *)body.data, *sender = data + 21;
    const struct bytes salt = {body.data, 16};
    unsigned char shared[CURVE_SECRET], secret[32], key[CRYPTO_KEY], nonce[CRYPTO_NONCE];
    char info[14 + 2 * CURVE_POINT] = "WebPush: info";
    size_t size = body.size - HEAD - CRYPTO_TAG;
    unsigned char *text = arena_alloc(arena, size);
    assert_int_equal(data[16] << 24 | data[17] << 16 | data[18] << 8 | data[19], 4096);
    assert_int_equal(data[20], CURVE_POINT);
    assert_true(curve_agree(browser, sender, shared));
    memcpy(info + 14, browser->point, CURVE_POINT);
    memcpy(info + 14 + CURVE_POINT, sender, CURVE_POINT);
    crypto_derive((struct bytes){(const char *)auth, WEBPUSH_AUTH},
                  (struct bytes){(char *)shared, sizeof shared}, (struct bytes){info, sizeof info}, secret,
                  sizeof secret);
    crypto_derive(salt, (struct bytes){(char *)secret, 32}, key_info, key, sizeof key);
    crypto_derive(salt, (struct bytes){(char *)secret, 32}, nonce_info, nonce, sizeof nonce);
    if (!open_record(key, nonce, data + HEAD, size, text))
        return NO_BYTES;
    while (size && !text[size - 1])
        size--;
    assert_int_equal(text[size - 1], 2);
    return (struct bytes){(char *)text, size - 1};
}

static void a_browser_reads_what_was_sent_to_it_and_nothing_else(void **state UNUSED)
{
    static const size_t sizes[] = {0, 1, 100, WEBPUSH_TEXT_MOST};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct curve_key browser, other, idempotency;
        unsigned char auth[WEBPUSH_AUTH], salt[WEBPUSH_SALT];
        curve_make_key(&browser);
        curve_make_key(&other);
        curve_make_key(&idempotency);
        crypto_random(auth, sizeof auth);
        crypto_random(salt, sizeof salt);
        struct webpush_target target =
            target_of(text_of(browser.point, CURVE_POINT), text_of(auth, sizeof auth));
        char *text = arena_alloc(arena, sizes[i] + 1);
        memset(text, 'x', sizes[i]);
        size_t padding = sizes[i] < 200 ? 200 - sizes[i] : 0;
        struct bytes body =
            webpush_encrypt(arena, &target, &idempotency, salt, (struct bytes){text, sizes[i]}, padding);
        assert_int_equal(body.size, 86 + sizes[i] + padding + 1 + CRYPTO_TAG);
        assert_true(body.size <= WEBPUSH_BODY_MOST);
        struct bytes read = decrypt(&browser, auth, body);
        assert_true(read.data && bytes_equal(read, (struct bytes){text, sizes[i]}));
        assert_null(decrypt(&other, auth, body).data);
        auth[0] ^= 1;
        assert_null(decrypt(&browser, auth, body).data);
    }
}

/* --- the proof --- */

static struct bytes part_of(struct bytes *rest, char end)
{
    const char *at = memchr(rest->data, end, rest->size);
    assert_non_null(at);
    struct bytes part = {rest->data, (size_t)(at - rest->data)};
    *rest = (struct bytes){at + 1, rest->size - part.size - 1};
    return part;
}

static const char *decoded(struct bytes text)
{
    size_t size = text.size / 4 * 3 + (text.size % 4 ? text.size % 4 - 1 : 0);
    char *bytes = arena_zalloc(arena, 1, size + 1);
    assert_true(base64_read(text, bytes, size));
    return bytes;
}

static bool is_signed(const unsigned char *point, struct bytes text, const unsigned char *signature)
{
    unsigned char digest[32], *der = NULL;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    EVP_PKEY *key = EVP_PKEY_new(), *group = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    unsigned size;
    assert_int_equal(EVP_PKEY_copy_parameters(key, group), 1);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(key, point, CURVE_POINT), 1);
    ECDSA_SIG_set0(pair, BN_bin2bn(signature, 32, NULL), BN_bin2bn(signature + 32, 32, NULL));
    int der_size = i2d_ECDSA_SIG(pair, &der);
    EVP_Digest(text.data, text.size, digest, &size, EVP_sha256(), NULL);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    assert_int_equal(EVP_PKEY_verify_init(context), 1);
    bool is_good = EVP_PKEY_verify(context, der, (size_t)der_size, digest, sizeof digest) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
    EVP_PKEY_free(group);
    ECDSA_SIG_free(pair);
    OPENSSL_free(der);
    return is_good;
}

static void a_push_service_can_verify_who_sends(void **state UNUSED)
{
    struct curve_key key, other;
    curve_make_key(&key);
    curve_make_key(&other);
    struct bytes value = webpush_authorization(arena, &key, BYTES("https://push.example.net"),
                                               "mailto:ops@example.net", INT64_C(1700000000999));
    struct bytes rest = value;
    assert_true(bytes_equal(part_of(&rest, '='), BYTES("vapid t")));
    struct bytes token = {rest.data, 0};
    assert_string_equal(decoded(part_of(&rest, '.')), "{\"typ\":\"JWT\",\"alg\":\"ES256\"}");
    assert_string_equal(
        decoded(part_of(&rest, '.')),
        "{\"aud\":\"https://push.example.net\",\"exp\":1700043200,\"sub\":\"mailto:ops@example.net\"}");
    token.size = (size_t)(rest.data - 1 - token.data);
    struct bytes signature = part_of(&rest, ',');
    unsigned char raw[CURVE_SIGNATURE];
    assert_true(base64_read(signature, raw, sizeof raw));
    assert_true(is_signed(key.point, token, raw));
    assert_false(is_signed(other.point, token, raw));
    token.size--;
    assert_false(is_signed(key.point, token, raw));
    assert_true(bytes_equal(part_of(&rest, '='), BYTES(" k")));
    assert_true(bytes_equal(rest, text_of(key.point, CURVE_POINT)));
}

/* --- subscriptions --- */

static const char *refusal(const char *endpoint, const char *p256dh, const char *auth, bool may_be_local)
{
    struct webpush_target target;
    return webpush_read_target(arena, bytes_of(endpoint), bytes_of(p256dh), bytes_of(auth), may_be_local,
                               &target);
}

static void addresses_have_an_origin(void **state UNUSED)
{
    static const struct {
        const char *endpoint, *origin;
    } good[] = {
        {ENDPOINT, "https://push.example.net"},
        {"https://Push.Example.net", "https://push.example.net"},
        {"https://push.example.net:443/x", "https://push.example.net"},
        {"https://push.example.net:8443/x", "https://push.example.net:8443"},
        {"https://push.example.net?token=a%20b", "https://push.example.net"},
        {"https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443"},
        {"https://a-b.example/x/@~:;$&'()*+,=!_", "https://a-b.example"},
        {"http://127.0.0.1:80/x", "http://127.0.0.1"},
        {"http://localhost:8080/x", "http://localhost:8080"},
        {"http://[::1]:8080/x", "http://[::1]:8080"},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct webpush_target target;
        assert_null(webpush_read_target(arena, bytes_of(good[i].endpoint), BYTES(RFC_P256DH), BYTES(RFC_AUTH),
                                        true, &target));
        assert_true(bytes_equal(target.origin, bytes_of(good[i].origin)));
    }
}

static void addresses_that_are_none_are_refused(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "https://",
        "https:///x",
        "https://:443/x",
        "https://h:/x",
        "https://h:0/x",
        "https://h:65536/x",
        "https://h:1e3/x",
        "https://u@h/x",
        "https://u:p@h/x",
        "https://h\\@i/x",
        "https://h#x",
        "https://h/x#y",
        "https://h/x y",
        "https://h/x\ny",
        "https://h\t/",
        "https://[::1/x",
        "https://[x y]/x",
        "https://h_i/x",
        "https://\xC3\xA9/x",
        "https://h/\xC3\xA9",
        "https://h/\"x",
        "https://h/<x>",
        "https://h/{x}",
        "ftp://h/x",
        "//h/x",
        "h/x",
        " https://h/x",
        "HTTPS://h/x",
        "http://h/x",
        "http://10.0.0.1/x",
        "http://localhost.example/x",
        "file:///etc/passwd",
        "https://h:443:443/x",
        "https://[]/x]",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (!refusal(wrong[i], RFC_P256DH, RFC_AUTH, true))
            fail_msg("%s is taken", wrong[i]);
    assert_non_null(refusal("http://127.0.0.1/x", RFC_P256DH, RFC_AUTH, false));
    char *longest = arena_zalloc(arena, 1, WEBPUSH_ENDPOINT_MOST + 2);
    memset(longest, 'x', WEBPUSH_ENDPOINT_MOST);
    memcpy(longest, "https://h/", 10);
    assert_null(refusal(longest, RFC_P256DH, RFC_AUTH, false));
    longest[WEBPUSH_ENDPOINT_MOST] = 'x';
    assert_non_null(refusal(longest, RFC_P256DH, RFC_AUTH, false));
    struct webpush_target target;
    assert_non_null(webpush_read_target(arena, BYTES("https://h/\0x"), BYTES(RFC_P256DH), BYTES(RFC_AUTH),
                                        false, &target));
    assert_non_null(webpush_read_target(arena, NO_BYTES, BYTES(RFC_P256DH), BYTES(RFC_AUTH), false, &target));
}

static void keys_that_are_none_are_refused(void **state UNUSED)
{
    unsigned char point[CURVE_POINT];
    assert_null(refusal(ENDPOINT, RFC_P256DH "=", RFC_AUTH "==", false));
    assert_true(base64_read(BYTES(RFC_P256DH), point, sizeof point));
    point[CURVE_POINT - 1] ^= 1; /* beside the curve */
    assert_non_null(refusal(ENDPOINT, text_of(point, sizeof point).data, RFC_AUTH, false));
    point[CURVE_POINT - 1] ^= 1;
    point[0] = 6; /* another form of the same point */
    assert_non_null(refusal(ENDPOINT, text_of(point, sizeof point).data, RFC_AUTH, false));
    point[0] = 4;
    assert_non_null(refusal(ENDPOINT, text_of(point, sizeof point - 1).data, RFC_AUTH, false));
    assert_non_null(refusal(ENDPOINT, text_of(point, 33).data, RFC_AUTH, false));
    memset(point + 1, 0, sizeof point - 1);
    assert_non_null(refusal(ENDPOINT, text_of(point, sizeof point).data, RFC_AUTH, false));
    memset(point + 1, 255, sizeof point - 1); /* no coordinates: they are too large */
    assert_non_null(refusal(ENDPOINT, text_of(point, sizeof point).data, RFC_AUTH, false));
    assert_non_null(refusal(ENDPOINT, "", RFC_AUTH, false));
    assert_non_null(refusal(ENDPOINT, NULL, RFC_AUTH, false));
    assert_non_null(refusal(ENDPOINT, RFC_P256DH, "", false));
    assert_non_null(refusal(ENDPOINT, RFC_P256DH, NULL, false));
    assert_non_null(refusal(ENDPOINT, RFC_P256DH, "BTBZMqHH6r4Tts7J_aSI", false));    /* 15 bytes */
    assert_non_null(refusal(ENDPOINT, RFC_P256DH, "BTBZMqHH6r4Tts7J_aSIggA", false)); /* 17 */
    assert_non_null(refusal(ENDPOINT, RFC_P256DH, "BTBZMqHH6r4Tts7J+aSIgg", false));
}

static void secrets_are_numbers_below_the_order(void **state UNUSED)
{
    static const unsigned char order[CURVE_SECRET] = {
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51};
    unsigned char secret[CURVE_SECRET] = {0};
    struct curve_key key;
    assert_false(curve_take_key(secret, &key));
    secret[CURVE_SECRET - 1] = 1;
    assert_true(curve_take_key(secret, &key));
    assert_false(curve_take_key(order, &key));
    memcpy(secret, order, sizeof secret);
    secret[CURVE_SECRET - 1]--;
    assert_true(curve_take_key(secret, &key));
    memset(secret, 255, sizeof secret);
    assert_false(curve_take_key(secret, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_rfc_is_made),
        cmocka_unit_test(a_browser_reads_what_was_sent_to_it_and_nothing_else),
        cmocka_unit_test(a_push_service_can_verify_who_sends),
        cmocka_unit_test(addresses_have_an_origin),
        cmocka_unit_test(addresses_that_are_none_are_refused),
        cmocka_unit_test(keys_that_are_none_are_refused),
        cmocka_unit_test(secrets_are_numbers_below_the_order),
    };
    arena = arena_create("test");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
