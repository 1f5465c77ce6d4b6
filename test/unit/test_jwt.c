/* test_jwt: tokens of providers, their keys, and the configuration of providers, without a server:
 * test_external_tokens.py has the hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/coding/base64.h"
#include "model/account/jwt.h"
#include "model/account/key_set.h"

/* RFC 8037, appendix A: a key of Ed25519. */
#define EDWARDS                                                                                              \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"one\",\"x\":\"11qYAYKxCrfVS_"                            \
    "7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
/* RFC 7515, appendix A.3: of P-256. */
#define CURVE                                                                                                \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"one\",\"x\":"                                               \
    "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","                                                       \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
/* RFC 7515, appendix A.2: of RSA, and a signature by it. */
#define RSA                                                                                                  \
    "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"         \
    "4qPCJrcS2mJ"                                                                                            \
    "PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"                   \
    "bSf63kpaSHSXndS5z5re"                                                                                   \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-"      \
    "DWNmoud"                                                                                                \
    "F8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\"}"

#define HEADER "{\"alg\":\"EdDSA\",\"kid\":\"one\"}"
#define CLAIMS                                                                                               \
    "{\"iss\":\"https://"                                                                                    \
    "a\",\"sub\":\"s\",\"aud\":[\"x\",\"app\"],\"exp\":1000,\"iat\":500,\"g\":{\"r\":[\"staff\"]}}"
#define ISSUERS                                                                                              \
    "[{\"issuer\":\"https://"                                                                                \
    "a\",\"audiences\":[\"app\"],\"roles\":{\"claim\":[\"g\",\"r\"],\"map\":{\"no\":\"n\",\"staff\":"        \
    "\"editor\"}}}]"

static struct arena *arena;

static int set_up(void **state UNUSED)
{
    arena = arena_create("test");
    return 0;
}

static int tear_down(void **state UNUSED)
{
    arena_destroy(arena);
    return 0;
}

static struct bytes token_of(const char *header, const char *claims)
{
    struct builder text = {0};
    base64_add(&text, bytes_of(header));
    builder_add_text(&text, ".");
    base64_add(&text, bytes_of(claims));
    builder_add_text(&text, ".c2lnbmF0dXJl");
    struct bytes token = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return token;
}

static const struct issuer *issuer_of(const char *text)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 1};
    const struct issuers *issuers = NULL;
    struct json_problem problem;
    struct json *root;
    assert_int_equal(json_read(arena, bytes_of(text), &limits, &root, &problem), FAULT_NONE);
    assert_true(issuer_read(arena, root, &issuers));
    return &issuers->list[0];
}

static void test_a_sound_token(void **state UNUSED)
{
    struct jwt jwt;
    const struct issuer *issuer = issuer_of(ISSUERS);
    assert_null(jwt_read(arena, token_of(HEADER, CLAIMS), &jwt));
    assert_int_equal(jwt.algorithm, SIGNATURE_EDDSA);
    assert_true(bytes_equal(jwt.key, BYTES("one")) && bytes_equal(jwt.subject, BYTES("s")));
    assert_null(jwt_refuse(&jwt, issuer, 600));
    assert_null(jwt_refuse(&jwt, issuer, 440)); /* the leeway */
    assert_non_null(jwt_refuse(&jwt, issuer, 439));
    assert_null(jwt_refuse(&jwt, issuer, 1059));
    assert_non_null(jwt_refuse(&jwt, issuer, 1060));
    assert_int_equal(jwt_find_roles(&jwt, issuer), 2);
}

static void test_hostile_tokens(void **state UNUSED)
{
    static const char *const headers[] = {"{\"alg\":\"none\"}",
                                          "{\"alg\":\"HS256\"}",
                                          "{\"alg\":\"eddsa\"}",
                                          "{}",
                                          "{\"alg\":\"EdDSA\",\"crit\":[]}",
                                          "{\"alg\":\"EdDSA\",\"typ\":\"JWE\"}",
                                          "{\"alg\":\"EdDSA\",\"kid\":\"\"}",
                                          "{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\"}"};
    static const char *const claims[] = {"{}",
                                         "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":1e12}",
                                         "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":1e400}",
                                         "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":null}",
                                         "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":\"9\"}",
                                         "{\"iss\":\"https://a\",\"sub\":\"\",\"exp\":9}",
                                         "{\"iss\":7,\"sub\":\"s\",\"exp\":9}"};
    struct jwt jwt;
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        assert_non_null(jwt_read(arena, token_of(headers[i], CLAIMS), &jwt));
    for (size_t i = 0; i < COUNT_OF(claims); i++)
        assert_non_null(jwt_read(arena, token_of(HEADER, claims[i]), &jwt));
    struct bytes token = token_of(HEADER, CLAIMS);
    for (size_t size = 0; size < token.size - 12; size++) /* until the signature begins */
        assert_non_null(jwt_read(arena, (struct bytes){token.data, size}, &jwt));
}

