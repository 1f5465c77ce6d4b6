/* json_string: strings written with their escapes, and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "edge/json/json.h"

static void assert_bytes(struct bytes got, struct bytes wanted)
{
    assert_int_equal(got.size, wanted.size);
    if (wanted.size)
        assert_memory_equal(got.data, wanted.data, wanted.size);
}

static struct bytes read_string(struct arena *arena, struct bytes text)
{
    struct json_limits limits = {.depth = 1, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    assert_int_equal(json_read(arena, text, &limits, &root, &problem), FAULT_NONE);
    return root->value;
}

static void strings_are_written_with_the_escapes_they_need(void **state UNUSED)
{
    static const struct {
        struct bytes text;
        const char *written;
    } cases[] = {
        {BYTES(""), "\"\""},
        {{NULL, 0}, "\"\""},
        {BYTES("plain"), "\"plain\""},
        {BYTES("a/b\x7F caf\xC3\xA9 \xF0\x9F\x98\x80"), "\"a/b\x7F caf\xC3\xA9 \xF0\x9F\x98\x80\""},
        {BYTES("\"\\"), "\"\\\"\\\\\""},
        {BYTES("\b\t\n\f\r\v\0\x1F x"), "\"\\b\\t\\n\\f\\r\\u000b\\u0000\\u001f x\""},
        {BYTES("long enough for words\nand behind them"), "\"long enough for words\\nand behind them\""},
    };
    struct builder builder = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        builder.size = 0;
        json_add_string(&builder, cases[i].text);
        assert_bytes(builder_bytes(&builder), bytes_of(cases[i].written));
        assert_int_equal(json_string_size(cases[i].text), builder.size);
    }
    builder_free(&builder);
}

static void every_character_comes_back(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct builder builder = {0};
    char text[40];
    /* each byte at each place around the edges of a word */
    for (int byte = 1; byte < 0x80; byte++)
        for (size_t place = 0; place < 20; place++) {
            memset(text, 'x', 20);
            text[place] = (char)byte;
            builder.size = 0;
            json_add_string(&builder, (struct bytes){text, 20});
            assert_int_equal(json_string_size((struct bytes){text, 20}), builder.size);
            assert_bytes(read_string(arena, builder_bytes(&builder)), (struct bytes){text, 20});
        }
    builder_free(&builder);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_written_with_the_escapes_they_need),
        cmocka_unit_test(every_character_comes_back),
    };
    return cmocka_run_group_tests_name("json_string", tests, NULL, NULL);
}
