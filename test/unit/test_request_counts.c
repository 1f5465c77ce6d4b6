/* request_counts: requests by namespace, operation and class of their fault; a table that is full shares its
 * last entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "segment/counts/request_counts.h"

static struct request_counts_board board;
static struct segment segment = {.request_counts = &board};

static int empty(void **state UNUSED)
{
    memset(&board, 0, sizeof board);
    return 0;
}

/* What is counted of both words; all zeros: nothing. */
static struct request_counts find(const char *ns, const char *what)
{
    struct request_counts found;
    for (size_t place = 0; place <= REQUEST_COUNTS_NAMES; place++)
        if (request_counts_read(&segment, place, &found) && strcmp(found.ns, ns) == 0 &&
            strcmp(found.what, what) == 0)
            return found;
    return (struct request_counts){.counts = {0}};
}

static uint64_t count_of(const struct request_counts *counts, char class)
{
    return counts->counts[1 + (strchr(REQUEST_COUNTS_CLASSES, class) - REQUEST_COUNTS_CLASSES)];
}

static void by_namespace_operation_and_class(void **state UNUSED)
{
    request_counts_add(&segment, BYTES("lab"), BYTES("get"), NULL);
    request_counts_add(&segment, BYTES("lab"), BYTES("get"), NULL);
    request_counts_add(&segment, BYTES("lab"), BYTES("get"), "NDOCUMENT");
    request_counts_add(&segment, BYTES("lab"), BYTES("put"), "XAWAY");
    request_counts_add(&segment, BYTES("lab"), BYTES("put"), "?");
    request_counts_add(&segment, BYTES("den"), BYTES("get"), "SKEY");
    request_counts_add(&segment, BYTES(""), BYTES("refused"), "AJSON");
    struct request_counts get = find("lab", "get"), put = find("lab", "put"), den = find("den", "get"),
                          refused = find("", "refused");
    assert_int_equal(get.counts[0], 2);
    assert_int_equal(count_of(&get, 'N'), 1);
    assert_int_equal(count_of(&put, 'X'), 2);
    assert_int_equal(put.counts[0], 0);
    assert_int_equal(count_of(&den, 'S'), 1);
    assert_int_equal(count_of(&refused, 'A'), 1);
}

static void a_full_table_and_long_names_share_the_last_entry(void **state UNUSED)
{
    enum { MANY = 2 * REQUEST_COUNTS_NAMES };
    char what[24];
    uint64_t sum = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(what, sizeof what, "operation%d", i);
        request_counts_add(&segment, BYTES("lab"), bytes_of(what), NULL);
    }
    request_counts_add(&segment, BYTES("lab"), BYTES("an operation whose name is longer than there is room"),
                       NULL);
    struct request_counts found, others;
    size_t names = 0;
    for (size_t place = 0; place < REQUEST_COUNTS_NAMES; place++)
        if (request_counts_read(&segment, place, &found)) {
            names++;
            sum += found.counts[0];
        }
    assert_in_range(names, REQUEST_COUNTS_NAMES / 2, REQUEST_COUNTS_NAMES);
    assert_true(request_counts_read(&segment, REQUEST_COUNTS_NAMES, &others));
    assert_string_equal(others.ns, "");
    assert_string_equal(others.what, "");
    assert_int_equal(sum + others.counts[0], MANY + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(by_namespace_operation_and_class, empty),
        cmocka_unit_test_setup(a_full_table_and_long_names_share_the_last_entry, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
