/* test_signed_text: a signed text is read for its own question only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/coding/hex.h"
#include "edge/crypto/crypto.h"
#include "operation/signed_text.h"

static struct arena *arena;
static const struct bytes secret = BYTES("0123456789abcdef0123456789abcdef"), foreign = BYTES("another");

static void a_signed_text_is_read_for_its_question(void **state UNUSED)
{
    static const struct bytes payloads[] = {BYTES(""), BYTES("x"), BYTES("1 2 3 \xC3\xA9. ")};
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        struct bytes payload, signed_text = signed_text_make(arena, secret, BYTES("question"), payloads[i]);
        assert_true(signed_text_read(arena, secret, BYTES("question"), signed_text, &payload));
        assert_true(bytes_equal(payload, payloads[i]));
        assert_false(signed_text_read(arena, secret, BYTES("questions"), signed_text, &payload));
        assert_false(signed_text_read(arena, secret, BYTES(""), signed_text, &payload));
        assert_false(signed_text_read(arena, foreign, BYTES("question"), signed_text, &payload));
        assert_false(signed_text_read(arena, NO_BYTES, BYTES("question"), signed_text, &payload));
    }
}

static void altered_and_shortened_texts_are_refused(void **state UNUSED)
{
    struct bytes payload, signed_text = signed_text_make(arena, secret, BYTES("question"), BYTES("payload"));
    for (size_t i = 0; i < signed_text.size; i++) {
        char *copy = arena_copy(arena, signed_text.data, signed_text.size);
        copy[i] ^= 1;
        assert_false(signed_text_read(arena, secret, BYTES("question"),
                                      (struct bytes){copy, signed_text.size}, &payload));
        assert_false(signed_text_read(arena, secret, BYTES("question"), (struct bytes){signed_text.data, i},
                                      &payload));
    }
    assert_false(signed_text_read(arena, secret, BYTES("question"), NO_BYTES, &payload));
}

/* Of RFC 4231, and with keys of the size of a block, one more, and none. */
static void a_keyed_digest_is_that_of_the_standard(void **state UNUSED)
{
    static const struct {
        char fill;
        size_t size;
        const char *text, *digest;
    } cases[] = {
        {0x0b, 20, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {(char)0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {'k', 64, "", "83026a325aaee70e36cfe607536aa1054104ad1077c36134810d4ccded1ccd3b"},
        {'k', 65, "", "41f1c4cc3107cd5b8d92460f61032902bfdb06484eef17e861b83a5012d3b7f3"},
        {'k', 0, "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char digest[CRYPTO_SHA256];
        char key[131], hex[CRYPTO_SHA256_HEX + 1] = "";
        memset(key, cases[i].fill, sizeof key);
        crypto_hmac((struct bytes){cases[i].size ? key : NULL, cases[i].size}, bytes_of(cases[i].text),
                    digest);
        hex_write(digest, sizeof digest, hex);
        assert_string_equal(hex, cases[i].digest);
    }
}

/* Whoever sends megabytes as a cursor has them refused before they are copied. */
static void texts_of_any_length_are_none_of_ours(void **state UNUSED)
{
    struct bytes payload;
    for (size_t size = 0; size < 40; size++)
        assert_false(signed_text_read(arena, secret, BYTES("question"),
                                      (struct bytes){arena_printf(arena, "%0*d", (int)size + 1, 0), size},
                                      &payload));
    static char longest[20 * 1024];
    struct bytes signed_text =
        signed_text_make(arena, secret, BYTES("question"), (struct bytes){longest, sizeof longest});
    assert_false(signed_text_read(arena, secret, BYTES("question"), signed_text, &payload));
    signed_text =
        signed_text_make(arena, secret, BYTES("question"), (struct bytes){longest, sizeof longest / 2});
    assert_true(signed_text_read(arena, secret, BYTES("question"), signed_text, &payload));
}

/* Numbers of transactions are in payloads: neither they nor whether they have changed can be seen. */
static void a_signed_text_shows_nothing(void **state UNUSED)
{
    struct bytes one = signed_text_make(arena, secret, BYTES("question"), BYTES("1 14680 14680")),
                 again = signed_text_make(arena, secret, BYTES("question"), BYTES("1 14680 14680"));
    assert_false(bytes_equal(one, again));
    assert_null(memmem(one.data, one.size, "14680", 5));
    size_t same = 0;
    for (size_t i = 0; i < one.size; i++)
        same += one.data[i] == again.data[i];
    assert_true(same < one.size / 4);
}

static void parts_cannot_be_moved_from_one_to_the_next(void **state UNUSED)
{
    struct builder one = {0}, other = {0};
    signed_text_add_part(&one, BYTES("ab"));
    signed_text_add_part(&one, BYTES("c"));
    signed_text_add_part(&other, BYTES("a"));
    signed_text_add_part(&other, BYTES("bc"));
    assert_false(bytes_equal(builder_bytes(&one), builder_bytes(&other)));
    builder_free(&one);
    builder_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signed_text_is_read_for_its_question),
        cmocka_unit_test(a_keyed_digest_is_that_of_the_standard),
        cmocka_unit_test(altered_and_shortened_texts_are_refused),
        cmocka_unit_test(texts_of_any_length_are_none_of_ours),
        cmocka_unit_test(a_signed_text_shows_nothing),
        cmocka_unit_test(parts_cannot_be_moved_from_one_to_the_next),
    };
    arena = arena_create("test");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
