/* test_records_room_death: records on disk that take more than the memory: contents that cannot be read or
 * given up, beside the deaths of those who try. */
#include "records_room_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "edge/crypto/crypto.h"
#include "log/disk_table.h"
#include "edge/mapping.h"
#include "records/records_seal.h"

/* --- what cannot be had --- */

static void find_place(const char *key, unsigned char place_r[RECORDS_PLACE_BYTES])
{
    memset(place_r, 0, RECORDS_PLACE_BYTES);
    memcpy(place_r, NS.data, NS.size);
    if (is_encrypted)
        records_seal_place(records->seal, bytes_of(key), place_r);
    else
        crypto_sha256(bytes_of(key), place_r + RECORDS_CODE_MOST);
}

static void on_disk(const char *key, struct bytes text)
{
    unsigned char place[RECORDS_PLACE_BYTES];
    let_go(records);
    struct disk_table *disk = disk_table_open(folder_path("disk"), DISK_BYTES, problem, sizeof problem);
    assert_non_null(disk);
    find_place(key, place);
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_put(disk, (struct bytes){(char *)place, sizeof place}, text));
    assert_null(disk_table_commit(disk));
    disk_table_close(disk);
}

static void read_disk(const char *key, struct builder *text)
{
    unsigned char place[RECORDS_PLACE_BYTES];
    bool is_there = false;
    let_go(records);
    struct disk_table *disk = disk_table_open(folder_path("disk"), DISK_BYTES, problem, sizeof problem);
    assert_non_null(disk);
    find_place(key, place);
    assert_null(disk_table_get(disk, (struct bytes){(char *)place, sizeof place}, text, &is_there));
    assert_true(is_there);
    disk_table_close(disk);
}

static void expect_unreadable(void)
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key")), RECORDS_NOT_READ);
    assert_int_equal(found.content.size, 0);
    assert_int_equal(found.size, 4000);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("key"), .size = 7), RECORDS_NOT_READ);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("key"), .to = BYTES("to")), RECORDS_NOT_READ);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key"), .is_probe = true), RECORDS_OK);
}

/* Another text, or none, is never taken for the content. */
static void a_damaged_content_is_not_read(void **state UNUSED)
{
    struct builder text = {0}, other = {0};
    keep_version("other", 1, 4000);
    keep_version("key", 1, 4000);
    push_out("key");
    read_disk("key", &text);
    read_disk("other", &other);
    on_disk("key", NO_BYTES);
    expect_unreadable();
    on_disk("key", (struct bytes){text.data, text.size - 1});
    expect_unreadable();
    on_disk("key", builder_bytes(&other));
    expect_unreadable();
    text.data[text.size - 10] ^= 1;
    on_disk("key", builder_bytes(&text));
    expect_unreadable();
    text.data[text.size - 10] ^= 1;
    on_disk("key", builder_bytes(&text));
    expect_version("key", 1, 4000);
    push_out("key");
    on_disk("key", NO_BYTES);
    expect_unreadable();
    keep_version("key", 2, 4000); /* which needs nothing of it */
    expect_version("key", 2, 4000);
    push_out("key");
    on_disk("key", NO_BYTES);
    assert_int_equal(KEEP(.deed = RECORDS_DELETE, .key = BYTES("key")), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key")), RECORDS_NOT_FOUND);
    builder_free(&text);
    builder_free(&other);
}

static void without_a_folder_it_is_not_read(void **state UNUSED)
{
    struct records *with_folder = records;
    keep_version("key", 1, 4000);
    push_out("key");
    records = open_at(BYTES_SMALL);
    expect_unreadable();
    records_close(records);
    records = with_folder;
    expect_version("key", 1, 4000);
}

/* What is not saved yet is not given up; when nothing else helps, it is saved. */
static void what_waits_is_saved_for_room(void **state UNUSED)
{
    for (int i = 0; i < 200; i++) { /* and nobody saves */
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(set_version(key, i, 20000, true), RECORDS_OK);
    }
    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        expect_version(key, i, 20000);
    }
    assert_true(records_save(records, found.saving));
}

