/* definition: what is one, what is none, and that keys are the same for what means the same only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "arena_fixture.h"
#include "model/schema/definition.h"

#include "edge/crypto/crypto.h"

static const char *key_of(const char *text)
{
    struct definition definition;
    struct builder key = {0};
    if (!definition_read(arena, bytes_of(text), &definition))
        return NULL;
    assert_true(bytes_equal(definition.text, bytes_of(text)));
    definition_add_key(&definition, &key);
    const char *copy = arena_copy(arena, key.data, key.size);
    builder_free(&key);
    return copy;
}

static void the_three_forms(void **state UNUSED)
{
    assert_string_equal(key_of("Person"), "cPerson/@");
    assert_string_equal(key_of("Person/ann"), "dPerson/@ann");
    assert_string_equal(key_of("Person/team@red"), "mPerson/team@red");
    assert_string_equal(key_of("Person/team@"), "mPerson/team@");
    assert_string_equal(key_of("Person/place@Paris@rue X"), "mPerson/place@5:Paris5:rue X");
    assert_string_equal(key_of("Person/place@@"), "mPerson/place@0:0:");
}

static void escapes(void **state UNUSED)
{
    assert_string_equal(key_of("Person/a%40b%2Fc%25"), "dPerson/@a@b/c%");
    assert_string_equal(key_of("Person/a%2fb"), key_of("Person/a/b"));
    assert_string_equal(key_of("Person/team@r%40d@%c3%a9"), "mPerson/team@3:r@d2:\xc3\xa9");
    assert_string_equal(key_of("Person/a+b"), "dPerson/@a+b");
}

/* A class, a document and a collection may look alike in parts: their keys never do. */
static void keys_differ(void **state UNUSED)
{
    static const char *const texts[] = {"A",       "A/a",         "A/a%40",    "A/a@",
                                        "A/a@b",   "A/a%40b",     "A/a@b@c",   "A/a@b%40c",
                                        "A/a@1:b", "A/c@3:b%40c", "A/a@b@%40", "A/b@a"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(key_of(texts[i]), key_of(texts[k]));
}

static void what_is_none(void **state UNUSED)
{
    static const char *const texts[] = {"",
                                        "person",
                                        "Person/",
                                        "/ann",
                                        "Person/%",
                                        "Person/a%2",
                                        "Person/%zz",
                                        "Person/%00",
                                        "Person/%ff",
                                        "Person/\xff",
                                        "Person/@red",
                                        "Person/1team@red",
                                        "Person/te am@red",
                                        "Person/id@x",
                                        "Person/team@a@b@c@d@e",
                                        "Person@red",
                                        "A23456789012345678/a",
                                        "Person/team@%0",
                                        "Per son",
                                        " Person"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_null(key_of(texts[i]));
}

static void lengths(void **state UNUSED)
{
    enum { LONG = 4000 };
    char text[LONG + 1];
    memset(text, 'x', sizeof text);
    memcpy(text, "Note/", 5);
    text[5 + DEFINITION_ID_MOST] = '\0';
    assert_non_null(key_of(text));
    text[5 + DEFINITION_ID_MOST] = 'x';
    text[6 + DEFINITION_ID_MOST] = '\0';
    assert_null(key_of(text));
    /* a value may be longer: a digest stands for it */
    memcpy(text, "Note/place@", 11);
    memset(text + 11, 'x', sizeof text - 11);
    text[LONG] = '\0';
    assert_int_equal(strlen(key_of(text)), strlen("mNote/place@") + 256);
}

/* Of 300 letters x: the text and its digest are one definition. */
static void a_digest_stands_for_its_value(void **state UNUSED)
{
    char text[400], hex[CRYPTO_SHA256_HEX + 1];
    memset(text, 'x', sizeof text);
    memcpy(text, "Note/place@", 11);
    text[311] = '\0';
    crypto_sha256_hex(bytes_of(text + 11), hex);
    assert_string_equal(key_of(text), key_of(arena_printf(arena, "Note/place@#300:%s", hex)));
    assert_string_equal(key_of(arena_printf(arena, "%s@b", text)),
                        key_of(arena_printf(arena, "Note/place@#300:%s@b", hex)));
    assert_null(key_of(arena_printf(arena, "Note/place@#255:%s", hex)));
    assert_null(key_of(arena_printf(arena, "Note/place@#300:%s0", hex)));
    assert_null(key_of(arena_printf(arena, "Note/place@#0300:%s", hex)));
    assert_null(key_of(arena_printf(arena, "Note/place@#300%s", hex)));
    assert_null(key_of("Note/place@#"));
    assert_non_null(key_of("Note/place@%23"));
    assert_non_null(key_of("Note/#300"));
}

static void a_text_is_no_string(void **state UNUSED)
{
    struct definition definition;
    assert_false(definition_read(arena, (struct bytes){"Note/a\0b", 8}, &definition));
    assert_false(definition_read(arena, NO_BYTES, &definition));
}

static const char *key_of_records(const char *text)
{
    struct definition definition;
    struct builder key = {0};
    if (!definition_read_records(arena, bytes_of(text), &definition))
        return NULL;
    assert_true(bytes_equal(definition.text, bytes_of(text)));
    definition_add_key(&definition, &key);
    const char *copy = arena_copy(arena, key.data, key.size);
    builder_free(&key);
    return copy;
}

static void records(void **state UNUSED)
{
    static const char *const none[] = {
        "record:",       "record",         "records",      "record:a/b",  "records:a@b",   "record:%zz",
        "record:a%00",   "record:%ff",     "Record:a",     "Person",      "Person/a",      "recordss:a",
        "record:\xff",   "record:\xc3%a9", "records:/",    "records:b/a", "records:a/b/c", "records:a/b@c",
        "records:a/%00", "records:%00/a",  "records:%ff/", "records:a/%"};
    char text[1100];
    for (size_t i = 0; i < COUNT_OF(none); i++)
        if (key_of_records(none[i]))
            fail_msg("%s", none[i]);
    assert_string_equal(key_of_records("records:a%2f/a%40"), "i/@a/"); /* NUL, and its last key */
    assert_string_equal(key_of_records("records:a/"), "i/@a");
    assert_string_equal(key_of_records("records:/a"), "i/@");
    assert_string_equal(key_of_records("records:a/a"), "r/@a"); /* the same as record:a */
    assert_string_not_equal(key_of_records("records:a/b"), key_of_records("records:a"));
    struct definition range;
    assert_true(definition_read_records(arena, BYTES("records:%61%2f/b%40"), &range));
    assert_true(range.kind == DEFINITION_OF_RANGE && bytes_equal(range.value, BYTES("a/")) &&
                bytes_equal(range.to, BYTES("b@")));
    assert_true(definition_read_records(arena, BYTES("records:a/"), &range));
    assert_true(range.kind == DEFINITION_OF_RANGE && !range.to.data);
    assert_true(definition_read_records(arena, BYTES("records:/a"), &range));
    assert_true(!range.value.size && bytes_equal(range.to, BYTES("a")));
    assert_null(key_of("record:a"));
    assert_null(key_of("records:A/b@c"));
    assert_string_equal(key_of_records("record:a%2Fb%40:%c3%a9"), "r/@a/b@:\xc3\xa9");
    assert_string_equal(key_of_records("records:a."), "p/@a.");
    assert_string_equal(key_of_records("records:"), "p/@");
    assert_string_not_equal(key_of_records("record:s:a"), key_of_records("records:a"));
    memset(text, 'x', sizeof text);
    memcpy(text, "record:", 7);
    text[7 + DEFINITION_KEY_MOST] = '\0';
    assert_non_null(key_of_records(text));
    text[7 + DEFINITION_KEY_MOST] = 'x';
    text[8 + DEFINITION_KEY_MOST] = '\0';
    assert_null(key_of_records(text));
    char *both = arena_printf(arena, "records:%.*s/%.*s", DEFINITION_KEY_MOST - 1, text + 7,
                              DEFINITION_KEY_MOST, text + 7);
    assert_non_null(key_of_records(both));
    assert_null(key_of_records(arena_printf(arena, "%sx", both)));
    assert_true(definition_is_of_records(BYTES("record:")) && definition_is_of_records(BYTES("records:/")));
    assert_false(definition_is_of_records(BYTES("record")) || definition_is_of_records(BYTES("Record:a")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(the_three_forms),     ARENA_TEST(escapes), ARENA_TEST(keys_differ),
        ARENA_TEST(what_is_none),        ARENA_TEST(lengths), ARENA_TEST(a_digest_stands_for_its_value),
        ARENA_TEST(a_text_is_no_string), ARENA_TEST(records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
