/* test_records_stamps: changes of what is there, and of what has a stamp; what is in the way is shown. */
#include "records_room_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static uint64_t stamp_of(const char *key)
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key)), RECORDS_OK);
    return found.stamp;
}

static enum records_outcome set_if(const char *key, const char *text, uint64_t stamp)
{
    return RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING, .content = bytes_of(text),
               .may_overwrite = true, .stamp = stamp, .shows_present = true);
}

/* --- stamps --- */

static void each_content_has_its_own_stamp(void **state UNUSED)
{
    uint64_t stamps[8];
    char number[8];
    records_write_integer(number, 1);
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("n"),
                                      .type = RECORDS_INTEGER,
                                      .content = {number, 8},
                                      .may_overwrite = true,
                                      .timestamp_us = 1000};
    for (int i = 0; i < 8; i++) { /* the same content, the same timestamp; then sums */
        command.deed = i < 4 ? RECORDS_SET : RECORDS_ADD;
        assert_int_equal(run(&command), RECORDS_OK);
        stamps[i] = found.stamp;
        assert_int_equal(stamp_of("n"), stamps[i]);
        for (int k = 0; k < i; k++)
            assert_true(stamps[k] != stamps[i] && stamps[i]);
    }
    assert_int_equal(lock("n", "me", 60000), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_LINK, .key = BYTES("n"), .to = BYTES("m"), .owner = BYTES("me")),
                     RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("n"), .to = BYTES("o"), .owner = BYTES("me")),
                     RECORDS_OK);
    assert_int_equal(stamp_of("m"), stamps[7]); /* of the content, whatever its keys */
    assert_int_equal(stamp_of("o"), stamps[7]);
}

static void only_the_stamp_that_is_there_is_changed(void **state UNUSED)
{
    assert_int_equal(set_if("a", "one", 5), RECORDS_NOT_FOUND);
    assert_int_equal(set("a", "one"), RECORDS_OK);
    uint64_t stamp = stamp_of("a");
    assert_int_equal(set_if("a", "two", stamp), RECORDS_OK);
    uint64_t second = found.stamp;
    assert_int_equal(set_if("a", "three", stamp), RECORDS_OTHER_STAMP);
    assert_true(bytes_equal(found.content, BYTES("two")));
    assert_int_equal(found.stamp, second);
    expect("a", "two");
    const enum records_deed deeds[] = {RECORDS_DELETE, RECORDS_TRUNCATE, RECORDS_RENAME, RECORDS_LINK,
                                       RECORDS_UNLINK};
    for (size_t i = 0; i < COUNT_OF(deeds); i++)
        assert_int_equal(
            RUN(.deed = deeds[i], .key = BYTES("a"), .to = BYTES("b"), .size = 1, .stamp = stamp),
            RECORDS_OTHER_STAMP);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .stamp = second), RECORDS_OK);
    assert_int_equal(set_if("a", "four", second), RECORDS_NOT_FOUND);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .stamp = second), RECORDS_NOT_FOUND);
    char number[8];
    records_write_integer(number, 1);
    assert_int_equal(RUN(.deed = RECORDS_ADD, .key = BYTES("a"), .type = RECORDS_INTEGER,
                         .content = {number, 8}, .may_overwrite = true, .stamp = second),
                     RECORDS_NOT_FOUND);
    /* a rename compares the record that it moves, not what it overwrites */
    assert_int_equal(set("from", "x"), RECORDS_OK);
    assert_int_equal(set("to", "y"), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("from"), .to = BYTES("to"),
                         .stamp = stamp_of("from"), .may_overwrite = true),
                     RECORDS_OK);
    expect("to", "x");
}

static void what_is_absent_stays_absent(void **state UNUSED)
{
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("a"),
                                      .type = RECORDS_STRING,
                                      .content = BYTES("new"),
                                      .may_overwrite = true,
                                      .is_only_present = true};
    assert_int_equal(run(&command), RECORDS_NOT_FOUND);
    assert_int_equal(set("a", "old"), RECORDS_OK);
    assert_int_equal(run(&command), RECORDS_OK);
    expect("a", "new");
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a")), RECORDS_OK);
    assert_int_equal(run(&command), RECORDS_NOT_FOUND);
}

static void a_stamp_outlives_a_restart(void **state UNUSED)
{
    keep_text("a", "one");
    uint64_t stamp = stamp_of("a");
    restart();
    assert_int_equal(stamp_of("a"), stamp);
    assert_int_equal(set_if("a", "two", stamp), RECORDS_OK);
    assert_true(stamp_of("a") != stamp);
}

/* --- what is in the way --- */

