/* test_base64: the examples of RFC 4648, and what is not taken for base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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
        assert_true(bytes_equal(made, examples[i].text));
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
        cmocka_unit_test(other_texts_and_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