/* Records in memory alone take all the room that can be had. */
static int take_all_room(void)
{
    enum records_outcome outcome = RECORDS_OK;
    int count = 0;
    for (char key[16]; outcome == RECORDS_OK; count++) {
        snprintf(key, sizeof key, "room%d", count);
        outcome = set_version(key, count, 4000, false);
        assert_true(count < 1000);
    }
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    return count - 1;
}

static void give_all_room(int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "room%d", i);
        assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = true), RECORDS_OK);
    }
}

/* The content is the one that was saved, but the record is not as it is on disk. */
static void a_change_that_waits_is_saved_first(void **state UNUSED)
{
    keep_version("key", 1, 4000);
    assert_int_equal(lock("key", "me", 60000), RECORDS_OK);
    take_all_room();
    assert_true(is_away("key"));
    restart();
    expect_version("key", 1, 4000);
    assert_int_equal(lock("key", "you", 60000), RECORDS_LOCKED);
}

static void save_and_die(void *argument UNUSED)
{
    DEMAND(set_version("key", 2, 4000, true) == RECORDS_OK);
    DEMAND(records_save(records, found.saving));
}

/* What a dead process had written, and not committed, is not on disk. */
static void what_is_written_is_not_saved(void **state UNUSED)
{
    int status = 0;
    keep_version("key", 1, 4000);
    crash_arm("records-written:1", mapping_share);
    pid_t pid = child_start(save_and_die, NULL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    crash_arm("", mapping_share);
    take_all_room();
    assert_true(is_away("key"));
    expect_version("key", 2, 4000);
}

/* An end that is moved while there is no room for the content. */
static void an_end_moves_while_there_is_no_room(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 3600000;
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_STRING,
                          .is_persisted = true, .content = content_of("key", 1, 4000), .expires_ms = end_ms),
                     RECORDS_OK);
    int count = take_all_room();
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key"), .expires_ms = end_ms + i), RECORDS_OK);
        assert_true(is_content(found.content, "key", 1, 4000));
        assert_int_equal(found.expires_ms, end_ms + i);
        assert_true(is_away("key"));
    }
    give_all_room(count);
    expect_version("key", 1, 4000);
    assert_false(is_away("key"));
    records_save_rest(records);
    restart();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key")), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms + 2);
}

static uint32_t value_of(const char *key)
{
    return records_key(records, records_find(records, records_find_space(records, NS, false), bytes_of(key)))
        ->value;
}

/* Between the reading and the lock the record has become another one. */
static void what_was_read_is_of_a_version(void **state UNUSED)
{
    keep_version("key", 1, 4000);
    push_out("key");
    records_note_away(records, value_of("key"));
    assert_false(records_find_read(records, value_of("key")));
    records_fetch_content(records);
    assert_true(records_find_read(records, value_of("key")));
    assert_true(is_content(records->read.content, "key", 1, 4000));
    atomic_fetch_add(&records->head->changes, UINT64_C(1) << 32); /* its mark may have come round */
    assert_false(records_find_read(records, value_of("key")));
    records_note_away(records, value_of("key"));
    struct room_read seen = records->read;
    keep_version("key", 2, 4000);
    push_out("key");
    records->read = seen;
    records->read.has_ended = true;
    assert_false(records_find_read(records, value_of("key")));
    expect_version("key", 2, 4000);
}

static void what_is_not_on_disk_is_not_given_up(void **state UNUSED)
{
    enum records_outcome outcome = RECORDS_OK;
    int count = 0;
    for (char key[16]; outcome == RECORDS_OK; count++) {
        snprintf(key, sizeof key, "key%d", count);
        outcome = set_version(key, count, 4000, false);
        assert_true(count < 1000);
        if (count == 100)
            keep_version("kept", 1, 50000);
    }
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    assert_true(is_away("kept"));
    records_check(records);
    for (int i = 0; i < count - 1; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        expect_version(key, i, 4000);
    }
    expect_version("kept", 1, 50000); /* read, and not brought back */
    assert_true(is_away("kept"));
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("kept"), .size = 49000),
                     RECORDS_OUT_OF_MEMORY);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("kept")), RECORDS_OK);
}

/* --- death --- */

