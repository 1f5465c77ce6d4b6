/* page: answers of list and get as a copy reads them; retries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/documents/page.h"
#include "control/backoff.h"

static struct arena *arena;
static struct builder lines;

static int set_up(void **state UNUSED)
{
    arena = arena_create("test");
    return 0;
}

static int tear_down(void **state UNUSED)
{
    arena_destroy(arena);
    builder_free(&lines);
    return 0;
}

static void assert_text(struct bytes text, const char *expected)
{
    assert_true(bytes_equal(text, bytes_of(expected)));
}

static void classes(void **state UNUSED)
{
    struct bytes *found, cursor;
    size_t count;
    assert_true(page_read_classes(arena, BYTES("{\"out\":{\"classes\":[\"A\",\"B\"],\"cursor\":\"B\"}}"),
                                  &found, &count, &cursor));
    assert_int_equal(count, 2);
    assert_text(found[1], "B");
    assert_text(cursor, "B");
    assert_true(page_read_classes(arena, BYTES("{\"out\":{\"classes\":[]}}"), &found, &count, &cursor));
    assert_int_equal(count, 0);
    assert_null(cursor.data);
}

static void names(void **state UNUSED)
{
    struct page_name *found;
    struct bytes cursor;
    size_t count;
    assert_true(page_read_names(
        arena,
        BYTES("{\"out\":{\"docs\":[{\"c\":\"A\",\"id\":\"\\u00e9\",\"v\":1}],\"cursor\":\"\\u00e9\"}}"),
        &found, &count, &cursor));
    assert_int_equal(count, 1);
    assert_text(found[0].class, "A");
    assert_text(found[0].id, "\xC3\xA9");
    assert_text(cursor, "\xC3\xA9");
}

static void documents_are_lines(void **state UNUSED)
{
    size_t written;
    struct bytes text =
        BYTES("{\"out\":{\"docs\":[\n {\"c\":\"A\",\"id\":\"a\",\"v\":5,\"items\":[{\"j\":{\r\n1e400:0}}]},"
              "{\"c\":\"A\",\"id\":\"b\",\"v\":0,\"items\":[]}, {\"c\":\"A\",\"id\":\"c\",\"v\":6}]}}");
    assert_false(page_read_documents(arena, text, 3, &lines, &written)); /* 1e400 is no name */
    text = BYTES(
        "{\"out\":{\"docs\":[\n {\"c\":\"A\",\"id\":\"a\",\"v\":5,\"items\":[{\"j\":[\r\n1e400,\"\\n\"]}]},"
        "{\"c\":\"A\",\"id\":\"b\",\"v\":0,\"items\":[]}, {\"c\":\"A\",\"id\":\"c\",\"v\":6}]}}");
    assert_true(page_read_documents(arena, text, 3, &lines, &written));
    assert_int_equal(written, 2);
    assert_text(builder_bytes(&lines),
                "{\"c\":\"A\",\"id\":\"a\",\"v\":5,\"items\":[{\"j\":[  1e400,\"\\n\"]}]}\n"
                "{\"c\":\"A\",\"id\":\"c\",\"v\":6}\n");
    assert_false(page_read_documents(arena, text, 2, &lines, &written));
}

static void what_is_no_answer(void **state UNUSED)
{
    static const char *const texts[] = {"",
                                        "<html>",
                                        "{}",
                                        "{\"out\":[]}",
                                        "{\"out\":{}}",
                                        "{\"out\":{\"docs\":{}}}",
                                        "{\"out\":{\"docs\":[3]}}",
                                        "{\"out\":{\"docs\":[{\"c\":\"A\"}]}}",
                                        "{\"out\":{\"docs\":[{\"c\":1,\"id\":\"a\"}]}}",
                                        "{\"out\":{\"docs\":[{\"c\":\"A\",\"id\":\"\",\"v\":1}]}}",
                                        "{\"out\":{\"docs\":[],\"cursor\":1}}",
                                        "{\"out\":{\"docs\":[],\"cursor\":\"\"}}",
                                        "{\"out\":{\"classes\":[1]}}",
                                        "{\"out\":{\"classes\":[\"\"]}}"};
    struct page_name *found;
    struct bytes *classes_found, cursor;
    size_t count;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct bytes text = bytes_of(texts[i]);
        if (page_read_names(arena, text, &found, &count, &cursor) ||
            page_read_classes(arena, text, &classes_found, &count, &cursor) ||
            page_read_documents(arena, text, 1, &lines, &count))
            fail_msg("%s", texts[i]);
        assert_int_equal(lines.size, 0);
    }
}

static void names_of_people(void **state UNUSED)
{
    struct page_name name;
    assert_true(page_name_parse(BYTES("A.b.c"), &name));
    assert_text(name.class, "A");
    assert_text(name.id, "b.c");
    assert_false(page_name_parse(BYTES(""), &name));
    assert_false(page_name_parse(BYTES("A"), &name));
    assert_false(page_name_parse(BYTES("A."), &name));
    assert_false(page_name_parse(BYTES(".a"), &name));
}

static void retries_have_an_end(void **state UNUSED)
{
    struct backoff backoff = {0};
    int64_t before_ms = clock_monotonic_ms(), due_ms = 0;
    for (int i = 0; i < 20; i++) {
        assert_true(backoff_goes_on(&backoff, 1000));
        assert_true(backoff.due_ms > before_ms && backoff.due_ms <= clock_monotonic_ms() + 10000);
        assert_int_equal(backoff.tries, i + 1);
        due_ms = backoff.due_ms > due_ms ? backoff.due_ms : due_ms;
    }
    assert_true(due_ms >= before_ms + 5000);
    backoff.failing_ms -= 2000 * 1000;
    assert_false(backoff_goes_on(&backoff, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(classes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(documents_are_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_of_people, set_up, tear_down),
        cmocka_unit_test_setup_teardown(retries_have_an_end, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
