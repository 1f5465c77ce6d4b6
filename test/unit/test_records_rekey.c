/* test_records_rekey: another key for the records on disk: when it is taken, that nothing is lost on the way,
 * and that the former one has gone. */
#include "records/records_private.h" /* before the fixtures, which have a variable of this name */

#include "records_sealed_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/crash.h"
#include "edge/mapping.h"
#include "records/records_rekey.h"

enum { SMALL = 1200, LARGE = 8, LARGE_BYTES = 200000, KEPT = SMALL + LARGE + 2 };

static const char *folder(void)
{
    static char path[200];
    snprintf(path, sizeof path, "%s", folder_path("disk"));
    return path;
}

static bool has_file(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    return access(path, F_OK) == 0;
}

static void make_next(void)
{
    bool is_there = true;
    const char *error = records_seal_make_next(folder(), &is_there);
    if (error)
        fail_msg("%s", error);
    assert_false(is_there);
    assert_true(has_file("key.next"));
}

static struct records_seal *read_key(enum records_seal_file file)
{
    struct records_seal *seal;
    assert_null(records_seal_read(&seal, folder(), file));
    assert_non_null(seal);
    return seal;
}

/* --- what the disk has --- */

struct tally {
    const struct records_seal *seal;
    int of_it, others, clear;
};

static enum disk_table_next count_one(void *context, struct bytes place, struct bytes text)
{
    struct tally *tally = context;
    if (!records_seal_is_place(place))
        tally->clear++;
    else if (records_seal_has(tally->seal, text))
        tally->of_it++;
    else
        tally->others++;
    return DISK_TABLE_KEEP;
}

static struct tally count(const struct records_seal *seal)
{
    struct tally tally = {.seal = seal};
    struct disk_table *disk = open_disk();
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_each(disk, count_one, &tally));
    disk_table_abandon(disk);
    disk_table_close(disk);
    return tally;
}

/* All are under another key than `former`, the present one, whose file is the only one. */
static void check_replaced(struct records_seal *former, int sealed, int clear)
{
    struct records_seal *present = read_key(RECORDS_SEAL_PRESENT);
    struct tally tally = count(former);
    assert_int_equal(tally.of_it, 0);
    tally = count(present);
    assert_int_equal(tally.of_it, sealed);
    assert_int_equal(tally.others, 0);
    assert_int_equal(tally.clear, clear);
    assert_false(has_file("key.next") || has_file("key.new"));
    records_seal_free(present);
}

/* --- many records --- */

static char large[LARGE_BYTES];

static void name_of(int number, char name_r[24])
{
    snprintf(name_r, 24, "small%04d", number);
}

/* In memory first: one write for many. */
static void keep_small(int number, const char *text)
{
    char name[24];
    name_of(number, name);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(name), .type = RECORDS_STRING,
                         .content = bytes_of(text), .may_overwrite = true, .is_persisted = true),
                     RECORDS_OK);
}

static void keep_many(void)
{
    const struct bytes more[] = {BYTES("second key")};
    memset(large, 'l', sizeof large);
    for (int i = 0; i < SMALL; i++) {
        char name[24];
        name_of(i, name);
        keep_small(i, name);
    }
    assert_true(records_save(records, found.saving));
    for (int i = 0; i < LARGE; i++) {
        char name[24];
        snprintf(name, sizeof name, "large%d", i);
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = bytes_of(name), .type = RECORDS_STRING,
                              .content = ((struct bytes){large, sizeof large}), .is_persisted = true),
                         RECORDS_OK);
    }
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("first key"), .more = more, .more_count = 1,
                          .type = RECORDS_STRING, .content = BYTES("of two keys"), .is_persisted = true),
                     RECORDS_OK);
    assert_int_equal(
        KEEP(.deed = RECORDS_LOCK, .key = BYTES("first key"), .owner = BYTES("me"), .lease_ms = 600000),
        RECORDS_OK);
    keep_text("deleted", "x");
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = BYTES("deleted")), RECORDS_OK);
    is_encrypted = false;
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("in clear"),
                                      .type = RECORDS_STRING,
                                      .content = BYTES("in clear"),
                                      .is_persisted = true};
    assert_int_equal(records_run(records, BYTES("plain"), 0, &command, &found), RECORDS_OK);
    assert_true(records_save(records, found.saving));
    is_encrypted = true;
}

