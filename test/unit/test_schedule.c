/* schedule: the settings about tasks as lists of words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/schedule.h"

static void retries_are_minutes(void **state UNUSED)
{
    assert_true(schedule_is_retries(BYTES("")));
    assert_true(schedule_is_retries(BYTES("1 10 60 180")));
    assert_true(schedule_is_retries(BYTES(" 0\t525600 ")));
    assert_false(schedule_is_retries(BYTES("525601")));
    assert_false(schedule_is_retries(BYTES("-1")));
    assert_true(schedule_is_retries(BYTES("1,10")));
    assert_false(schedule_is_retries(BYTES("1 x")));
    assert_true(
        schedule_is_retries(BYTES("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1")));
    assert_false(
        schedule_is_retries(BYTES("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1")));
}

static void each_failure_has_its_delay_and_after_the_last_there_is_none(void **state UNUSED)
{
    static const int64_t minutes[] = {1, 10, 60, 180};
    int64_t after_ms;
    for (size_t i = 0; i < COUNT_OF(minutes); i++) {
        assert_true(schedule_retry_ms(BYTES(" 1 10  60\t180 "), (int64_t)i + 1, 0, &after_ms));
        assert_int_equal(after_ms, minutes[i] * 60000);
    }
    assert_false(schedule_retry_ms(BYTES("1 10 60 180"), 5, 0, &after_ms));
    assert_false(schedule_retry_ms(BYTES("1 10 60 180"), INT64_MAX, 0, &after_ms));
    assert_false(schedule_retry_ms(BYTES(""), 1, 0, &after_ms));
}

static void one_delay_is_read(void **state UNUSED)
{
    static const struct {
        const char *delay;
        int64_t ms;
    } good[] = {{"0", 0}, {"0s", 0}, {"90s", 90000}, {"10", 600000}, {"2h", 7200000}, {"365d", 31536000000}};
    static const char *const wrong[] = {"", "s", "-1s", "366d", "1 2", "1s..2sx2", "1y"};
    int64_t delay_ms;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(schedule_delay_ms(bytes_of(good[i].delay), &delay_ms));
        assert_int_equal(delay_ms, good[i].ms);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(schedule_delay_ms(bytes_of(wrong[i]), &delay_ms));
}

static void delays_have_units_grow_and_are_spread(void **state UNUSED)
{
    static const char *const good[] = {"30s 5m,2h 365d", "10s..1hx20 ~20", "0..1x32", "~0",
                                       "1s..1sx1",       "~100 1"};
    static const char *const wrong[] = {"366d",    "s",      "1..2",  "1..2x",   "1..2x0",
                                        "1..2x33", "2..1x3", "..2x3", "1x2..3",  "~101",
                                        "~",       "~-1",    "1y",    "1..2x3x", "0..1x20 0..1x13"};
    const struct bytes policy = BYTES("5s,~50,10s..1mx5,2h");
    static const int64_t seconds[] = {5, 10, 20, 40, 60, 60, 7200};
    int64_t after_ms;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(schedule_is_retries(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(schedule_is_retries(bytes_of(wrong[i])));
    for (size_t i = 0; i < COUNT_OF(seconds); i++) {
        assert_true(schedule_retry_ms(policy, (int64_t)i + 1, 0, &after_ms));
        assert_int_equal(after_ms, seconds[i] * 1000);
        assert_true(schedule_retry_ms(policy, (int64_t)i + 1, 1000, &after_ms));
        assert_int_equal(after_ms, seconds[i] * 1500);
    }
    assert_false(schedule_retry_ms(policy, 8, 0, &after_ms));
}

static void operations_have_their_own_delays(void **state UNUSED)
{
    const char *const list = "Mail=10s..1hx20,~20 Report=";
    struct bytes retries;
    assert_true(schedule_is_retries_of("") && schedule_is_retries_of(list));
    assert_false(schedule_is_retries_of("Mail") || schedule_is_retries_of("=1") ||
                 schedule_is_retries_of("Mail=1 x=y"));
    assert_true(schedule_retries_of(list, BYTES("Mail"), &retries) &&
                bytes_equal(retries, BYTES("10s..1hx20,~20")));
    assert_true(schedule_retries_of(list, BYTES("Report"), &retries) && !retries.size);
    assert_false(schedule_retries_of(list, BYTES("Ma"), &retries));
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
        cmocka_unit_test(one_delay_is_read),
        cmocka_unit_test(delays_have_units_grow_and_are_spread),
        cmocka_unit_test(operations_have_their_own_delays),
        cmocka_unit_test(queues_are_names_with_numbers),
        cmocka_unit_test(an_operation_that_is_not_listed_stays_where_it_says),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
