/* test_records_disk: records that are kept on disk, beside the deaths of those who change them. */
#include "records_disk_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "disk_writer.h"
#include "edge/mapping.h"

static void what_is_persisted_comes_back(void **state UNUSED)
{
    const struct bytes more[] = {BYTES("other")};
    char one[8], flag = 1;
    records_write_integer(one, 1);
    keep_text("kept", "before");
    keep_text("kept", "a text");
    assert_int_equal(set("not", "kept"), RECORDS_OK);
    assert_int_equal(found.saving, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(KEEP(.deed = RECORDS_ADD, .key = BYTES("sum"), .type = RECORDS_INTEGER,
                              .content = {one, 8}, .may_overwrite = true, .is_persisted = true),
                         RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("flag"), .type = RECORDS_BOOLEAN,
                          .content = {&flag, 1}, .is_persisted = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_NOT, .key = BYTES("flag")), RECORDS_OK);
    keep_text("long", "a text that is cut");
    assert_int_equal(KEEP(.deed = RECORDS_TRUNCATE, .key = BYTES("long"), .size = 6), RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("one"), .more = more, .more_count = 1,
                          .type = RECORDS_STRING, .content = BYTES("of two"), .is_persisted = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_LINK, .key = BYTES("other"), .to = BYTES("third")), RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_UNLINK, .key = BYTES("one")), RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_RENAME, .key = BYTES("third"), .to = BYTES("fourth")), RECORDS_OK);
    for (int i = 0; i < 2; i++) {
        restart();
        expect("kept", "a text");
        expect("not", NULL);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("sum")), RECORDS_OK);
        assert_int_equal(records_read_integer(found.content), 3);
        assert_true(found.is_persisted);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("flag")), RECORDS_OK);
        assert_int_equal(found.content.data[0], 0);
        expect("long", "a text");
        expect("one", NULL);
        expect("third", NULL);
        expect("other", "of two");
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("other"), .type = RECORDS_STRING,
                              .may_overwrite = true, .content = i ? BYTES("of one") : BYTES("of two"),
                              .is_persisted = true),
                         RECORDS_OK);
        expect("fourth", i ? "of one" : "of two"); /* one record */
    }
}

static void what_is_gone_stays_gone(void **state UNUSED)
{
    keep_text("deleted", "x");
    keep_text("immediate", "x");
    keep_text("released", "x");
    keep_text("over", "x");
    int64_t later_us = clock_wall_ms() * 1000 + 1000; /* than that of the record, however long it took */
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = BYTES("deleted"), .timestamp_us = later_us),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = BYTES("immediate"), .is_immediate = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("released"), .type = RECORDS_STRING,
                          .content = BYTES("in memory"), .may_overwrite = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("over"), .type = RECORDS_STRING,
                          .content = BYTES("y"), .may_overwrite = true, .is_persisted = true,
                          .expires_ms = clock_present_ms() + 1),
                     RECORDS_OK);
    expect("released", "in memory");
    clock_sleep_ms(2);
    restart();
    expect("deleted", NULL);
    expect("immediate", NULL);
    expect("released", NULL);
    expect("over", NULL);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("deleted"), .type = RECORDS_STRING,
                         .content = BYTES("late"), .timestamp_us = later_us - 1),
                     RECORDS_OLDER);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("immediate"), .type = RECORDS_STRING,
                         .content = BYTES("late"), .timestamp_us = 1),
                     RECORDS_OK);
}

static void locks_and_ends_come_back(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 60000;
    assert_int_equal(KEEP(.deed = RECORDS_LOCK, .key = BYTES("lock"), .owner = BYTES("me"), .lease_ms = 60000,
                          .may_overwrite = true, .is_persisted = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("ends"), .type = RECORDS_VOID,
                          .content = BYTES(""), .expires_ms = end_ms, .touch_s = 3600, .is_persisted = true),
                     RECORDS_OK);
    restart();
    assert_int_equal(lock("lock", "you", 1000), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("ends"), .is_probe = true), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms);
    assert_int_equal(found.touch_s, 3600);
    for (int i = 0; i < 3; i++)
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("ends")), RECORDS_OK);
    assert_int_equal(found.saving, 0); /* nobody waits for it */
    records_save_rest(records);
    restart();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("ends"), .is_probe = true), RECORDS_OK);
    assert_true(found.expires_ms > end_ms + 3000000);
    assert_int_equal(KEEP(.deed = RECORDS_UNLOCK, .key = BYTES("lock"), .owner = BYTES("me")), RECORDS_OK);
    restart();
    expect("lock", NULL);
}

