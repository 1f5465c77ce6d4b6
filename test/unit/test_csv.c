/* csv_record: where records end, what is wrong with them, and what they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "base/builder.h"
#include "control/foreign/csv_record.h"

static const char closed[] = "a quoted field is not closed";
static const char stray[] = "a quote inside a field that does not begin with one";
static const char behind[] = "expected a separator after the quote that ends a field";

static void a_record_goes_on_only_while_a_quoted_field_is_open(void **state UNUSED)
{
    static const struct {
        const char *line, *problem;
        bool was_open, is_open;
    } cases[] = {
        {"", NULL, false, false},
        {"", NULL, true, true},
        {"a,b", NULL, true, true},
        {"\"", closed, false, true},
        {"\"\"", NULL, false, false},
        {"\"\"\"", closed, false, true},
        {"\"\"\"\"", NULL, false, false},
        {"a,\"b", closed, false, true},
        {"a,\"b\"", NULL, false, false},
        {"a,\"b\",\"c", closed, false, true},
        {"a,\"b,c\",\"d", closed, false, true},
        {"5\" disk", stray, false, false},
        {"5\" disk,\"x", stray, false, false},
        {"5,6\" disk,\"x", stray, false, false},
        {"\"a\"b,\"c", behind, false, false},
        {"end\"", NULL, true, false},
        {"end\"\"", NULL, true, true},
        {"end\",\"more", NULL, true, true},
        {"end\"x,\"more", NULL, true, false},
        {"\"", NULL, true, false},
        {"\",\"", NULL, true, true},
    };
    struct csv_record record;
    const char *problem;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes line = bytes_of(cases[i].line);
        if (csv_record_is_open(line, ',', cases[i].was_open) != cases[i].is_open)
            fail_msg("%s, open before: %d", cases[i].line, cases[i].was_open);
        if (cases[i].was_open)
            continue;
        bool is_good = csv_record_read(arena, line, ',', &record, &problem);
        assert_int_equal(is_good, !cases[i].problem);
        if (!is_good)
            assert_string_equal(problem, cases[i].problem);
    }
}

/* A copy is as large as its field, not as the rest of the record. */
static void doubled_quotes_cost_what_their_field_costs(void **state UNUSED)
{
    enum { FIELDS = CSV_FIELDS_MOST };
    struct builder text = {0};
    struct csv_record record;
    const char *problem;
    for (int i = 0; i < FIELDS; i++)
        builder_printf(&text, "%s\"a\"\"b\"\"\"", i ? "," : "");
    assert_true(csv_record_read(arena, builder_bytes(&text), ',', &record, &problem));
    assert_int_equal(record.count, FIELDS);
    for (int i = 0; i < FIELDS; i++)
        assert_true(bytes_equal(record.fields[i], BYTES("a\"b\"")));
    assert_true(arena_used(arena) < 20 * text.size);
    builder_add_text(&text, ",");
    assert_false(csv_record_read(arena, builder_bytes(&text), ',', &record, &problem));
    assert_string_equal(problem, "more than 4096 fields");
    builder_free(&text);
}

static void a_record_of_separators_is_refused_before_it_is_large(void **state UNUSED)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    struct csv_record record;
    const char *problem;
    assert_non_null(text);
    memset(text, ',', SIZE);
    assert_false(csv_record_read(arena, (struct bytes){text, SIZE}, ',', &record, &problem));
    assert_true(arena_used(arena) < SIZE);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(a_record_goes_on_only_while_a_quoted_field_is_open),
        ARENA_TEST(doubled_quotes_cost_what_their_field_costs),
        ARENA_TEST(a_record_of_separators_is_refused_before_it_is_large),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
