/* costs: the table of the security page, of what a request can cost, names each operation that somebody
 * without the administrator's key may run, with the settings as they are.  With --write it is written into
 * the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/builder.h"
#include "base/bytes.h"
#include "operation/builtin.h"
#include "operation/operation.h"
#include "operation/registry.h"

static const char begins[] = "<!-- Made of test/unit/cost_table.h by make update-costs. -->\n";
static const char ends[] = "<!-- The end of what is made. -->\n";

static const struct cost {
    const char *name, *rows, *time, *stays;
    bool is_way; /* into the server that is no operation */
} costs[] = {
#define COST(name, rows, time, stays) {#name, rows, time, stays, false},
#define WAY(name, rows, time, stays)  {name, rows, time, stays, true},
#include "cost_table.h"
};

static const struct {
    const char *name, *unit;
    long long value;
} numbers[] = {
#define NUMBER(name, standard, least, most, unit, text) {#name, unit, standard},
#define TEXT(name, standard, text)
#define CHOICE(name, standard, words, text)
#include "base/settings_table.h"
};

/* --- the text --- */

static void add_number(struct builder *out, long long value)
{
    if (value >= 1000)
        add_number(out, value / 1000);
    builder_printf(out, value >= 1000 ? ",%03lld" : "%lld", value % 1000);
}

static void add_value(struct builder *out, long long value, const char *unit)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    int step = 0;
    if (!value) /* a part of the workers, or no limit: stampd.conf(5) */
        return;
    if (strcmp(unit, "bytes") == 0)
        for (; step < 3 && value % 1024 == 0; value /= 1024)
            step++;
    builder_add_text(out, " (");
    add_number(out, value);
    if (strcmp(unit, "bytes") == 0)
        builder_printf(out, " %s", units[step]);
    else if (strcmp(unit, "ms") == 0 || strcmp(unit, "s") == 0 || strcmp(unit, "h") == 0 ||
             strcmp(unit, "days") == 0 || strcmp(unit, "minutes") == 0 || strcmp(unit, "MiB") == 0 ||
             strcmp(unit, "%") == 0 || strchr(unit, '/'))
        builder_printf(out, " %s", unit);
    builder_add_text(out, ")");
}

/* Each name of a setting in `text` gets its default. */
static void add_cell(struct builder *out, const char *text)
{
    builder_add_text(out, " | ");
    for (const char *mark; (mark = strchr(text, '`')); text = mark) {
        const char *end = strchr(mark + 1, '`');
        assert_non_null(end);
        builder_add(out, text, (size_t)(end + 1 - text));
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            if (bytes_are((struct bytes){mark + 1, (size_t)(end - mark - 1)}, numbers[i].name))
                add_value(out, numbers[i].value, numbers[i].unit);
        mark = end + 1;
    }
    builder_add_bytes(out, bytes_of(text));
}

static const char *caller_of(const struct operation *operation)
{
    return operation->is_for_workers         ? "workers of a queue"
           : operation->right == RIGHT_READ  ? "readers"
           : operation->right == RIGHT_WRITE ? "writers"
                                             : "anybody";
}

static bool is_open(const struct operation *operation)
{
    return operation->right != RIGHT_ADMIN && !operation->task.is_internal;
}

static void compose(struct builder *out)
{
    builder_add_bytes(out, bytes_of(begins));
    builder_add_text(
        out,
        "\n| request | from | body | rows | time | what stays |\n| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < COUNT_OF(costs); i++) {
        const struct cost *cost = &costs[i];
        const struct operation *operation = cost->is_way ? NULL : registry_find(bytes_of(cost->name));
        builder_printf(out, "| `%s`", cost->name);
        add_cell(out, operation ? caller_of(operation) : "its right");
        add_cell(out, !operation ? "" : operation->is_safe ? "small" : "large");
        add_cell(out, cost->rows);
        add_cell(out, cost->time);
        add_cell(out, cost->stays);
        builder_add_text(out, " |\n");
    }
    builder_add_text(out, "\nFor the administrator alone:");
    for (size_t i = 0; registry_get_builtin(i); i++)
        if (registry_get_builtin(i)->right == RIGHT_ADMIN && !registry_get_builtin(i)->task.is_internal)
            builder_printf(out, " `%s`", registry_get_builtin(i)->name);
    builder_add_text(out, ".\n\n");
    builder_add_bytes(out, bytes_of(ends));
}

/* The whole page, with its table as it should be. */
static void read_page(struct builder *page, struct builder *mended)
{
    FILE *file = fopen(STAMPD_PAGE, "r");
    char piece[4096];
    assert_non_null(file);
    for (size_t size; (size = fread(piece, 1, sizeof piece, file)) > 0;)
        builder_add(page, piece, size);
    fclose(file);
    builder_add(page, "", 1);
    const char *from = strstr(page->data, begins), *to = strstr(page->data, ends);
    assert_true(from && to && from < to);
    builder_add(mended, page->data, (size_t)(from - page->data));
    compose(mended);
    builder_add_bytes(mended, bytes_of(to + sizeof ends - 1));
    builder_add(mended, "", 1);
}

/* --- the tests --- */

static void each_operation_has_a_row(void **state UNUSED)
{
    for (size_t i = 0; registry_get_builtin(i); i++) {
        const struct operation *operation = registry_get_builtin(i);
        int count = 0;
        for (size_t k = 0; k < COUNT_OF(costs); k++)
            count += !costs[k].is_way && strcmp(costs[k].name, operation->name) == 0;
        if (count != is_open(operation))
            fail_msg("%s has %d rows in test/unit/cost_table.h", operation->name, count);
    }
    for (size_t k = 0; k < COUNT_OF(costs); k++)
        if (!costs[k].is_way && !registry_find(bytes_of(costs[k].name)))
            fail_msg("there is no operation %s", costs[k].name);
}

static void the_page_has_the_table(void **state UNUSED)
{
    struct builder page = {0}, mended = {0};
    read_page(&page, &mended);
    if (strcmp(page.data, mended.data) != 0)
        fail_msg("the costs in doc/explanation/security.md are others; mend with: make update-costs");
    builder_free(&page);
    builder_free(&mended);
}

static void write_page(void **state UNUSED)
{
    struct builder page = {0}, mended = {0};
    read_page(&page, &mended);
    FILE *file = fopen(STAMPD_PAGE, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(mended.data, 1, mended.size - 1, file), mended.size - 1);
    assert_int_equal(fclose(file), 0);
    builder_free(&page);
    builder_free(&mended);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_operation_has_a_row),
                                       cmocka_unit_test(the_page_has_the_table)};
    const struct CMUnitTest writes[] = {cmocka_unit_test(write_page)};
    builtin_register();
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return cmocka_run_group_tests_name("costs written", writes, NULL, NULL);
    return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