static void expect_many(void)
{
    for (int i = 0; i < SMALL; i++) {
        char name[24];
        name_of(i, name);
        expect(name, name);
    }
    for (int i = 0; i < LARGE; i++) {
        char name[24];
        snprintf(name, sizeof name, "large%d", i);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(name)), RECORDS_OK);
        assert_true(bytes_equal(found.content, (struct bytes){large, sizeof large}));
    }
    expect("second key", "of two keys");
    assert_int_equal(lock("first key", "other", 1000), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("deleted"), .type = RECORDS_VOID,
                         .content = BYTES(""), .timestamp_us = 1),
                     RECORDS_OLDER);
    struct records_command command = {.deed = RECORDS_GET, .key = BYTES("in clear")};
    assert_int_equal(records_run(records, BYTES("plain"), 0, &command, &found), RECORDS_OK);
}

static void all_records_get_the_new_key(void **state UNUSED)
{
    keep_many();
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    assert_int_equal(count(former).of_it, KEPT);
    make_next();
    restart();
    expect_many();
    check_replaced(former, KEPT, 1);
    keep_text("later", "x");
    assert_int_equal(
        KEEP(.deed = RECORDS_DELETE, .key = BYTES("first key"), .owner = BYTES("me"), .is_immediate = true),
        RECORDS_OK);
    restart();
    expect("later", "x");
    expect("second key", NULL);
    check_replaced(former, KEPT, 1);
    records_seal_free(former);
}

/* What is in the log alone, and was overwritten and deleted there. */
static void what_is_in_the_log_gets_it_too(void **state UNUSED)
{
    keep_text("one", "1");
    restart();
    keep_text("one", "2");
    keep_text("two", "2");
    keep_text("gone", "x");
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = BYTES("gone"), .is_immediate = true), RECORDS_OK);
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    restart();
    expect("one", "2");
    expect("two", "2");
    expect("gone", NULL);
    check_replaced(former, 2, 0);
    records_seal_free(former);
}

static void nothing_encrypted_is_no_reason_to_wait(void **state UNUSED)
{
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    restart();
    check_replaced(former, 0, 0);
    keep_text("key", "x");
    restart();
    expect("key", "x");
    records_seal_free(former);
}

/* --- when --- */

/* A process that starts beside another one, which has the former key, uses that one too. */
static void it_waits_for_all_processes(void **state UNUSED)
{
    struct builder before = {0}, after = {0};
    keep_text("before", "x");
    read_file("key", &before);
    make_next();
    struct records *running = records;
    let_go(running);
    records = open_at(BYTES_SMALL);
    assert_true(bring(DISK_BYTES));
    keep_text("by the second", "y");
    struct records *second = records;
    let_go(second);
    records = running;
    keep_text("by the first", "z");
    read_file("key", &after);
    assert_true(bytes_equal(builder_bytes(&before), builder_bytes(&after)) && has_file("key.next"));
    records_close(running);
    records = open_at(BYTES_SMALL); /* the second one still runs */
    assert_true(bring(DISK_BYTES));
    assert_true(has_file("key.next"));
    records_close(records);
    records = second;
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    restart();
    expect("before", "x");
    expect("by the first", "z");
    expect("by the second", "y");
    check_replaced(former, 3, 0);
    records_seal_free(former);
    builder_free(&before);
    builder_free(&after);
}

static void one_key_waits_at_a_time(void **state UNUSED)
{
    struct builder before = {0}, after = {0};
    bool is_there = false;
    make_next();
    read_file("key.next", &before);
    assert_null(records_seal_make_next(folder(), &is_there));
    assert_true(is_there);
    read_file("key.next", &after);
    assert_true(bytes_equal(builder_bytes(&before), builder_bytes(&after)));
    remove_file("key.next");
    remove_file("key");
    assert_non_null(strstr(records_seal_make_next(folder(), &is_there), "there is no file key"));
    assert_false(has_file("key.next"));
    builder_free(&before);
    builder_free(&after);
}

/* Two that start at the same moment. */
static void two_processes_do_it_together(void **state UNUSED)
{
    struct records_rekey rekey = {0};
    bool is_more = false;
    keep_many();
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    records_close(records);
    records = NULL;
    struct disk_table *disk = open_disk();
    assert_null(disk_table_begin(disk));
    assert_null(records_rekey_some(&rekey, disk, folder(), &is_more));
    assert_true(is_more && rekey.from.size);
    assert_null(disk_table_commit(disk));
    disk_table_close(disk);
    struct tally tally = count(former);
    assert_int_equal(tally.of_it + tally.others, KEPT);
    assert_true(tally.of_it && tally.others);
    records = open_at(BYTES_SMALL);
    assert_true(bring(DISK_BYTES));
    disk = open_disk();
    assert_null(disk_table_begin(disk));
    assert_null(records_rekey_some(&rekey, disk, folder(), &is_more));
    assert_false(is_more);
    disk_table_abandon(disk);
    disk_table_close(disk);
    records_rekey_free(&rekey);
    expect_many();
    check_replaced(former, KEPT, 1);
    records_seal_free(former);
}