static void what_is_in_the_way_is_shown(void **state UNUSED)
{
    const struct bytes more[] = {BYTES("x"), BYTES("b")};
    assert_int_equal(set("a", "one"), RECORDS_OK);
    assert_int_equal(set("b", "two"), RECORDS_OK);
    struct records_command command = {
        .deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID, .content = BYTES("")};
    assert_int_equal(run(&command), RECORDS_NOT_FREE);
    assert_true(bytes_equal(found.key, BYTES("a")) && !found.content.data && found.size == 3);
    command.shows_present = true;
    assert_int_equal(run(&command), RECORDS_NOT_FREE);
    assert_true(bytes_equal(found.key, BYTES("a")) && bytes_equal(found.content, BYTES("one")));
    assert_int_equal(found.stamp, stamp_of("a"));
    command.key = BYTES("c");
    command.more = more;
    command.more_count = 2;
    assert_int_equal(run(&command), RECORDS_NOT_FREE);
    assert_true(bytes_equal(found.key, BYTES("b")) && bytes_equal(found.content, BYTES("two")));
    const enum records_deed deeds[] = {RECORDS_RENAME, RECORDS_LINK};
    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        assert_int_equal(RUN(.deed = deeds[i], .key = BYTES("a"), .to = BYTES("b"), .shows_present = true),
                         RECORDS_NOT_FREE);
        assert_true(bytes_equal(found.key, BYTES("b")) && bytes_equal(found.content, BYTES("two")));
    }
}

/* Its content is on disk alone. */
static void what_is_away_is_shown_too(void **state UNUSED)
{
    keep_version("away", 1, 20000);
    push_out("away");
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("away"),
                                      .type = RECORDS_VOID,
                                      .content = BYTES(""),
                                      .shows_present = true};
    assert_int_equal(run(&command), RECORDS_NOT_FREE);
    assert_true(is_content(found.content, "away", 1, 20000));
    command.may_overwrite = true;
    command.stamp = 1;
    assert_int_equal(run(&command), RECORDS_OTHER_STAMP);
    assert_true(is_content(found.content, "away", 1, 20000));
}

/* --- ends --- */

static void a_probe_moves_the_end_that_it_names(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 60000;
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_STRING,
                         .content = BYTES("x"), .expires_ms = end_ms, .touch_s = 600),
                     RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .is_probe = true), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms);
    assert_int_equal(
        RUN(.deed = RECORDS_GET, .key = BYTES("a"), .is_probe = true, .expires_ms = end_ms + 1000),
        RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms + 1000);
    assert_false(found.content.data);
}

/* --- races --- */

enum { RACERS = 8, RACES = 200 };

/* Each of the processes adds one to the number by reading and comparing; none is lost. */
static void race(void)
{
    for (int won = 0; won < RACES;) {
        char number[8];
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("n")), RECORDS_OK);
        records_write_integer(number, records_read_integer(found.content) + 1);
        enum records_outcome outcome =
            RUN(.deed = RECORDS_SET, .key = BYTES("n"), .type = RECORDS_INTEGER, .content = {number, 8},
                .may_overwrite = true, .stamp = found.stamp);
        assert_true(outcome == RECORDS_OK || outcome == RECORDS_OTHER_STAMP);
        won += outcome == RECORDS_OK;
    }
}

static void of_several_one_wins(void **state UNUSED)
{
    char number[8];
    int status;
    records_write_integer(number, 0);
    assert_int_equal(
        RUN(.deed = RECORDS_SET, .key = BYTES("n"), .type = RECORDS_INTEGER, .content = {number, 8}),
        RECORDS_OK);
    uint64_t stamp = stamp_of("n");
    for (int i = 0; i < RACERS; i++)
        if (fork() == 0) {
            race();
            _exit(0);
        }
    for (int i = 0; i < RACERS; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_true(stamp_of("n") != stamp);
    assert_int_equal(records_read_integer(found.content), RACERS * RACES);
}

/* All start from one stamp. */
static void of_one_stamp_one_wins(void **state UNUSED)
{
    for (int round = 0; round < 20; round++) {
        assert_int_equal(set("a", "start"), RECORDS_OK);
        uint64_t stamp = stamp_of("a");
        int winners = 0, status;
        for (int i = 0; i < RACERS; i++)
            if (fork() == 0)
                _exit(set_if("a", "mine", stamp) == RECORDS_OK);
        for (int i = 0; i < RACERS; i++) {
            assert_true(wait(&status) > 0 && WIFEXITED(status));
            winners += WEXITSTATUS(status);
        }
        assert_int_equal(winners, 1);
    }
}

/* --- ends --- */

static int64_t end_of(const char *key)
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key), .is_probe = true), RECORDS_OK);
    return found.expires_ms;
}

