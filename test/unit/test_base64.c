/* test_base64: the examples of RFC 4648, every letter in every place, and what is not taken for base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/coding/base64.h"

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

/* Each of 256 bytes, in each place of four letters and of the last two or three, is one of the alphabet's, or
 * refused. */
static void every_letter_has_its_bits(void **state UNUSED)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int c = 0; c < 256; c++) {
        const char *found = c ? strchr(letters, c) : NULL;
        for (size_t at = 0; at < 7; at++) {
            char text[7];
            unsigned char back[5] = {0};
            memset(text, 'A', sizeof text);
            text[at] = (char)c;
            const unsigned value = found ? (unsigned)(found - letters) : 0;
            const bool is_whole =
                at < 6 || value % 4 == 0; /* two bits of the last letter stand for nothing */
            assert_int_equal(base64_read((struct bytes){text, 7}, back, 5), found && is_whole);
            if (found && is_whole) {
                const size_t bit = 6 * at,
                             byte = bit / 8; /* the letter's bits are in this byte and the next */
                const unsigned next = byte + 1 < sizeof back ? back[byte + 1] : 0;
                assert_int_equal(((unsigned)back[byte] << 8 | next) >> (10 - bit % 8) & 63, value);
            }
        }
    }
}

static void texts_of_every_size_come_back(void **state UNUSED)
{
    for (size_t size = 1; size < 70; size++) {
        struct builder url = {0}, standard = {0};
        unsigned char *bytes = malloc(size), *back = malloc(size);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)(251 * (i + size) >> 3);
        base64_add(&url, (struct bytes){(const char *)bytes, size});
        base64_add_standard(&standard, (struct bytes){(const char *)bytes, size});
        assert_true(base64_read_strict(builder_bytes(&url), back, size));
        assert_memory_equal(back, bytes, size);
        memset(back, 0, size);
        assert_true(base64_read_standard(builder_bytes(&standard), back, size));
        assert_memory_equal(back, bytes, size);
        assert_false(base64_read_strict(builder_bytes(&url), back, size - 1));
        free(bytes);
        free(back);
        builder_free(&url);
        builder_free(&standard);
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
        cmocka_unit_test(texts_of_every_size_come_back),
        cmocka_unit_test(other_texts_and_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