/* --- deaths --- */

static void start_once(void *argument UNUSED)
{
    records = open_at(BYTES_SMALL);
    DEMAND(bring(DISK_BYTES));
}

static void ask_for_next(void *argument UNUSED)
{
    bool is_there;
    DEMAND(!records_seal_make_next(folder(), &is_there));
}

static void wrap_keys(void *argument UNUSED)
{
    DEMAND(!records_seal_wrap(folder()));
}

static bool dies(void (*function)(void *argument), const char *point, int passage)
{
    char list[60];
    int status = 0;
    snprintf(list, sizeof list, "%s:%d", point, passage);
    crash_arm(list, mapping_share);
    pid_t pid = child_start(function, NULL);
    if (waitpid(pid, &status, 0) != pid)
        fail_msg("the child is gone");
    crash_arm("", mapping_share);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* At each passage of each step: the folder has all records, each once, and the next start ends it. */
static void a_death_at_any_step_loses_nothing(void **state UNUSED)
{
    static const struct {
        const char *name;
        int least;
    } points[] = {{"disk-table-filled", 4},
                  {"disk-table-emptied", 4},
                  {"records-rekeyed", 3},
                  {"records-rekey-over", 1},
                  {"records-key-replaced", 1}};
    keep_many();
    for (size_t point = 0; point < COUNT_OF(points); point++) {
        int passage = 0;
        for (bool is_over = false; !is_over; passage++) {
            struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
            make_next();
            records_close(records);
            records = NULL;
            is_over = !dies(start_once, points[point].name, passage + 1);
            struct tally tally = count(former);
            assert_int_equal(tally.of_it + tally.others, KEPT);
            assert_int_equal(tally.clear, 1);
            records = open_at(BYTES_SMALL);
            if (!bring(DISK_BYTES))
                fail_msg("%s", problem);
            expect_many();
            check_replaced(former, KEPT, 1);
            records_seal_free(former);
        }
        assert_true(passage > points[point].least);
    }
}

static void a_death_while_a_key_is_written_changes_nothing(void **state UNUSED)
{
    struct builder before = {0}, after = {0};
    keep_text("key", "x");
    read_file("key", &before);
    assert_true(dies(ask_for_next, "records-key-written", 1));
    assert_false(has_file("key.next"));
    write_site_key("other.key", 'b');
    load_site_keys("other.key", "site.key");
    assert_true(dies(wrap_keys, "records-key-written", 1));
    read_file("key", &after);
    assert_true(bytes_equal(builder_bytes(&before), builder_bytes(&after)));
    make_next();
    restart();
    expect("key", "x");
    assert_false(has_file("key.new"));
    builder_free(&before);
    builder_free(&after);
}

/* --- the site key --- */

/* While a key waits, and when the records are under both. */
static void the_site_key_changes_on_the_way(void **state UNUSED)
{
    keep_many();
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    write_site_key("other.key", 'b');
    load_site_keys("other.key", "site.key");
    struct records *running = records;
    let_go(running);
    records = open_at(BYTES_SMALL);
    assert_true(bring(DISK_BYTES));
    assert_true(has_file("key.next"));
    records_close(running);
    load_site_keys("other.key", "");
    records_close(records);
    assert_true(dies(start_once, "disk-table-emptied", 2));
    write_site_key("third.key", 'c');
    load_site_keys("third.key", "other.key");
    assert_null(records_seal_wrap(folder()));
    load_site_keys("third.key", "");
    records = open_at(BYTES_SMALL);
    assert_true(bring(DISK_BYTES));
    expect_many();
    check_replaced(former, KEPT, 1);
    records_seal_free(former);
}

/* The servers were down while the site key was replaced, and the former one is not named any more. */
static void a_start_without_the_former_site_key_is_refused(void **state UNUSED)
{
    char mark[SITE_KEY_MARK + 1];
    keep_text("key", "x");
    make_next();
    write_site_key("other.key", 'b');
    snprintf(mark, sizeof mark, "%s", site_key_mark());
    for (int i = 0; i < 2; i++) {
        assert_false(starts("other.key", ""));
        assert_non_null(strstr(problem, "site_key_former_file"));
        assert_non_null(strstr(problem, mark));
    }
    assert_true(starts("other.key", "site.key"));
    expect("key", "x");
    assert_true(starts("other.key", ""));
    expect("key", "x");
}

/* --- what is wrong --- */

static void what_is_damaged_is_not_encrypted_again(void **state UNUSED)
{
    struct builder key = {0};
    unsigned char place[RECORDS_PLACE_BYTES] = "lab";
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    keep_text("key", "x");
    records_seal_place(former, BYTES("other"), place);
    struct disk_table *disk = open_disk();
    struct bytes at = {(char *)place, sizeof place};
    assert_null(disk_table_begin(disk));
    assert_null(
        disk_table_put(disk, at, BYTES("no record, and long enough for the head of one of them, is it")));
    assert_null(disk_table_commit(disk));
    disk_table_close(disk);
    make_next();
    for (int i = 0; i < 2; i++) {
        assert_false(starts("site.key", ""));
        assert_non_null(strstr(problem, "a record is damaged"));
        assert_true(has_file("key.next"));
    }
    disk = open_disk();
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_put(disk, at, NO_BYTES));
    assert_null(disk_table_commit(disk));
    disk_table_close(disk);
    read_file("key", &key);
    remove_file("key");
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "the file key is missing"));
    write_file("key", builder_bytes(&key));
    struct builder next = {0};
    read_file("key.next", &next);
    write_file("key.next", (struct bytes){next.data, next.size / 2});
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "its file key.next"));
    write_file("key.next", builder_bytes(&next));
    assert_true(starts("site.key", ""));
    expect("key", "x");
    check_replaced(former, 1, 0);
    records_seal_free(former);
    builder_free(&key);
    builder_free(&next);
}

