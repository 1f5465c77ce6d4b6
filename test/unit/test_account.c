/* test_account: tokens, cookies, names, and the texts of accounts and sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arena_fixture.h"
#include "base/coding/base64.h"
#include "edge/crypto/password.h"
#include "model/account/account.h"
#include "model/document/stamp.h"

#define ID     "AAECAwQFBgcICQoLDA0ODw"
#define SECRET "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

static void expect(struct bytes text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

/* --- tokens --- */

static void tokens(void **state UNUSED)
{
    struct account_token token;
    assert_true(account_read_token(BYTES("st_" ID "." SECRET), &token));
    assert_false(token.is_service);
    expect(token.account, ID);
    expect(token.secret, SECRET);
    assert_true(account_read_token(BYTES("sk_" ID "." SECRET), &token));
    assert_true(token.is_service);
}

static void what_is_no_token(void **state UNUSED)
{
    static const char *const wrong[] = {
        "", "st_", "st", "st_" ID, "st_" ID ".", ID "." SECRET, "ST_" ID "." SECRET, "su_" ID "." SECRET,
        "st-" ID "." SECRET, "st_" ID ":" SECRET, "st_" SECRET "." ID, "st_" ID "." SECRET "A",
        " st_" ID "." SECRET, "st_AAECAwQFBgcICQoLDA0OD." SECRET "A",
        /* not the form that is written: bits beyond the last byte */
        "st_AAECAwQFBgcICQoLDA0ODx." SECRET, "st_" ID ".AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9",
        "st_AAECAwQFBgcICQoLDA0OD+." SECRET,
        "st_" ID ".AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh=", "st_AAECAwQFBgcICQoLDA0O/w." SECRET};
    struct account_token token;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (account_read_token(bytes_of(wrong[i]), &token))
            fail_msg("%s", wrong[i]);
    char with_nul[] = "st_" ID "." SECRET;
    with_nul[10] = '\0';
    assert_false(account_read_token((struct bytes){with_nul, sizeof with_nul - 1}, &token));
}