static void without_a_folder_nothing_is_persisted(void **state UNUSED)
{
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_VOID, .content = BYTES(""),
                         .is_persisted = true),
                     RECORDS_NO_DISK);
    expect("key", NULL);
}

/* A program whose settings name no folder changes a record that another one persisted. */
static void a_process_without_a_folder_saves_nothing(void **state UNUSED)
{
    struct records *with_folder = records;
    keep_text("key", "saved");
    records = open_at(BYTES_SMALL);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("key"), .size = 2), RECORDS_OK);
    assert_false(records_save(records, found.saving));
    uint64_t number = found.saving;
    records_close(records);
    records = with_folder;
    assert_true(records_save(records, number));
    restart();
    expect("key", "sa");
}

/* The disk has less room than the memory. */
static void a_full_disk_is_said(void **state UNUSED)
{
    static char large[20000];
    bool is_saved = true;
    int count = 0;
    memset(large, 'x', sizeof large);
    records_close(records);
    records = open_at(BYTES_SMALL * 4);
    assert_true(bring(3 << 19));
    for (char key[16]; is_saved; count++) {
        snprintf(key, sizeof key, "%d", count);
        assert_true(count < 90);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                             .is_persisted = true, .content = {large, sizeof large}),
                         RECORDS_OK);
        is_saved = records_save(records, found.saving);
    }
    assert_false(records_save(records, found.saving));
    /* without the last one all is saved */
    char last[16];
    snprintf(last, sizeof last, "%d", count - 1);
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = bytes_of(last), .is_immediate = true), RECORDS_OK);
    keep_text("small", "fits");
    records_check(records);
    records_close(records);
    records = open_at(BYTES_SMALL * 4);
    assert_true(bring(3 << 19));
    expect("small", "fits");
    expect(last, NULL);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("0")), RECORDS_OK);
    assert_int_equal(found.content.size, sizeof large);
}

/* What is always in memory of each record is more than the memory. */
static void a_memory_that_is_too_small_is_said(void **state UNUSED)
{
    records_check(records);
    records_close(records);
    records = open_at(BYTES_SMALL * 2);
    assert_true(bring(DISK_BYTES));
    for (int i = 0; i < 12000; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_VOID,
                             .content = BYTES(""), .is_persisted = true),
                         RECORDS_OK);
        if (i % 1000 == 999)
            assert_true(records_save(records, found.saving));
    }
    records_check(records);
    records_close(records);
    records = open_at(BYTES_SMALL);
    assert_false(bring(DISK_BYTES));
    assert_non_null(strstr(problem, "records_mb is too small"));
}

static void what_waits_for_long_is_bounded(void **state UNUSED)
{
    enum records_outcome outcome = RECORDS_OK;
    int count = 0;
    for (; outcome == RECORDS_OK && count < 100000; count++) /* and nobody saves */
        outcome = RUN(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_VOID, .content = BYTES(""),
                      .may_overwrite = true, .is_persisted = true);
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    assert_true(count > 1000);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("key"), .is_immediate = true), RECORDS_OK);
    assert_int_equal(set("free", "room"), RECORDS_OK);
    records_check(records);
    records_save_rest(records);
    keep_text("key", "again");
    restart();
    expect("key", "again");
}

static void stand_still(void *argument UNUSED)
{
    disk_writer_stand_still(records);
}

/* The wait ends by itself while the other still stands; the documented ten seconds are not cut short either.
 * What is not kept on disk, and reading, does not wait. */