/* A table without room for it: with more room it goes on. */
static void a_full_table_is_said(void **state UNUSED)
{
    enum { ROOM = 3 << 19 };
    static char text[20000];
    bool is_saved = true;
    int kept = 0;
    char name[24];
    memset(text, 'x', sizeof text);
    records_close(records);
    records = open_at(BYTES_SMALL * 4);
    assert_true(bring(ROOM));
    for (; is_saved; kept += is_saved) {
        assert_true(kept < 90);
        snprintf(name, sizeof name, "%d", kept);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(name), .type = RECORDS_STRING,
                             .is_persisted = true, .content = {text, sizeof text}),
                         RECORDS_OK);
        is_saved = records_save(records, found.saving);
    }
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    records_close(records);
    records = open_at(BYTES_SMALL * 4);
    assert_false(bring(ROOM));
    assert_non_null(strstr(problem, "its room is used up"));
    records_close(records);
    records = open_at(BYTES_SMALL * 4);
    assert_true(bring(DISK_BYTES));
    for (int i = 0; i < kept; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(name)), RECORDS_OK);
        assert_int_equal(found.content.size, sizeof text);
    }
    check_replaced(former, kept, 0);
    records_seal_free(former);
}

/* Parts that change most of the table have no room in it, smaller ones do. */
static void parts_become_smaller_where_there_is_little_room(void **state UNUSED)
{
    enum { ROOM = 8 << 20, COUNT = 1200 };
    static char text[3000];
    char name[24];
    memset(text, 'x', sizeof text);
    records_rekey_part = ROOM;
    records_close(records);
    records = open_at(BYTES_SMALL * 8);
    assert_true(bring(ROOM));
    for (int i = 0; i < COUNT; i++) {
        name_of(i, name);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(name), .type = RECORDS_STRING,
                             .is_persisted = true, .content = {text, sizeof text}),
                         RECORDS_OK);
        assert_true(i % 100 != 99 || records_save(records, found.saving));
    }
    struct records_seal *former = read_key(RECORDS_SEAL_PRESENT);
    make_next();
    records_close(records);
    records = open_at(BYTES_SMALL * 8);
    if (!bring(ROOM))
        fail_msg("%s", problem);
    check_replaced(former, COUNT, 0);
    records_seal_free(former);
}

static int set_up_parts(void **state)
{
    records_rekey_part = 1 << 18; /* several parts of what the tests keep */
    return set_up_sealed(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_parts, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_records_get_the_new_key),
        TEST(what_is_in_the_log_gets_it_too),
        TEST(nothing_encrypted_is_no_reason_to_wait),
        TEST(it_waits_for_all_processes),
        TEST(one_key_waits_at_a_time),
        TEST(two_processes_do_it_together),
        TEST(a_death_at_any_step_loses_nothing),
        TEST(a_death_while_a_key_is_written_changes_nothing),
        TEST(the_site_key_changes_on_the_way),
        TEST(a_start_without_the_former_site_key_is_refused),
        TEST(what_is_damaged_is_not_encrypted_again),
        TEST(a_full_table_is_said),
        TEST(parts_become_smaller_where_there_is_little_room),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    site_key_forget();
    return failures;
}