/* Each single byte, at each place: none but the own one is accepted there, unless it makes another token. */
static void a_token_with_another_byte_is_another(void **state UNUSED)
{
    static const char good[] = "st_" ID "." SECRET;
    struct account_token token;
    for (size_t place = 0; place < sizeof good - 1; place++)
        for (int byte = 0; byte < 256; byte++) {
            char text[sizeof good];
            memcpy(text, good, sizeof good);
            text[place] = (char)byte;
            bool is_alphabet = (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z') ||
                               byte == '-' || byte == '_';
            if (account_read_token((struct bytes){text, sizeof text - 1}, &token))
                assert_true(is_alphabet || byte == good[place]);
        }
}

static void cookies(void **state UNUSED)
{
    static const struct {
        const char *header, *value;
    } cases[] = {
        {"", NULL},
        {"a=b", NULL},
        {"__Host-stampd-team", ""},
        {"__Host-stampd-team=", ""},
        {"__Host-stampd-team=x", "x"},
        {"a=b;__Host-stampd-team=x", "x"},
        {"a=b; __Host-stampd-team=x; c=d", "x"},
        {"a=b;\t__Host-stampd-team=x=y \t;", "x=y"},
        {"__Host-stampd-team=x; __Host-stampd-team=y", "x"},
        {"__Host-stampd-teams=x", NULL},
        {"__Host-stampd-tea=x", NULL},
        {"__Host-stampd-lead=x", NULL},
        {"__host-stampd-team=x", NULL},
        {"stampd-team=x", NULL},
        {"a=__Host-stampd-team=x", NULL},
        {";;;=;= ;", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes value = account_find_cookie(bytes_of(cases[i].header), BYTES("team"));
        assert_int_equal(value.data != NULL, cases[i].value != NULL);
        if (cases[i].value)
            expect(value, cases[i].value);
    }
}

/* --- names --- */

static void names(void **state UNUSED)
{
    struct bytes normal;
    char long_name[ACCOUNT_NAME_MOST + 2];
    memset(long_name, 'X', sizeof long_name);
    assert_true(account_normalise(arena, BYTES("Ann.O'Neil+1@Example.ORG"), &normal));
    expect(normal, "ann.o'neil+1@example.org");
    assert_true(account_normalise(arena, BYTES("AZ[az`@{"), &normal));
    expect(normal, "az[az`@{");
    assert_true(account_normalise(arena, (struct bytes){long_name, ACCOUNT_NAME_MOST}, &normal));
    assert_false(account_normalise(arena, (struct bytes){long_name, ACCOUNT_NAME_MOST + 1}, &normal));
    static const char *const wrong[] = {"", " ", "a b", "a\n", "\x7f", "\xc3\xa9", "a\tb", "\x01"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(account_normalise(arena, bytes_of(wrong[i]), &normal));
}

static void addresses(void **state UNUSED)
{
    static const char *const good[] = {"a@b", "ann@example.org", "a+b@[::1]", "\"x\"@y"};
    static const char *const wrong[] = {"",      "a",       "@",     "a@",    "@b",         "a@b@c", "a b@c",
                                        "a@b\n", "a@b,c@d", "a@b;c", "<a@b>", "a@\xc3\xa9", "a@b\r"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(account_is_address(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (account_is_address(bytes_of(wrong[i])))
            fail_msg("%s", wrong[i]);
}

/* --- documents --- */

static void accounts(void **state UNUSED)
{
    const struct account made = {
        .name = BYTES("a\"b"), .address = BYTES("a@b"), .is_disabled = true, .created = 261121103000123};
    struct account account;
    struct bytes self = account_write_self(arena, &made);
    assert_true(account_read(arena, self, NO_BYTES, &account));
    expect(account.name, "a\"b");
    expect(account.address, "a@b");
    assert_true(account.is_disabled);
    assert_false(account.is_confirmed);
    assert_int_equal(account.created, made.created);
    assert_int_equal(account.role_count, 0);
    assert_true(account_read(arena, self, BYTES("{\"roles\":[\"b\",\"a\",\"b\",\"ab\",\"a\"]}"), &account));
    assert_int_equal(account.role_count, 3);
    expect(account.roles[0], "a");
    expect(account.roles[1], "ab");
    expect(account.roles[2], "b");
    assert_true(account_read(arena, self, BYTES("{\"roles\":[]}"), &account));
}

static void malformed_accounts(void **state UNUSED)
{
    static const char *const roles[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"roles\":7}",
                                        "{\"roles\":[7]}",
                                        "{\"roles\":[\"\"]}",
                                        "{\"roles\":[\"a b\"]}",
                                        "{\"roles\":[[\"a\"]]}",
                                        "{\"roles\":[null]}"};
    struct account account;
    assert_false(account_read(arena, NO_BYTES, NO_BYTES, &account));
    assert_false(account_read(arena, BYTES("7"), NO_BYTES, &account));
    assert_false(account_read(arena, BYTES("{"), NO_BYTES, &account));
    assert_true(account_read(arena, BYTES("{}"), NO_BYTES, &account));
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        assert_false(account_read(arena, BYTES("{}"), bytes_of(roles[i]), &account));
}

static void sessions(void **state UNUSED)
{
    const struct account_session made = {.created = 261121103000123, .expires = 261221103000123},
                                 key = {.created = 261121103000123, .is_service = true, .device = BYTES("x")};
    struct account_session session;
    assert_true(account_read_session(arena, account_write_session(arena, &made), &session));
    assert_int_equal(session.expires, made.expires);
    assert_false(session.is_service);
    assert_true(account_read_session(arena, account_write_session(arena, &key), &session));
    assert_int_equal(session.expires, 0);
    assert_true(session.is_service);
    expect(session.device, "x");
    static const char *const wrong[] = {"",
                                        "{}",
                                        "7",
                                        "{\"expires\":0}",
                                        "{\"expires\":1e3}",
                                        "{\"expires\":\"261221103000123\"}",
                                        "{\"expires\":261321103000123}",
                                        "{\"service\":1}"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(account_read_session(arena, bytes_of(wrong[i]), &session));
}

static void expiry(void **state UNUSED)
{
    const int64_t minute = INT64_C(29000000), stamp = account_stamp_of(minute);
    assert_true(stamp_is_valid(stamp));
    assert_false(account_is_over(stamp, minute - 1));
    assert_true(account_is_over(stamp, minute));
    assert_true(account_is_over(stamp, minute + 1));
    assert_false(account_is_over(0, INT64_C(1) << 40)); /* never */
}

/* --- passwords --- */

static void passwords(void **state UNUSED)
{
    char one[PASSWORD_DIGEST_MOST], other[PASSWORD_DIGEST_MOST];
    password_digest(BYTES("correct horse"), one);
    password_digest(BYTES("correct horse"), other);
    assert_string_not_equal(one, other); /* each has a salt */
    assert_true(password_is(BYTES("correct horse"), one));
    assert_true(password_is(BYTES("correct horse"), other));
    assert_false(password_is(BYTES("correct horsf"), one));
    assert_false(password_is(BYTES(""), one));
    assert_false(password_is(BYTES("correct horse"), password_of_nobody()));
    assert_int_equal(strncmp(one, password_of_nobody(), strlen("$argon2id$v=19$m=19456,t=2,p=1$")), 0);
}

static void what_is_no_digest(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "x",
        "$argon2id$",
        "$argon2id$v=19$m=19456,t=2,p=1$",
        "$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA",
        "$argon2id$v=19$m=4294967295,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAA",
        "$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=19456,t=2,p=1$%%%%$%%%%"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(password_is(BYTES("correct horse"), wrong[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),
        cmocka_unit_test(what_is_no_token),
        cmocka_unit_test(a_token_with_another_byte_is_another),
        cmocka_unit_test(cookies),
        cmocka_unit_test(names),
        cmocka_unit_test(addresses),
        cmocka_unit_test(accounts),
        cmocka_unit_test(malformed_accounts),
        cmocka_unit_test(sessions),
        cmocka_unit_test(expiry),
        cmocka_unit_test(passwords),
        cmocka_unit_test(what_is_no_digest),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