/* NumericDate may have a fraction (RFC 7519, section 2). */
static void test_times_with_a_fraction(void **state UNUSED)
{
    static const struct {
        const char *exp;
        int64_t seconds;
    } right[] = {{"1698742245.336421", 1698742245},
                 {"1.7e9", 1700000000},
                 {"1700000000.0", 1700000000},
                 {"1000.999999", 1000},
                 {"0.5", 0},
                 {"-0.5", -1}};
    char claims[256];
    struct jwt jwt;
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        snprintf(claims, sizeof claims, "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":%s}", right[i].exp);
        assert_null(jwt_read(arena, token_of(HEADER, claims), &jwt));
        assert_int_equal(jwt.expires_s, right[i].seconds);
    }
    /* Leeway is 60: at 600 it has come for what is at most 660. */
    static const char *const times[] = {"\"nbf\":660.9", "\"iat\":660.9", "\"nbf\":661.0", "\"iat\":6.61e2"};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        snprintf(claims, sizeof claims,
                 "{\"iss\":\"https://a\",\"sub\":\"s\",\"aud\":\"app\",\"exp\":1000.5,%s}", times[i]);
        assert_null(jwt_read(arena, token_of(HEADER, claims), &jwt));
        assert_int_equal(jwt_refuse(&jwt, issuer_of(ISSUERS), 600) == NULL, i < 2);
    }
}

static void test_another_audience(void **state UNUSED)
{
    static const char *const claims[] = {
        "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":1000,\"aud\":\"other\"}",
        "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":1000}",
        "{\"iss\":\"https://a\",\"sub\":\"s\",\"exp\":1000,\"aud\":[\"app\",7]}",
        "{\"iss\":\"https://a/\",\"sub\":\"s\",\"exp\":1000,\"aud\":\"app\"}",
    };
    const struct issuer *issuer = issuer_of(ISSUERS);
    struct jwt jwt;
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        assert_null(jwt_read(arena, token_of(HEADER, claims[i]), &jwt));
        assert_non_null(jwt_refuse(&jwt, issuer, 600));
    }
}

static void test_sets_of_keys(void **state UNUSED)
{
    struct key_set set, again;
    struct builder text = {0};
    assert_null(key_set_read(arena, BYTES("{\"keys\":[" EDWARDS "," CURVE "," RSA "]}"), &set));
    assert_int_equal(set.count, 3);
    assert_int_equal(key_set_find(&set, BYTES("one"), SIGNATURE_EDDSA), 0);
    assert_int_equal(key_set_find(&set, BYTES("one"), SIGNATURE_ES256), 1);
    assert_int_equal(key_set_find(&set, BYTES("one"), SIGNATURE_RS256), KEY_SET_NONE);
    assert_int_equal(key_set_find(&set, NO_BYTES, SIGNATURE_RS256), 2);
    builder_add_text(&text, "{\"keys\":");
    key_set_write(&text, &set);
    builder_add_text(&text, "}");
    assert_null(key_set_read(arena, builder_bytes(&text), &again));
    assert_int_equal(again.count, 3);
    assert_true(bytes_equal(again.keys[2].numbers.n, set.keys[2].numbers.n));
    builder_free(&text);
    assert_null(key_set_read(arena, BYTES("{\"keys\":[" EDWARDS "," EDWARDS "]}"), &set));
    assert_int_equal(key_set_find(&set, BYTES("one"), SIGNATURE_EDDSA), KEY_SET_AMBIGUOUS);
    assert_non_null(
        key_set_read(arena, BYTES("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"one\",\"k\":\"AAAA\"}]}"), &set));
    assert_non_null(key_set_read(arena,
                                 BYTES("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"AA\",\"x\":"
                                       "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"),
                                 &set));
}

/* RFC 8037, appendix A.4. */
static void test_a_signature(void **state UNUSED)
{
    static const char text[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    unsigned char signature[64];
    struct key_set set;
    assert_null(key_set_read(arena, BYTES("{\"keys\":[" EDWARDS "]}"), &set));
    assert_true(base64_read_strict(
        BYTES("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"),
        signature, sizeof signature));
    struct signature_key *key = signature_open(&set.keys[0].numbers);
    assert_true(signature_is_valid(key, bytes_of(text), (struct bytes){(char *)signature, sizeof signature}));
    signature[63] ^= 1;
    assert_false(
        signature_is_valid(key, bytes_of(text), (struct bytes){(char *)signature, sizeof signature}));
    signature_close(key);
}

static void test_accounts_of_subjects(void **state UNUSED)
{
    struct bytes one = issuer_account(arena, BYTES("https://a"), BYTES("s"));
    assert_true(issuer_is_account(one) &&
                bytes_equal(one, issuer_account(arena, BYTES("https://a"), BYTES("s"))));
    assert_false(bytes_equal(one, issuer_account(arena, BYTES("https://a"), BYTES("t"))));
    assert_false(bytes_equal(one, issuer_account(arena, BYTES("https://as"), BYTES(""))));
    unsigned char random[16];
    assert_false(base64_read(one, random, sizeof random)); /* so it is not that of another account */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sound_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times_with_a_fraction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_audience, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sets_of_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_signature, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accounts_of_subjects, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
