/* test_base64: the examples of RFC 4648, and what is not taken for base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static const struct {
    struct bytes bytes, text;
} examples[] = {
    {BYTES(""), BYTES("")},
    {BYTES("f"), BYTES("Zg")},
    {BYTES("fo"), BYTES("Zm8")},
    {BYTES("foo"), BYTES("Zm9v")},
    {BYTES("foob"), BYTES("Zm9vYg")},
    {BYTES("fooba"), BYTES("Zm9vYmE")},
    {BYTES("\0"), BYTES("AA")},
    {BYTES("foobar"), BYTES("Zm9vYmFy")},
    {BYTES("\xFB\xFF\xBF"), BYTES("-_-_")},
    {BYTES("\xFF\xFF"), BYTES("__8")},
};

static void bytes_become_letters_and_come_back(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct builder text = {0};
        char back[8];
        builder_add_text(&text, "before");
        base64_add(&text, examples[i].bytes);
        struct bytes made = {text.data + 6, text.size - 6};
        char *written = malloc(BASE64_SIZE(examples[i].bytes.size));
        assert_true(bytes_equal(made, examples[i].text));
        assert_int_equal(base64_write(examples[i].bytes, written), made.size);
        assert_memory_equal(written, made.data, made.size);
        free(written);
        assert_true(base64_read(made, back, examples[i].bytes.size));
        assert_true(bytes_equal((struct bytes){back, examples[i].bytes.size}, examples[i].bytes));
        builder_free(&text);
    }
}

static void padding_may_follow_when_it_is_whole(void **state UNUSED)
{
    char back[4];
    assert_true(base64_read(BYTES("Zg=="), back, 1));
    assert_true(base64_read(BYTES("Zm8="), back, 2));
    assert_false(base64_read(BYTES("Zg="), back, 1));
    assert_false(base64_read(BYTES("Zg==="), back, 1));
    assert_false(base64_read(BYTES("Zm9v="), back, 3));
    assert_false(base64_read(BYTES("===="), back, 1));
}

static void the_standard_alphabet_has_padding(void **state UNUSED)
{
    static const struct bytes pairs[][2] = {{BYTES("\xFB\xFF\xBF"), BYTES("+/+/")},
                                            {BYTES("\xFF\xFF"), BYTES("//8=")},
                                            {BYTES("f"), BYTES("Zg==")},
                                            {BYTES("foo"), BYTES("Zm9v")},
                                            {BYTES(""), BYTES("")}};
    char back[4];
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct builder text = {0};
        base64_add_standard(&text, pairs[i][0]);
        assert_true(bytes_equal(builder_bytes(&text), pairs[i][1]));
        assert_int_equal(base64_size(pairs[i][1]), pairs[i][0].size);
        assert_true(base64_read_standard(pairs[i][1], back, pairs[i][0].size));
        assert_true(bytes_equal((struct bytes){back, pairs[i][0].size}, pairs[i][0]));
        builder_free(&text);
    }
    assert_false(base64_read_standard(BYTES("-_-_"), back, 3));
    assert_false(base64_read(BYTES("+/+/"), back, 3));
}

/* Each of 256 bytes as a letter is one of the alphabet's, or refused. */
static void every_letter_has_its_bits(void **state UNUSED)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char back[3];
    for (int c = 0; c < 256; c++) {
        const char text[4] = {'A', 'A', 'A', (char)c};
        const char *found = c ? strchr(letters, c) : NULL;
        assert_int_equal(base64_read((struct bytes){text, 4}, back, 3), found != NULL);
        if (found)
            assert_int_equal(back[2], found - letters);
    }
}

static void other_texts_and_sizes_are_refused(void **state UNUSED)
{
    static const struct bytes wrong[] = {BYTES("Zm9"),  BYTES("Zm9vY"), BYTES("Zm9+"),  BYTES("Zm9/"),
                                         BYTES("Zm 9"), BYTES("Zm9\n"), BYTES("Zm9\0"), BYTES("Zm9\xE9"),
                                         BYTES(""),     NO_BYTES};
    char back[4];
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(base64_read(wrong[i], back, 3));
    assert_false(base64_read(BYTES("Zh"), back, 1));  /* bits that stand for nothing */
    assert_false(base64_read(BYTES("Zm9"), back, 2)); /* the same */
    assert_false(base64_read(BYTES("Zm9vYg"), back, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_letters_and_come_back),
        cmocka_unit_test(padding_may_follow_when_it_is_whole),
        cmocka_unit_test(the_standard_alphabet_has_padding),
        cmocka_unit_test(every_letter_has_its_bits),
        cmocka_unit_test(other_texts_and_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