static void a_writer_that_stands_still_holds_others_up_for_ten_seconds(void **state UNUSED)
{
    int status;
    pid_t pid = child_start(stand_still, NULL);
    assert_true(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    int64_t since_ms = clock_monotonic_ms();
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_STRING,
                         .content = BYTES("text"), .is_persisted = true),
                     RECORDS_OK);
    uint64_t number = found.saving;
    assert_false(records_save(records, number));
    assert_true(clock_monotonic_ms() - since_ms >= 10000);
    assert_true(waitpid(pid, &status, WNOHANG | WUNTRACED) == 0); /* nothing has become of it */
    expect("key", "text");
    assert_int_equal(set("other", "free"), RECORDS_OK);
    assert_int_equal(kill(pid, SIGCONT), 0);
    child_expect(pid);
    assert_true(records_save(records, number));
    restart();
    expect("key", "text");
}

static void a_damaged_folder_is_refused(void **state UNUSED)
{
    char path[300];
    keep_text("key", "a text");
    records_close(records);
    snprintf(path, sizeof path, "%s/data.mdb", folder_path("disk"));
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (off_t at = 0; at < 8192; at += 64)
        assert_int_equal(pwrite(fd, "damage", 6, at), 6);
    close(fd);
    records = open_at(BYTES_SMALL);
    assert_false(bring(DISK_BYTES));
    assert_non_null(strstr(problem, "disk"));
    expect("key", NULL);
}

/* --- death --- */

enum { WRITERS = 3, KEYS = 5 };

/* Of each key, the number of the change that was acknowledged last, and of the one that was begun last. */
struct progress {
    volatile int acknowledged[WRITERS][KEYS], begun[WRITERS][KEYS];
};
static struct progress *progress;

static bool is_deletion(int number)
{
    return number % 4 == 3;
}

static void write_on(void *argument)
{
    int own = *(int *)argument;
    unsigned seed = (unsigned)getpid();
    for (;;) {
        char key[32], text[16];
        int place = rand_r(&seed) % KEYS, number = ++progress->begun[own][place];
        snprintf(key, sizeof key, "%d.%d", own, place);
        snprintf(text, sizeof text, "%d", number);
        enum records_outcome outcome =
            is_deletion(number)
                ? RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = number % 8 == 3)
                : RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                      .content = bytes_of(text), .may_overwrite = true, .is_persisted = true);
        DEMAND(outcome == RECORDS_OK || (is_deletion(number) && outcome == RECORDS_NOT_FOUND));
        DEMAND(records_save(records, found.saving));
        progress->acknowledged[own][place] = number;
    }
}

/* What is there is what was acknowledged, or begun after it. */
static void check_progress(void)
{
    for (int own = 0; own < WRITERS; own++)
        for (int place = 0; place < KEYS; place++) {
            char key[32];
            int least = progress->acknowledged[own][place], most = progress->begun[own][place];
            snprintf(key, sizeof key, "%d.%d", own, place);
            bool is_there = RUN(.deed = RECORDS_GET, .key = bytes_of(key)) == RECORDS_OK;
            bool may_be_absent = least == 0;
            for (int number = least; number <= most; number++)
                may_be_absent = may_be_absent || is_deletion(number);
            if (!is_there && !may_be_absent)
                fail_msg("%s is lost: %d was acknowledged, %d begun", key, least, most);
            char text[16] = "";
            snprintf(text, sizeof text, "%.*s", (int)found.content.size, found.content.data);
            int number = is_there ? atoi(text) : least;
            if (number < least || number > most)
                fail_msg("%s is %d: %d was acknowledged, %d begun", key, number, least, most);
        }
}

static int count_changes(void)
{
    int changes = 0;
    for (int own = 0; own < WRITERS; own++)
        for (int place = 0; place < KEYS; place++)
            changes += progress->acknowledged[own][place];
    return changes;
}

/* Kills writers at any moment, and loses the memory with all of them, or keeps it with the others; on a busy
 * machine it takes more rounds until enough was acknowledged. */
