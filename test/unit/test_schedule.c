/* schedule: the settings about tasks as lists of words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/schedule.h"

static void retries_are_minutes(void **state UNUSED)
{
    assert_true(schedule_is_retries(""));
    assert_true(schedule_is_retries("1 10 60 180"));
    assert_true(schedule_is_retries(" 0\t525600 "));
    assert_false(schedule_is_retries("525601"));
    assert_false(schedule_is_retries("-1"));
    assert_false(schedule_is_retries("1,10"));
    assert_false(schedule_is_retries("1 x"));
    assert_true(schedule_is_retries("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"));
    assert_false(schedule_is_retries("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"));
}

static void each_failure_has_its_delay_and_after_the_last_there_is_none(void **state UNUSED)
{
    static const int64_t minutes[] = {1, 10, 60, 180};
    int64_t after_ms;
    for (size_t i = 0; i < COUNT_OF(minutes); i++) {
        assert_true(schedule_retry_ms(" 1 10  60\t180 ", (int64_t)i + 1, &after_ms));
        assert_int_equal(after_ms, minutes[i] * 60000);
    }
    assert_false(schedule_retry_ms("1 10 60 180", 5, &after_ms));
    assert_false(schedule_retry_ms("1 10 60 180", INT64_MAX, &after_ms));
    assert_false(schedule_retry_ms("", 1, &after_ms));
}

static void queues_are_names_with_numbers(void **state UNUSED)
{
    assert_true(schedule_is_queues(""));
    assert_true(schedule_is_queues("Report=3 Mail=0 a.b-c_d=15"));
    assert_false(schedule_is_queues("Report=16"));
    assert_false(schedule_is_queues("Report=-1"));
    assert_false(schedule_is_queues("Report"));
    assert_false(schedule_is_queues("Report="));
    assert_false(schedule_is_queues("=1"));
    assert_false(schedule_is_queues("Report = 1"));
}

static void an_operation_that_is_not_listed_stays_where_it_says(void **state UNUSED)
{
    assert_int_equal(schedule_queue("Report=3 Mail=1", BYTES("Mail"), 0), 1);
    assert_int_equal(schedule_queue("Report=3 Mail=1", BYTES("Report"), 0), 3);
    assert_int_equal(schedule_queue("Report=3 Mail=1", BYTES("Rep"), 7), 7);
    assert_int_equal(schedule_queue("", BYTES("Report"), 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_are_minutes),
        cmocka_unit_test(each_failure_has_its_delay_and_after_the_last_there_is_none),
        cmocka_unit_test(queues_are_names_with_numbers),
        cmocka_unit_test(an_operation_that_is_not_listed_stays_where_it_says),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
