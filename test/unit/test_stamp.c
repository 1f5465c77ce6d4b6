/* stamp: every day of the century, arithmetic over all borders, clamping, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "model/document/stamp.h"

#define DAY_MS        INT64_C(86400000)
#define EPOCH_2000_MS INT64_C(946684800000)
#define EPOCH_2100_MS INT64_C(4102444800000)
#define FAR           INT64_C(1000000000)

/* The stamp as the C library sees that moment. */
static int64_t by_library(int64_t epoch_ms)
{
    time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm t;
    assert_non_null(gmtime_r(&seconds, &t));
    int64_t date = ((t.tm_year - 100) * INT64_C(100) + t.tm_mon + 1) * 100 + t.tm_mday;
    return ((date * 100 + t.tm_hour) * 100 + t.tm_min) * 100000 + t.tm_sec * 1000 + epoch_ms % 1000;
}

static void every_day_goes_there_and_back(void **state UNUSED)
{
    static const int64_t moments[] = {0, 1, 999, 1000, 59999, 60000, 3599999, 3600000, 45296789, DAY_MS - 1};
    int64_t before = 0;
    for (int64_t day = EPOCH_2000_MS; day < EPOCH_2100_MS; day += DAY_MS)
        for (size_t i = 0; i < COUNT_OF(moments); i++) {
            int64_t stamp = stamp_from_epoch_ms(day + moments[i]);
            assert_int_equal(stamp, by_library(day + moments[i]));
            assert_int_equal(stamp_to_epoch_ms(stamp), day + moments[i]);
            assert_true(stamp_is_valid(stamp));
            assert_true(stamp > before);
            before = stamp;
        }
    assert_int_equal(stamp_from_epoch_ms(EPOCH_2000_MS), STAMP_MIN);
    assert_int_equal(before, STAMP_MAX);
}

static void time_outside_the_century_is_clamped(void **state UNUSED)
{
    assert_int_equal(stamp_from_epoch_ms(EPOCH_2000_MS - 1), STAMP_MIN);
    assert_int_equal(stamp_from_epoch_ms(0), STAMP_MIN);
    assert_int_equal(stamp_from_epoch_ms(INT64_MIN), STAMP_MIN);
    assert_int_equal(stamp_from_epoch_ms(EPOCH_2100_MS - 1), STAMP_MAX);
    assert_int_equal(stamp_from_epoch_ms(EPOCH_2100_MS), STAMP_MAX);
    assert_int_equal(stamp_from_epoch_ms(INT64_MAX), STAMP_MAX);
    assert_int_equal(stamp_to_epoch_ms(0), EPOCH_2000_MS);
    assert_int_equal(stamp_to_epoch_ms(INT64_MIN), EPOCH_2000_MS);
    assert_int_equal(stamp_to_epoch_ms(STAMP_MAX + 1), EPOCH_2100_MS - 1);
    assert_int_equal(stamp_to_epoch_ms(INT64_MAX), EPOCH_2100_MS - 1);
}