enum { FEW = 32, FEW_SIZE = 40000 };

static void few_key(int number, char key_r[16])
{
    snprintf(key_r, 16, "few%d", number);
}

/* One content comes back and others are given up; then a record of memory takes room from them. */
static void bring_and_give_up(void *argument UNUSED)
{
    for (int i = 0; i < FEW; i++) {
        char key[16];
        few_key(i, key);
        DEMAND(RUN(.deed = RECORDS_GET, .key = bytes_of(key)) == RECORDS_OK);
        DEMAND(is_content(found.content, key, i, FEW_SIZE));
    }
    DEMAND(set_version("memory", 3, 30000, false) == RECORDS_OK);
    DEMAND(RUN(.deed = RECORDS_DELETE, .key = BYTES("memory"), .is_immediate = true) == RECORDS_OK);
}

static void a_death_at_any_step_loses_nothing(void **state UNUSED)
{
    int deaths = 0;
    for (int i = 0; i < FEW; i++) {
        char key[16];
        few_key(i, key);
        keep_version(key, i, FEW_SIZE);
    }
    for (int count = 1, status = 1; status; count += count < 200 ? 1 : 37, deaths++) {
        char list[40];
        snprintf(list, sizeof list, "records-noted:%d", count);
        crash_arm(list, mapping_share);
        pid_t pid = child_start(bring_and_give_up, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        crash_arm("", mapping_share);
        records_check(records);
        for (int i = 0; i < FEW; i += 1 + count % 7) {
            char key[16];
            few_key(i, key);
            expect_version(key, i, FEW_SIZE);
        }
        RUN(.deed = RECORDS_DELETE, .key = BYTES("memory"), .is_immediate = true);
    }
    assert_true(deaths > 200);
}

/* --- many processes --- */

enum { CROWD = 3, CROWD_KEYS = 60, KILLS = 40 };

/* Each writes its own keys and reads all. */
static void churn(void *argument)
{
    int own = *(int *)argument;
    unsigned seed = (unsigned)getpid();
    for (;;) {
        char key[16];
        int number = rand_r(&seed) % CROWD_KEYS;
        snprintf(key, sizeof key, "c%d.%d", rand_r(&seed) % CROWD, number);
        enum records_outcome outcome = RUN(.deed = RECORDS_GET, .key = bytes_of(key));
        DEMAND(outcome == RECORDS_OK || outcome == RECORDS_NOT_FOUND);
        if (outcome == RECORDS_OK) {
            int version = atoi(strchr(found.content.data, '/') + 1);
            DEMAND(is_content(found.content, key, version, 2000 + (size_t)version % 20000));
        }
        if (rand_r(&seed) % 3)
            continue;
        snprintf(key, sizeof key, "c%d.%d", own, number);
        int version = rand_r(&seed) % 100000;
        outcome = set_version(key, version, 2000 + (size_t)version % 20000, rand_r(&seed) % 20 > 0);
        DEMAND(outcome == RECORDS_OK || outcome == RECORDS_OUT_OF_MEMORY);
        DEMAND(records_save(records, found.saving));
    }
}

static void killed_processes_leave_nothing(void **state UNUSED)
{
    pid_t pids[CROWD];
    unsigned seed = 5;
    for (int i = 0; i < CROWD; i++)
        pids[i] = child_start(churn, &i);
    for (int i = 0; i < KILLS; i++) {
        int one = rand_r(&seed) % CROWD;
        clock_sleep_ms(rand_r(&seed) % 30);
        child_kill(pids[one]);
        records_check(records);
        pids[one] = child_start(churn, &one);
    }
    for (int i = 0; i < CROWD; i++)
        child_kill(pids[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_content_is_not_read),     TEST(without_a_folder_it_is_not_read),
        TEST(what_waits_is_saved_for_room),      TEST(a_change_that_waits_is_saved_first),
        TEST(what_is_written_is_not_saved),      TEST(an_end_moves_while_there_is_no_room),
        TEST(what_was_read_is_of_a_version),     TEST(what_is_not_on_disk_is_not_given_up),
        TEST(a_death_at_any_step_loses_nothing), TEST(killed_processes_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