static enum records_outcome expire_at(const char *key, int64_t end_ms, unsigned end_if)
{
    return RUN(.deed = RECORDS_EXPIRE, .key = bytes_of(key), .expires_ms = end_ms, .end_if = end_if);
}

static void an_end_moves_both_ways(void **state UNUSED)
{
    const int64_t soon_ms = clock_present_ms() + 3600000, late_ms = soon_ms + 1000;
    assert_int_equal(expire_at("a", soon_ms, 0), RECORDS_NOT_FOUND);
    assert_int_equal(set("a", "text"), RECORDS_OK);
    uint64_t stamp = stamp_of("a");
    assert_int_equal(expire_at("a", soon_ms, RECORDS_END_PRESENT), RECORDS_NOT_FOUND);
    assert_int_equal(expire_at("a", soon_ms, RECORDS_END_EARLIER),
                     RECORDS_NOT_FOUND); /* no end is the latest */
    assert_int_equal(expire_at("a", late_ms, RECORDS_END_LATER), RECORDS_OK);
    assert_int_equal(expire_at("a", soon_ms, RECORDS_END_ABSENT), RECORDS_NOT_FOUND);
    assert_int_equal(expire_at("a", late_ms, RECORDS_END_LATER), RECORDS_NOT_FOUND);
    assert_int_equal(end_of("a"), late_ms);
    assert_int_equal(expire_at("a", soon_ms, 0), RECORDS_OK);
    assert_int_equal(expire_at("a", late_ms, RECORDS_END_LATER | RECORDS_END_PRESENT), RECORDS_NOT_FOUND);
    assert_int_equal(end_of("a"), soon_ms);
    assert_int_equal(expire_at("a", late_ms, RECORDS_END_EARLIER), RECORDS_OK);
    assert_int_equal(end_of("a"), late_ms);
    assert_int_equal(expire_at("a", 0, RECORDS_END_PRESENT), RECORDS_OK);
    assert_int_equal(end_of("a"), 0);
    assert_int_equal(expire_at("a", 0, RECORDS_END_PRESENT), RECORDS_NOT_FOUND);
    assert_int_equal(stamp_of("a"), stamp);
    assert_int_equal(lock("a", "me", 60000), RECORDS_OK);
    assert_int_equal(expire_at("a", 1, 0), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("a"), .owner = BYTES("me")), RECORDS_OK);
    assert_int_equal(expire_at("a", 1, 0), RECORDS_OK);
    expect("a", NULL);
}

static void a_set_keeps_an_end(void **state UNUSED)
{
    const int64_t end_ms = clock_present_ms() + 3600000;
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("a"),
                                      .type = RECORDS_STRING,
                                      .content = BYTES("text"),
                                      .expires_ms = end_ms,
                                      .touch_s = 60,
                                      .keeps_end = true,
                                      .may_overwrite = true};
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(end_of("a"), end_ms); /* there was none to keep */
    command.expires_ms = command.touch_s = 0;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(end_of("a"), end_ms);
    assert_int_equal(found.touch_s, 60);
    command.ends_by_ms = end_ms - 1000;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(end_of("a"), end_ms - 1000);
    command.keeps_end = false;
    command.ends_by_ms = 0;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(end_of("a"), 0);
    assert_int_equal(found.touch_s, 0);
}

static void a_set_keeps_a_record_on_disk(void **state UNUSED)
{
    for (int keeps = 1; keeps >= 0; keeps--) {
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_STRING,
                              .content = BYTES("one"), .may_overwrite = true, .is_persisted = true),
                         RECORDS_OK);
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_STRING,
                              .content = BYTES("two"), .may_overwrite = true, .keeps_disk = keeps),
                         RECORDS_OK);
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("b"), .type = RECORDS_STRING,
                              .content = BYTES("new"), .may_overwrite = true, .keeps_disk = keeps),
                         RECORDS_OK);
        restart();
        expect("a", keeps ? "two" : NULL);
        expect("b", NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_content_has_its_own_stamp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_the_stamp_that_is_there_is_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_absent_stays_absent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stamp_outlives_a_restart, set_up_disk, tear_down),
        cmocka_unit_test_setup_teardown(what_is_in_the_way_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_away_is_shown_too, set_up_disk, tear_down),
        cmocka_unit_test_setup_teardown(a_probe_moves_the_end_that_it_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_moves_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_set_keeps_an_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_set_keeps_a_record_on_disk, set_up_disk, tear_down),
        cmocka_unit_test_setup_teardown(of_several_one_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_one_stamp_one_wins, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