static void fields_out_of_range_are_clamped(void **state UNUSED)
{
    static const struct {
        int64_t stamp, clamped;
    } cases[] = {
        {INT64_C(240231120000000), INT64_C(240229120000000)}, /* 31 February of a leap year */
        {INT64_C(230231120000000), INT64_C(230228120000000)},
        {INT64_C(230229120000000), INT64_C(230228120000000)},
        {INT64_C(230431235959999), INT64_C(230430235959999)},
        {INT64_C(231301000000000), INT64_C(231201000000000)},
        {INT64_C(230001000000000), INT64_C(230101000000000)}, /* month 0 */
        {INT64_C(230500101112131), INT64_C(230501101112131)}, /* day 0 */
        {INT64_C(230515240000000), INT64_C(230515230000000)},
        {INT64_C(230515106000000), INT64_C(230515105900000)},
        {INT64_C(230515101060000), INT64_C(230515101059000)},
        {INT64_C(239999999999999), INT64_C(231231235959999)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(stamp_is_valid(cases[i].stamp));
        assert_true(stamp_is_valid(cases[i].clamped));
        assert_int_equal(stamp_to_epoch_ms(cases[i].stamp), stamp_to_epoch_ms(cases[i].clamped));
    }
}

static void validity_is_that_of_the_calendar(void **state UNUSED)
{
    assert_true(stamp_is_valid(STAMP_MIN));
    assert_true(stamp_is_valid(STAMP_MAX));
    assert_true(stamp_is_valid(INT64_C(160714223045697)));
    assert_false(stamp_is_valid(STAMP_MIN - 1));
    assert_false(stamp_is_valid(STAMP_MAX + 1));
    assert_false(stamp_is_valid(0));
    assert_false(stamp_is_valid(-1));
    for (int year = 0; year < 100; year++) {
        int64_t leap_day = year * INT64_C(10000000000000) + INT64_C(229) * FAR;
        assert_int_equal(stamp_is_valid(leap_day), year % 4 == 0);
    }
}

static void arithmetic_crosses_all_borders(void **state UNUSED)
{
    static const struct {
        int64_t from, ms, to;
    } cases[] = {
        {INT64_C(230131235959999), 1, INT64_C(230201000000000)},
        {INT64_C(230228235959999), 1, INT64_C(230301000000000)},
        {INT64_C(240228235959999), 1, INT64_C(240229000000000)},
        {INT64_C(240229235959999), 1, INT64_C(240301000000000)},
        {INT64_C(231231235959999), 1, INT64_C(240101000000000)},
        {INT64_C(240229120000000), 366 * DAY_MS, INT64_C(250301120000000)},
        {INT64_C(240101000000000), 366 * DAY_MS, INT64_C(250101000000000)},
        {INT64_C(230101000000000), 365 * DAY_MS, INT64_C(240101000000000)},
        {INT64_C(1231235959999), 1, INT64_C(10101000000000)}, /* end of 2000, itself a leap year */
        {INT64_C(160714223045697), 0, INT64_C(160714223045697)},
        {STAMP_MIN, EPOCH_2100_MS - EPOCH_2000_MS - 1, STAMP_MAX},
        {STAMP_MIN, EPOCH_2100_MS - EPOCH_2000_MS, STAMP_MAX},
        {STAMP_MAX, 1, STAMP_MAX},
        {STAMP_MAX, INT64_MAX, STAMP_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(stamp_add_ms(cases[i].from, cases[i].ms), cases[i].to);
        if (cases[i].to != STAMP_MAX)
            assert_int_equal(stamp_add_ms(cases[i].to, -cases[i].ms), cases[i].from);
    }
    assert_int_equal(stamp_add_ms(STAMP_MIN, -1), STAMP_MIN);
    assert_int_equal(stamp_add_ms(STAMP_MAX, INT64_MIN), STAMP_MIN);
}

static void next_is_the_smallest_valid_above(void **state UNUSED)
{
    static const struct {
        int64_t from, to;
    } cases[] = {
        {INT64_MIN, STAMP_MIN},
        {0, STAMP_MIN},
        {STAMP_MIN - 1, STAMP_MIN},
        {STAMP_MIN, STAMP_MIN + 1},
        {STAMP_MAX - 1, STAMP_MAX},
        {STAMP_MAX, STAMP_MAX},
        {INT64_MAX, STAMP_MAX},
        {INT64_C(231231235959999), INT64_C(240101000000000)},
        {INT64_C(230228235959999), INT64_C(230301000000000)},
        {INT64_C(230230120000000), INT64_C(230301000000000)}, /* invalid: behind all of February */
        {INT64_C(230000000000000), INT64_C(230101000000000)},
        {INT64_C(230031235959999), INT64_C(230101000000000)},
        {INT64_C(230500121212123), INT64_C(230501000000000)},
        {INT64_C(231300000000000), INT64_C(240101000000000)},
        {INT64_C(230515246161999), INT64_C(230516000000000)},
        {INT64_C(230515106161999), INT64_C(230515110000000)},
        {INT64_C(230515101061999), INT64_C(230515101100000)},
        {INT64_C(991332000000000), STAMP_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(stamp_next(cases[i].from), cases[i].to);
}

/* Around every second, walked one by one, valid or not, there is no valid stamp between it and its next. */
static void next_leaves_nothing_out(void **state UNUSED)
{
    static const int64_t starts[] = {INT64_C(240228235959900), INT64_C(230228235959900),
                                     INT64_C(991130235959900)};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        for (int64_t stamp = starts[i]; stamp < starts[i] + 70000; stamp++) {
            int64_t next = stamp_next(stamp);
            assert_true(next > stamp && stamp_is_valid(next));
            if (stamp_is_valid(stamp + 1))
                assert_int_equal(next, stamp + 1);
            else
                assert_int_equal(next, stamp_next(stamp + 1));
        }
}

static void text_is_fifteen_digits(void **state UNUSED)
{
    char text[STAMP_DIGITS + 1];
    int64_t stamp = 7;
    stamp_to_text(STAMP_MIN, text);
    assert_string_equal(text, "000101000000000");
    assert_true(stamp_from_text(bytes_of(text), &stamp));
    assert_int_equal(stamp, STAMP_MIN);
    stamp_to_text(STAMP_MAX, text);
    assert_string_equal(text, "991231235959999");
    stamp_to_text(INT64_C(10203040506007), text);
    assert_string_equal(text, "010203040506007");
    assert_true(stamp_from_text(bytes_of(text), &stamp));
    assert_int_equal(stamp, INT64_C(10203040506007));
    stamp_to_text(0, text);
    assert_string_equal(text, "000000000000000");

    static const char *const wrong[] = {"",
                                        "16071422304569",
                                        "1607142230456970",
                                        "0160714223045697",
                                        "16071422304569x",
                                        " 60714223045697",
                                        "-60714223045697",
                                        "+60714223045697",
                                        "000000000000000",
                                        "230229120000000",
                                        "231301000000000",
                                        "230515240000000",
                                        "160714223045.97",
                                        "999999999999999"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        stamp = 7;
        assert_false(stamp_from_text(bytes_of(wrong[i]), &stamp));
        assert_int_equal(stamp, 7);
    }
    assert_false(stamp_from_text(NO_BYTES, &stamp));
}

static void the_present_is_utc_in_every_zone(void **state UNUSED)
{
    static const char *const zones[] = {"UTC", "Asia/Kolkata", "America/St_Johns", "XXX-14"};
    for (size_t i = 0; i < COUNT_OF(zones); i++) {
        setenv("TZ", zones[i], 1);
        tzset();
        int64_t before = clock_wall_ms();
        int64_t now = stamp_to_epoch_ms(stamp_now());
        assert_true(now >= before - DAY_MS / 48 && now <= clock_wall_ms() + DAY_MS / 48); /* half an hour */
        assert_int_equal(stamp_from_epoch_ms(INT64_C(1468535445697)), INT64_C(160714223045697));
    }
    unsetenv("TZ");
    tzset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_goes_there_and_back),
        cmocka_unit_test(time_outside_the_century_is_clamped),
        cmocka_unit_test(fields_out_of_range_are_clamped),
        cmocka_unit_test(validity_is_that_of_the_calendar),
        cmocka_unit_test(arithmetic_crosses_all_borders),
        cmocka_unit_test(next_is_the_smallest_valid_above),
        cmocka_unit_test(next_leaves_nothing_out),
        cmocka_unit_test(text_is_fifteen_digits),
        cmocka_unit_test(the_present_is_utc_in_every_zone),
    };
    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
