/* search_marks: rows with marks become lists of strings, whatever is in the texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/schema/search.h"

#define SECRET "0123456789abcdef0123456789abcdef"

/* NULL: nothing is marked. */
static void check(const char *row, const char *expected)
{
    struct builder json = {0};
    builder_add_text(&json, "before");
    assert_int_equal(search_marks_write(bytes_of(row), BYTES(SECRET), &json), expected != NULL);
    assert_true(
        bytes_equal((struct bytes){json.data + 6, json.size - 6}, bytes_of(expected ? expected : "")));
    builder_free(&json);
}

static void marks_become_strings(void **state UNUSED)
{
    check("", NULL);
    check("no marks", NULL);
    check("one" SECRET "nother", NULL);
    check(SECRET "bword" SECRET "e", "[[\"\",\"word\",\"\"]]");
    check("a " SECRET "bword" SECRET "e b" SECRET "n" SECRET "bword" SECRET "e",
          "[[\"a \",\"word\",\" b\"],[\"\",\"word\",\"\"]]");
}

static void texts_are_texts(void **state UNUSED)
{
    check("0123456789abcdef0123 <b>\"\\\n " SECRET "bw" SECRET "e 0123456789abcdef0123456789abcde",
          "[[\"0123456789abcdef0123 <b>\\\"\\\\\\n \",\"w\",\" 0123456789abcdef0123456789abcde\"]]");
    check(SECRET "bw" SECRET "e" SECRET, "[[\"\",\"w\",\"" SECRET "\"]]"); /* the secret alone is no mark */
    check("0" SECRET "bw" SECRET "e0", "[[\"0\",\"w\",\"0\"]]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_become_strings),
        cmocka_unit_test(texts_are_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