static void what_was_acknowledged_is_never_lost(void **state UNUSED)
{
    unsigned seed = 3;
    progress = mapping_share(sizeof *progress);
    for (int round = 0; round < 25 || count_changes() <= 100; round++) {
        pid_t pids[WRITERS];
        for (int i = 0; i < WRITERS; i++)
            pids[i] = child_start(write_on, &i);
        for (int kills = rand_r(&seed) % 4; kills > 0; kills--) {
            int one = rand_r(&seed) % WRITERS;
            clock_sleep_ms(rand_r(&seed) % 20);
            child_kill(pids[one]);
            pids[one] = child_start(write_on, &one);
        }
        clock_sleep_ms(rand_r(&seed) % 20);
        for (int i = 0; i < WRITERS; i++)
            child_kill(pids[i]);
        if (round % 5 == 4) {
            check_progress();
            records_save_rest(records);
        }
        restart();
        check_progress();
    }
}

static void change_kept(void *argument UNUSED)
{
    static char large[500];
    memset(large, 'y', sizeof large);
    DEMAND(RUN(.deed = RECORDS_SET, .key = BYTES("first"), .type = RECORDS_STRING,
               .content = {large, sizeof large}, .may_overwrite = true, .is_persisted = true) == RECORDS_OK);
    DEMAND(records_save(records, found.saving));
    DEMAND(RUN(.deed = RECORDS_RENAME, .key = BYTES("first"), .to = BYTES("second"), .may_overwrite = true) ==
           RECORDS_OK);
    DEMAND(records_save(records, found.saving));
    DEMAND(RUN(.deed = RECORDS_DELETE, .key = BYTES("second")) == RECORDS_OK);
    DEMAND(records_save(records, found.saving));
}

static bool dies(void)
{
    int status = 0;
    pid_t pid = child_start(change_kept, NULL);
    if (waitpid(pid, &status, 0) != pid)
        fail_msg("the child is gone");
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* How far the changes have come: 0 to 3; the test fails between two. */
static int stage(void)
{
    bool has_first = RUN(.deed = RECORDS_GET, .key = BYTES("first")) == RECORDS_OK;
    bool is_new = has_first && found.content.size == 500;
    bool has_second = RUN(.deed = RECORDS_GET, .key = BYTES("second")) == RECORDS_OK;
    assert_false(has_first && has_second);
    return has_second ? 2 : !has_first ? 3 : is_new ? 1 : 0;
}

/* A writer dies at each step of its changes, in the memory and on the way to the disk. */
static void a_death_at_any_step_is_whole_or_not_at_all(void **state UNUSED)
{
    static const char *const points[] = {"records-noted", "records-done", "records-written",
                                         "records-synced"};
    int deaths = 0;
    for (size_t point = 0; point < COUNT_OF(points); point++)
        for (int count = 1, is_over = 0, step = point ? 1 : 5; !is_over; count += step, deaths++) {
            char list[40];
            snprintf(list, sizeof list, "%s:%d", points[point], count);
            KEEP(.deed = RECORDS_DELETE, .key = BYTES("second"), .is_immediate = true);
            KEEP(.deed = RECORDS_DELETE, .key = BYTES("first"), .is_immediate = true);
            keep_text("first", "before");
            crash_arm(list, mapping_share);
            is_over = !dies();
            crash_arm("", mapping_share);
            records_check(records);
            int in_memory = stage();
            if (count % 2)
                records_save_rest(records);
            restart();
            int on_disk = stage();
            assert_true(count % 2 ? on_disk == in_memory : on_disk == in_memory || on_disk == in_memory - 1);
            assert_true(!is_over || on_disk == 3);
        }
    assert_true(deaths > 30);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_persisted_comes_back),
        TEST(what_is_gone_stays_gone),
        TEST(locks_and_ends_come_back),
        cmocka_unit_test_setup_teardown(without_a_folder_nothing_is_persisted, set_up, tear_down),
        TEST(a_process_without_a_folder_saves_nothing),
        TEST(a_full_disk_is_said),
        TEST(a_memory_that_is_too_small_is_said),
        TEST(what_waits_for_long_is_bounded),
        TEST(a_writer_that_stands_still_holds_others_up_for_ten_seconds),
        TEST(a_damaged_folder_is_refused),
        TEST(what_was_acknowledged_is_never_lost),
        TEST(a_death_at_any_step_is_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
