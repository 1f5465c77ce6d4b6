/* csv_record: where records end, what separates their fields, what is wrong with them, and what they cost.
 * foreign_ids: which ids come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "base/builder.h"
#include "control/foreign/csv/csv_record.h"
#include "control/foreign/foreign_mapping.h"

static const char closed[] = "a quoted field is not closed";
static const char stray[] = "a quote inside a field that does not begin with one";
static const char line_break[] =
    "a line break outside of quotes: expected the same line ends in the whole file";
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
        {"\"\r\",\"\r\n\"", NULL, false, false},
        {"a\r1", line_break, false, false},
        {"a,b\r", line_break, false, false},
        {"\n1,2", line_break, false, false},
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

static void a_header_decides_which_separator_a_file_has(void **state UNUSED)
{
    static const struct {
        const char *line;
        char named, separator; /* 0: refused */
        const char *words;     /* of the refusal */
    } cases[] = {
        {"sku,name", 0, ',', NULL},
        {"sku;name", 0, ';', NULL},
        {"sku\tname", 0, '\t', NULL},
        {"sku", 0, ',', NULL},
        {"full name", 0, ',', NULL},
        {"", 0, ',', NULL},
        {"price;in EUR,name", 0, ',', NULL},
        {"\"name, first\";id", 0, ';', NULL},
        {"\"a;b\"", 0, ',', NULL},
        {"\"a\"\";b\"\tc", 0, '\t', NULL},
        {"sku|name", 0, 0, "vertical bars"},
        {"a;b\tc", 0, 0, "semicolons and tabs"},
        {"a;b|c", 0, 0, "semicolons and vertical bars"},
        {"sku|name", '|', '|', NULL},
        {"a;b|c,d", '|', '|', NULL},
        {"a b", ' ', ' ', NULL},
        {"sku", ';', ';', NULL},
        {"sku:name", ';', ';', NULL},
        {"sku;name", ',', 0, "semicolons"},
        {"sku,name", ';', 0, "commas"},
        {"\"a|b\";c", '|', 0, "semicolons"},
        {"sku\tname", ' ', 0, "tabs"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *problem = NULL;
        char separator = csv_record_separator(arena, bytes_of(cases[i].line), cases[i].named, &problem);
        if (separator != cases[i].separator)
            fail_msg("%s: separator \"%c\"", cases[i].line, separator ? separator : '0');
        assert_int_equal(!separator, problem != NULL);
        if (problem && !strstr(problem, cases[i].words))
            fail_msg("%s: %s", cases[i].line, problem);
    }
}

static struct bytes number_id(char text[24], int number)
{
    snprintf(text, 24, "id%d", number);
    return bytes_of(text);
}

/* 1,000 ids, each as often as its last digit says, mixed; then once more in another order. */
static void an_id_is_its_last_when_all_others_have_passed(void **state UNUSED)
{
    enum { IDS = 1000 };
    struct foreign_ids ids = {0};
    char text[24];
    int64_t again = 0;
    int left[IDS], lasts = 0;
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < IDS; i++)
            if (i % 10 > round) {
                foreign_ids_add(&ids, number_id(text, i));
                again += round > 0;
            }
    assert_int_equal(foreign_ids_settle(&ids), again);
    for (int i = 0; i < IDS; i++)
        left[i] = i % 10;
    for (int round = 0; round < 10; round++)
        for (int i = IDS - 1; i >= 0; i--)
            if (i % 10 > round) {
                bool is_last = foreign_ids_is_last(&ids, number_id(text, i));
                assert_int_equal(is_last, --left[i] == 0);
                lasts += is_last;
            }
    assert_int_equal(lasts, IDS - IDS / 10);
    foreign_ids_free(&ids);
}

static void no_ids_are_no_trouble(void **state UNUSED)
{
    struct foreign_ids ids = {0};
    assert_int_equal(foreign_ids_settle(&ids), 0);
    assert_true(foreign_ids_is_last(&ids, BYTES("a")));
    foreign_ids_free(&ids);
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
        ARENA_TEST(a_header_decides_which_separator_a_file_has),
        cmocka_unit_test(an_id_is_its_last_when_all_others_have_passed),
        cmocka_unit_test(no_ids_are_no_trouble),
        ARENA_TEST(doubled_quotes_cost_what_their_field_costs),
        ARENA_TEST(a_record_of_separators_is_refused_before_it_is_large),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
