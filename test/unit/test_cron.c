/* cron: which texts are one; the examples of the specification; borders; clocks that are changed.  The
 * calendar as a whole is compared with another implementation by test/system/test_cron.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/task/cron.h"
#include "model/document/stamp.h"

static int64_t next(const char *text, int64_t after)
{
    struct cron cron;
    assert_true(cron_parse(bytes_of(text), &cron));
    return stamp_from_epoch_ms(cron_next_ms(&cron, stamp_to_epoch_ms(after)));
}

static void texts_have_an_exact_shape(void **state UNUSED)
{
    static const char *const good[] = {
        "H00",     "H59",     "D0000",     "D2359",     "W10000",    "W72359",
        "M010000", "M312359", "Y01010000", "Y12312359", "Y02280425", "Y04302359",
    };
    static const char *const bad[] = {
        "",         "H",          "H5",        "H060",      "H60",       "H-1",         "H+1",
        "h25",      "X25",        "D425",      "D04250",    "D2400",     "D0460",       "D 425",
        "W3425",    "W00425",     "W80425",    "W304250",   "M000425",   "M320425",     "M10425",
        "M1004250", "Y11100425 ", "Y00100425", "Y13100425", "Y02290425", "Y04310425",   "Y11000425",
        "Y1110042", "Y111004250", "Y11102400", "25H",       "D04:5",     "D04\xc3\xa9",
    };
    struct cron cron;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(cron_parse(bytes_of(good[i]), &cron));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(cron_parse(bytes_of(bad[i]), &cron));
    assert_false(cron_parse(NO_BYTES, &cron));
    assert_false(cron_parse((struct bytes){"H2\0", 3}, &cron));
}

/* Now when it is less, else the period that follows. */
static void the_present_period_counts_while_it_is_less(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t after, next;
    } cases[] = {
        {"H25", INT64_C(260312102459999), INT64_C(260312102500000)},
        {"H25", INT64_C(260312102500000), INT64_C(260312112500000)},
        {"H25", INT64_C(261231232501000), INT64_C(270101002500000)},
        {"D0425", INT64_C(260312042459999), INT64_C(260312042500000)},
        {"D0425", INT64_C(260312042500000), INT64_C(260313042500000)},
        {"D0425", INT64_C(260313031000000), INT64_C(260313042500000)},  /* a day late: 1 h 15 later */
        {"W30425", INT64_C(260311042459000), INT64_C(260311042500000)}, /* 11 March 2026 is a Wednesday */
        {"W30425", INT64_C(260311042500000), INT64_C(260318042500000)},
        {"W30425", INT64_C(260309000000000), INT64_C(260311042500000)},
        {"W30425", INT64_C(260315235959999), INT64_C(260318042500000)}, /* from a Sunday */
        {"W70425", INT64_C(260315042459000), INT64_C(260315042500000)},
        {"W10425", INT64_C(260315042459000), INT64_C(260316042500000)},
        {"M100425", INT64_C(260310042459999), INT64_C(260310042500000)},
        {"M100425", INT64_C(260310042500000), INT64_C(260410042500000)},
        {"M100425", INT64_C(261210042500000), INT64_C(270110042500000)},
        {"Y11100425", INT64_C(261110042459999), INT64_C(261110042500000)},
        {"Y11100425", INT64_C(261110042500000), INT64_C(271110042500000)},
        {"Y01010000", INT64_C(261231235959999), INT64_C(270101000000000)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(next(cases[i].text, cases[i].after), cases[i].next);
}

static void a_day_that_a_month_has_not_is_its_last(void **state UNUSED)
{
    int64_t stamp = INT64_C(271231000000001);
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}; /* 2028 is a leap year */
    for (int month = 1; month <= 12; month++) {
        stamp = next("M310000", stamp);
        assert_int_equal(stamp,
                         INT64_C(280000000000000) + (month * 100 + days[month - 1]) * INT64_C(1000000000));
    }
    assert_int_equal(next("M300000", INT64_C(290201000000000)), INT64_C(290228000000000));
    assert_int_equal(next("M290000", INT64_C(290201000000000)), INT64_C(290228000000000));
    assert_int_equal(next("M290000", INT64_C(280201000000000)), INT64_C(280229000000000));
}

