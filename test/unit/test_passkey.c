/* test_passkey: CBOR, relying parties, client data, keys and used challenges.  Signatures and attestations of
 * a real server: test/system/test_passkeys.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "base/coding/cbor.h"
#include "browser_passkey.h"
#include "model/account/passkey.h"

/* --- CBOR --- */

static void test_integers(void **state UNUSED)
{
    static const struct {
        struct bytes text;
        int64_t value;
    } cases[] = {{BYTES("\x00"), 0},
                 {BYTES("\x17"), 23},
                 {BYTES("\x18\x18"), 24},
                 {BYTES("\x19\x01\x00"), 256},
                 {BYTES("\x1a\x00\x01\x00\x00"), 65536},
                 {BYTES("\x1b\x00\x00\x00\x01\x00\x00\x00\x00"), INT64_C(1) << 32},
                 {BYTES("\x1b\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MAX},
                 {BYTES("\x3b\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MIN},
                 {BYTES("\x20"), -1},
                 {BYTES("\x39\x01\x00"), -257}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes rest = cases[i].text, item;
        int64_t value;
        assert_true(cbor_take_integer(&rest, &value));
        assert_int_equal(value, cases[i].value);
        assert_int_equal(rest.size, 0);
        rest = cases[i].text;
        assert_true(cbor_take_item(&rest, &item) && bytes_equal(item, cases[i].text));
        for (size_t size = 0; size < cases[i].text.size; size++) {
            rest = (struct bytes){cases[i].text.data, size};
            assert_false(cbor_take_integer(&rest, &value));
        }
    }
}

static void test_only_the_shortest_form(void **state UNUSED)
{
    static const struct bytes cases[] = {BYTES("\x18\x17"),
                                         BYTES("\x19\x00\xff"),
                                         BYTES("\x1a\x00\x00\xff\xff"),
                                         BYTES("\x1b\x00\x00\x00\x00\xff\xff\xff\xff"),
                                         BYTES("\x1b\x80\x00\x00\x00\x00\x00\x00\x00"),
                                         BYTES("\x1c"),
                                         BYTES("\x1f"),
                                         BYTES("\x40"),
                                         BYTES("\xf5")};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes rest = cases[i];
        int64_t value;
        assert_false(cbor_take_integer(&rest, &value));
    }
}

static void test_items(void **state UNUSED)
{
    static const struct bytes whole[] = {BYTES("\x40"),
                                         BYTES("\x43"
                                               "abc"),
                                         BYTES("\x63"
                                               "abc"),
                                         BYTES("\x80"),
                                         BYTES("\xa0"),
                                         BYTES("\x82\x01\x81\x02"),
                                         BYTES("\xa1\x01\x02"),
                                         BYTES("\xf4"),
                                         BYTES("\xf5"),
                                         BYTES("\xf6"),
                                         BYTES("\x81\x81\x81\x81\x01")};
    static const struct bytes wrong[] = {BYTES(""),
                                         BYTES("\x43"
                                               "ab"),
                                         BYTES("\x81"),
                                         BYTES("\xa1\x01"),
                                         BYTES("\xc0\x01"),
                                         BYTES("\xf7"),
                                         BYTES("\xf9\x00\x00"),
                                         BYTES("\xff"),
                                         BYTES("\x9f\xff"),
                                         BYTES("\x5f\xff"),
                                         BYTES("\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
                                         BYTES("\x9b\x80\x00\x00\x00\x00\x00\x00\x00"),
                                         BYTES("\x5b\xff\xff\xff\xff\xff\xff\xff\xff"),
                                         BYTES("\x81\x81\x81\x81\x81\x01")};
    struct bytes item;
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        struct bytes rest = whole[i];
        assert_true(cbor_take_item(&rest, &item));
        assert_true(bytes_equal(item, whole[i]) && !rest.size);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes rest = wrong[i];
        assert_false(cbor_take_item(&rest, &item));
    }
}

/* --- relying parties --- */

static struct relying_party *read_party(const char *text)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    assert_int_equal(json_read(arena, bytes_of(text), &limits, &root, &problem), FAULT_NONE);
    return relying_party_read(arena, root);
}

static void test_parties(void **state UNUSED)
{
    static const char *const wrong[] = {"{}",
                                        "7",
                                        "{\"rp\":\"A.b\"}",
                                        "{\"rp\":\"a.b\",\"x\":1}",
                                        "{\"rp\":\"1.2\"}",
                                        "{\"rp\":\"-a.b\"}",
                                        "{\"rp\":\"a.b\",\"origins\":[\"https://xa.b\"]}",
                                        "{\"rp\":\"a-.b\"}",
                                        "{\"rp\":\"a.b\",\"origins\":[\"https://b\"]}",
                                        "{\"rp\":\"a.b\",\"origins\":[[]]}",
                                        "{\"rp\":\"a.b\",\"name\":7}"};
    static const struct {
        const char *party, *origin;
        bool is_admitted;
    } cases[] = {
        {"{\"rp\":\"a.b\"}", "https://a.b", true},
        {"{\"rp\":\"a.b\"}", "https://a.b:8443", false},
        {"{\"rp\":\"a.b\"}", "https://x.a.b", false},
        {"{\"rp\":\"a.b\"}", "http://a.b", false},
        {"{\"rp\":\"a.b\",\"origins\":[\"https://x.a.b\"]}", "https://x.a.b", true},
        {"{\"rp\":\"a.b\",\"origins\":[\"https://x.a.b\"]}", "https://a.b", false},
        {"{\"rp\":\"a.b\",\"origins\":[\"https://x.a.b:8443\"]}", "https://x.a.b:8443", true},
        {"{\"rp\":\"a.b\",\"origins\":[\"https://x.a.b:8443\"]}", "https://x.a.b:843", false},
        {"{\"rp\":\"localhost\",\"origins\":[\"http://localhost:80\"]}", "http://localhost:80", true},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_null(read_party(wrong[i]));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct relying_party *party = read_party(cases[i].party);
        assert_non_null(party);
        assert_int_equal(relying_party_admits(party, bytes_of(cases[i].origin)), cases[i].is_admitted);
    }
}

static void test_client_data(void **state UNUSED)
{
    static const char good[] =
        "{\"type\":\"webauthn.get\",\"challenge\":\"AAAA\",\"origin\":\"https://a.b\"}";
    const struct relying_party *party = read_party("{\"rp\":\"a.b\"}");
    struct bytes challenge;
    assert_null(passkey_read_client_data(arena, party, PASSKEY_GET, bytes_of(good), &challenge));
    assert_true(bytes_equal(challenge, BYTES("AAAA")));
    assert_non_null(passkey_read_client_data(arena, party, PASSKEY_CREATE, bytes_of(good), &challenge));
    for (size_t size = 0; size < sizeof good - 1; size++)
        assert_non_null(
            passkey_read_client_data(arena, party, PASSKEY_GET, (struct bytes){good, size}, &challenge));
}

/* --- keys and challenges --- */

static void test_a_key_is_read_as_written(void **state UNUSED)
{
    const struct passkey written = {.credential = {.id = BYTES("an id of some bytes"),
                                                   .key = {WEBAUTHN_RS256, BYTES("a key")},
                                                   .count = 17,
                                                   .may_backup = true},
                                    .name = BYTES("\"a\" phone"),
                                    .created = 5,
                                    .used = 6};
    struct passkey passkey;
    assert_true(passkey_read(arena, passkey_write(arena, &written), &passkey));
    assert_true(bytes_equal(passkey.credential.id, written.credential.id) &&
                bytes_equal(passkey.name, written.name));
    assert_true(bytes_equal(passkey.credential.key.key, BYTES("a key")) &&
                passkey.credential.key.algorithm == WEBAUTHN_RS256);
    assert_true(passkey.credential.count == 17 && passkey.credential.may_backup && passkey.created == 5 &&
                passkey.used == 6);
    assert_false(passkey_read(arena, NO_BYTES, &passkey) || passkey_read(arena, BYTES("{}"), &passkey) ||
                 passkey_read(arena, BYTES("7"), &passkey));
}

static bool use(struct bytes *content, int64_t issued, const char *challenge)
{
    return passkey_use_challenge(arena, *content, issued, bytes_of(challenge), content);
}

static void test_a_challenge_is_used_once(void **state UNUSED)
{
    struct bytes content = NO_BYTES;
    assert_true(use(&content, 100, "first") && use(&content, 100, "of the same time") &&
                use(&content, 50, "older"));
    assert_false(use(&content, 100, "first") || use(&content, 50, "older"));
    for (int i = 0; i < 100; i++) {
        const char *challenge = arena_printf(arena, "challenge %d", i);
        assert_true(use(&content, 200 + i, challenge));
        for (int k = 0; k <= i; k++)
            assert_false(use(&content, 200 + k, arena_printf(arena, "challenge %d", k)));
        assert_false(use(&content, 100, "first") || use(&content, 50, "older"));
    }
    assert_true(content.size < 1000);
    assert_false(use(&content, 200, "never used, but older than what is remembered"));
    assert_true(use(&content, 298, "never used"));
    content = BYTES("{\"floor\":7}");
    assert_false(use(&content, 1000, "x"));
}

static void test_keys(void **state UNUSED)
{
    const struct webauthn_key nobody = webauthn_key_of_nobody();
    const struct webauthn_key wrong[] = {{WEBAUTHN_ES256, {nobody.key.data, 63}},
                                         {WEBAUTHN_EDDSA, nobody.key},
                                         {WEBAUTHN_RS256, nobody.key},
                                         {0, nobody.key},
                                         {-7, NO_BYTES},
                                         {WEBAUTHN_ES256, {memset(arena_alloc(arena, 64), 1, 64), 64}}};
    assert_true(webauthn_is_key(&nobody));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(webauthn_is_key(&wrong[i]));
}

/* --- a browser --- */

static struct bytes decoded(const char *text)
{
    struct bytes bytes;
    assert_true(passkey_read_base64(arena, bytes_of(text), 4096, &bytes));
    return bytes;
}

static struct bytes altered(struct bytes bytes, size_t place)
{
    char *copy = arena_copy(arena, bytes.data, bytes.size);
    copy[place] ^= 1;
    return (struct bytes){copy, bytes.size};
}

static void test_what_a_browser_gave(void **state UNUSED)
{
    const struct relying_party *party =
        read_party("{\"rp\":\"" BROWSER_RP "\",\"origins\":[\"" BROWSER_ORIGIN "\"]}");
    const struct bytes created = decoded(BROWSER_CREATE_CLIENT_DATA),
                       attestation = decoded(BROWSER_CREATE_ATTESTATION);
    const struct webauthn_assertion assertion = {decoded(BROWSER_GET_CLIENT_DATA), decoded(BROWSER_GET_DATA),
                                                 decoded(BROWSER_GET_SIGNATURE)};
    struct webauthn_credential credential, other;
    struct bytes challenge;
    int64_t count;
    bool may_backup;
    assert_null(passkey_read_client_data(arena, party, PASSKEY_CREATE, created, &challenge));
    assert_true(bytes_equal(challenge, bytes_of(BROWSER_CREATE_CHALLENGE)));
    assert_null(webauthn_read_credential(arena, BROWSER_RP, created, attestation, &credential));
    assert_true(bytes_equal(credential.id, decoded(BROWSER_ID)) &&
                credential.key.algorithm == WEBAUTHN_ES256 && credential.count == 1);
    assert_non_null(webauthn_read_credential(arena, "localhos", created, attestation, &other));
    assert_null(passkey_read_client_data(arena, party, PASSKEY_GET, assertion.client_data, &challenge));
    assert_true(bytes_equal(challenge, bytes_of(BROWSER_GET_CHALLENGE)));
    assert_true(webauthn_verify(BROWSER_RP, &credential.key, &assertion, &count, &may_backup));
    assert_true(count == 2 && !may_backup);
    const struct webauthn_key nobody = webauthn_key_of_nobody();
    assert_false(webauthn_verify(BROWSER_RP, &nobody, &assertion, &count, &may_backup));
    assert_false(webauthn_verify("example.org", &credential.key, &assertion, &count, &may_backup));
    for (size_t place = 0; place < assertion.authenticator_data.size; place++) {
        struct webauthn_assertion one = assertion;
        one.authenticator_data = altered(assertion.authenticator_data, place);
        assert_false(webauthn_verify(BROWSER_RP, &credential.key, &one, &count, &may_backup));
    }
    for (size_t place = 0; place < assertion.signature.size; place++) {
        struct webauthn_assertion one = assertion;
        one.signature = altered(assertion.signature, place);
        assert_false(webauthn_verify(BROWSER_RP, &credential.key, &one, &count, &may_backup));
    }
    for (size_t size = 0; size < attestation.size; size++)
        assert_non_null(webauthn_read_credential(arena, BROWSER_RP, created,
                                                 (struct bytes){attestation.data, size}, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_only_the_shortest_form),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_parties),
        cmocka_unit_test(test_client_data),
        cmocka_unit_test(test_a_key_is_read_as_written),
        cmocka_unit_test(test_a_challenge_is_used_once),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_what_a_browser_gave),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
