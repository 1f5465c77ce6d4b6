/* merge: the table of RFC 7396, what keeps its text, and the bounds of a patch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/builder.h"
#include "model/document/merge.h"

static void check(const char *content, const char *patch, const char *expected)
{
    struct arena *arena = arena_create("test");
    struct bytes merged;
    assert_int_equal(merge_apply(arena, bytes_of(content), bytes_of(patch), &merged), FAULT_NONE);
    assert_true(bytes_equal(merged, bytes_of(expected)));
    arena_destroy(arena);
}

static void the_table_of_the_standard(void **state UNUSED)
{
    check("{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
    check("{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}");
    check("{\"a\":\"b\"}", "{\"a\":null}", "{}");
    check("{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}");
    check("{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
    check("{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}");
    check("{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}");
    check("{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}");
    check("[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]");
    check("{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]");
    check("{\"a\":\"foo\"}", "null", "null");
    check("{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}");
    check("[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}");
    check("{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}");
}

static void what_is_not_named_keeps_its_text(void **state UNUSED)
{
    check("{ \"a\" : 1e2, \"b\":[ 1 ]}", "{\"a\":1e2}", "{ \"a\" : 1e2, \"b\":[ 1 ]}");
    check("{ \"a\" : 1e2, \"b\":[ 1 ]}", "{\"c\":null}", "{ \"a\" : 1e2, \"b\":[ 1 ]}");
    check("{ \"a\" : 1e2, \"b\":[ 1 ]}", "{\"a\":100}", "{\"a\":100,\"b\":[ 1 ]}");
    check("{\"\\u0061\":{\"b\" : {}}, \"n\":1e400}", "{\"a\":{\"b\":{}}}",
          "{\"\\u0061\":{\"b\" : {}}, \"n\":1e400}");
}

static void add_levels(struct builder *text, int levels)
{
    for (int i = 0; i < levels; i++)
        builder_add_text(text, "{\"a\":");
    builder_add_text(text, "1");
    for (int i = 0; i < levels; i++)
        builder_add_text(text, "}");
}

static void a_patch_is_bounded(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct builder text = {0};
    struct bytes merged;
    assert_true(merge_is_patch(arena, BYTES("{\"a\":[[[[1]]]]}")));
    assert_false(merge_is_patch(arena, BYTES("[]")));
    assert_false(merge_is_patch(arena, BYTES("null")));
    add_levels(&text, MERGE_DEPTH_MOST);
    assert_true(merge_is_patch(arena, builder_bytes(&text)));
    assert_int_equal(merge_apply(arena, BYTES("{}"), builder_bytes(&text), &merged), FAULT_NONE);
    assert_true(bytes_equal(merged, builder_bytes(&text)));
    text.size = 0;
    add_levels(&text, MERGE_DEPTH_MOST + 1);
    assert_false(merge_is_patch(arena, builder_bytes(&text)));
    assert_int_equal(merge_apply(arena, BYTES("{}"), builder_bytes(&text), &merged), FAULT_ALIMIT);
    text.size = 0;
    for (int i = 0; i <= MERGE_MEMBERS_MOST; i++)
        builder_printf(&text, "%s\"m%d\":1", i ? "," : "{", i);
    builder_add_text(&text, "}");
    assert_false(merge_is_patch(arena, builder_bytes(&text)));
    builder_free(&text);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_the_standard),
        cmocka_unit_test(what_is_not_named_keeps_its_text),
        cmocka_unit_test(a_patch_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