static void changed_clocks_lose_and_repeat_nothing(void **state UNUSED)
{
    static const struct {
        const char *zone, *text;
        int64_t after, next;
    } cases[] = {
        /* 29 March 2026, 2:00 becomes 3:00; 25 October, 3:00 becomes 2:00 */
        {"Europe/Paris", "D0230", INT64_C(260328120000000), INT64_C(260329010000000)},
        {"Europe/Paris", "D0230", INT64_C(260329010000000), INT64_C(260330003000000)},
        {"Europe/Paris", "D0230", INT64_C(261024120000000), INT64_C(261025003000000)},
        {"Europe/Paris", "D0230", INT64_C(261025003000000), INT64_C(261026013000000)},
        {"Europe/Paris", "H30", INT64_C(260329003000000), INT64_C(260329013000000)},
        {"Europe/Paris", "H30", INT64_C(261025003000000), INT64_C(261025013000000)},
        {"Europe/Paris", "Y03290230", INT64_C(260328120000000), INT64_C(260329010000000)},
        /* 4 October 2026, 2:00 becomes 2:30; 5 April, 2:00 becomes 1:30 */
        {"Australia/Lord_Howe", "D0215", INT64_C(261003120000000), INT64_C(261003153000000)},
        {"Australia/Lord_Howe", "H15", INT64_C(261003144500000), INT64_C(261003153000000)},
        {"Australia/Lord_Howe", "H15", INT64_C(261003152959999), INT64_C(261003153000000)},
        {"Australia/Lord_Howe", "H15", INT64_C(261003153000000), INT64_C(261003161500000)},
        {"Australia/Lord_Howe", "D0145", INT64_C(260404120000000), INT64_C(260404144500000)},
        {"Australia/Lord_Howe", "D0145", INT64_C(260404144500000), INT64_C(260405151500000)},
        /* half an hour off all the year */
        {"Asia/Kolkata", "H00", INT64_C(260312100000000), INT64_C(260312103000000)},
        /* 30 December 2011 was left out */
        {"Pacific/Apia", "D1200", INT64_C(111229220000000), INT64_C(111230100000000)},
        {"Pacific/Apia", "D1200", INT64_C(111230100000000), INT64_C(111230220000000)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(cron_set_zone(cases[i].zone));
        assert_int_equal(next(cases[i].text, cases[i].after), cases[i].next);
    }
    assert_true(cron_set_zone(""));
}

static void fields_of_crontab_are_read(void **state UNUSED)
{
    static const char *const good[] = {"* * * * *",         "*/5 0-23/2 1,15 * *", "0 0 29 2 *",
                                       "0 0 31 2 1",        "59 23 31 12 7",       "0 4 * JAN-mar Mon-Fri",
                                       "0,30 8-18 * * 1-5", "0 0 */10 2 *"};
    static const char *const bad[] = {
        "* * * *",    "* * * * * *", " * * * * *",  "*  * * * *",   "60 * * * *",
        "* 24 * * *", "* * 0 * *",   "* * 32 * *",  "* * * 13 *",   "* * * 0 *",
        "* * * * 8",  "5/2 * * * *", "*/0 * * * *", "*/60 * * * *", "5-1 * * * *",
        "1, * * * *", ",1 * * * *",  "a * * * *",   "0 0 31 2 *",   "0 0 30-31 feb *",
        "-1 * * * *", "1- * * * *",  "* * * mai *", "001 * * * *",  "*5 * * * *"};
    struct cron cron;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(cron_parse(bytes_of(good[i]), &cron));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(cron_parse(bytes_of(bad[i]), &cron));
}

static void fields_of_crontab_match_as_in_crontab(void **state UNUSED)
{
    static const struct {
        const char *zone, *text;
        int64_t after, next;
    } cases[] = {
        {"", "*/15 * * * *", INT64_C(260312102459999), INT64_C(260312103000000)},
        {"", "*/15 * * * *", INT64_C(260312103000000), INT64_C(260312104500000)},
        {"", "* * * * *", INT64_C(261231235930000), INT64_C(270101000000000)},
        {"", "25 4 * * 1-5", INT64_C(260313042500000), INT64_C(260316042500000)}, /* Friday, then Monday */
        {"", "25 4 * * 7", INT64_C(260313042500000), INT64_C(260315042500000)},
        {"", "0 0 13 * 5", INT64_C(260312000000000), INT64_C(260313000000000)}, /* either day is enough */
        {"", "0 0 13 * 5", INT64_C(260313000000000), INT64_C(260320000000000)},
        {"", "0 0 1 */3 *", INT64_C(260401000000000), INT64_C(260701000000000)},
        {"", "0 0 29 2 *", INT64_C(260312000000000), INT64_C(280229000000000)},
        {"", "0 0 31 * *", INT64_C(260331000000000),
         INT64_C(260531000000000)}, /* not of a month without it */
        {"", "0 8-18/5 * * *", INT64_C(260312080000000), INT64_C(260312130000000)},
        /* Paris: 29 March 2026 from 2:00 to 3:00, 1:00 UTC; 25 October from 3:00 to 2:00, 1:00 UTC. */
        {"Europe/Paris", "30 2 * * *", INT64_C(260328120000000), INT64_C(260329010000000)},
        {"Europe/Paris", "30 2 * * *", INT64_C(260329010000000), INT64_C(260330003000000)},
        {"Europe/Paris", "30 2 * * *", INT64_C(261024120000000), INT64_C(261025003000000)},
        {"Europe/Paris", "30 2 * * *", INT64_C(261025003000000), INT64_C(261026013000000)},
        {"Europe/Paris", "45 2 * * *", INT64_C(261025011000000), INT64_C(261026014500000)},
        {"Europe/Paris", "30 * * * *", INT64_C(261025003000000), INT64_C(261025013000000)},
        {"Europe/Paris", "*/30 * * * *", INT64_C(260329003000000), INT64_C(260329010000000)},
        {"Europe/Paris", "30 * * * *", INT64_C(260329003000000), INT64_C(260329013000000)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(cron_set_zone(cases[i].zone));
        assert_int_equal(next(cases[i].text, cases[i].after), cases[i].next);
    }
    assert_true(cron_set_zone(""));
}

static void only_zones_of_the_system_are_taken(void **state UNUSED)
{
    static const char *const bad[] = {
        "Europe/Nowhere", "Europe",        "/etc/localtime", "../../etc/passwd",
        "CET-1CEST",      ":Europe/Paris", "Europe/Paris ",  "EST5EDT,M3.2.0,M11.1.0"};
    assert_true(cron_set_zone("America/New_York"));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(cron_set_zone(bad[i]));
    assert_int_equal(next("D0425", INT64_C(260712000000000)), INT64_C(260712082500000)); /* it stays */
    assert_true(cron_set_zone("UTC"));
    assert_int_equal(next("D0425", INT64_C(260712000000000)), INT64_C(260712042500000));
    assert_true(cron_set_zone(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_an_exact_shape),
        cmocka_unit_test(the_present_period_counts_while_it_is_less),
        cmocka_unit_test(a_day_that_a_month_has_not_is_its_last),
        cmocka_unit_test(changed_clocks_lose_and_repeat_nothing),
        cmocka_unit_test(fields_of_crontab_are_read),
        cmocka_unit_test(fields_of_crontab_match_as_in_crontab),
        cmocka_unit_test(only_zones_of_the_system_are_taken),
    };
    return cmocka_run_group_tests_name("cron", tests, NULL, NULL);
}
