/* test_records: the rules of the commands, order, and memory. */
#include "records_fixture.h"
#include "records/records_use.h"
#include "records/records_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t now_us(void)
{
    return clock_present_ms() * 1000;
}

/* --- the commands --- */

static void what_is_set_is_read(void **state UNUSED)
{
    expect("a", NULL);
    assert_int_equal(set("a", "one"), RECORDS_OK);
    expect("a", "one");
    assert_int_equal(found.type, RECORDS_STRING);
    assert_true(found.created_s > 0 && found.timestamp_us > 0 && found.expires_ms == 0);
    assert_int_equal(set("a", "a longer one, which needs another piece of the memory"), RECORDS_OK);
    expect("a", "a longer one, which needs another piece of the memory");
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID, .content = BYTES("")),
                     RECORDS_NOT_FREE);
    struct records_found other;
    assert_int_equal(records_run(records, BYTES("other"), 0,
                                 &(struct records_command){.deed = RECORDS_GET, .key = BYTES("a")}, &other),
                     RECORDS_NOT_FOUND);
}

static void the_latest_timestamp_wins(void **state UNUSED)
{
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = BYTES("a"),
                                      .type = RECORDS_STRING,
                                      .content = BYTES("new"),
                                      .timestamp_us = now_us(),
                                      .may_overwrite = true};
    assert_int_equal(run(&command), RECORDS_OK);
    command.timestamp_us -= 1;
    command.content = BYTES("old");
    assert_int_equal(run(&command), RECORDS_OLDER);
    expect("a", "new");
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .timestamp_us = command.timestamp_us),
                     RECORDS_OLDER);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .timestamp_us = command.timestamp_us + 5),
                     RECORDS_OK);
    expect("a", NULL);
    assert_int_equal(run(&command), RECORDS_OLDER);
    command.timestamp_us += 6;
    assert_int_equal(run(&command), RECORDS_OK);
    /* A deletion that arrives before what it deletes. */
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("b"), .timestamp_us = 2000), RECORDS_NOT_FOUND);
    command.key = BYTES("b");
    command.timestamp_us = 1999;
    assert_int_equal(run(&command), RECORDS_OLDER);
    command.timestamp_us = 0;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("b"), .is_immediate = true), RECORDS_OK);
    command.timestamp_us = 1;
    assert_int_equal(run(&command), RECORDS_OK);
}

/* Each key of the record that is set was one of many of another, whose deletion is remembered. */
static void a_record_takes_the_keys_of_many_deletions(void **state UNUSED)
{
    static char names[RECORDS_KEYS_MOST][RECORDS_KEYS_MOST][24];
    struct bytes keys[RECORDS_KEYS_MOST];
    struct records_command command = {.deed = RECORDS_SET,
                                      .type = RECORDS_VOID,
                                      .content = BYTES(""),
                                      .more = keys + 1,
                                      .more_count = RECORDS_KEYS_MOST - 1};
    for (int i = 0; i < RECORDS_KEYS_MOST; i++) {
        for (int k = 0; k < RECORDS_KEYS_MOST; k++) {
            snprintf(names[i][k], sizeof names[i][k], "%d.%d", i, k);
            keys[k] = bytes_of(names[i][k]);
        }
        command.key = keys[0];
        assert_int_equal(run(&command), RECORDS_OK);
        assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = keys[0]), RECORDS_OK);
    }
    for (int i = 0; i < RECORDS_KEYS_MOST; i++)
        keys[i] = bytes_of(names[i][i]);
    command.key = keys[0];
    assert_int_equal(run(&command), RECORDS_OK);
    expect("0.0", "");
    expect("7.7", "");
    expect("7.6", NULL);
}

static void what_has_expired_is_never_seen(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 40;
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID, .content = BYTES(""),
                         .expires_ms = end_ms),
                     RECORDS_OK);
    for (int64_t before, after;; clock_sleep_ms(1)) {
        before = clock_present_ms();
        enum records_outcome outcome = RUN(.deed = RECORDS_GET, .key = BYTES("a"));
        after = clock_present_ms();
        if (after < end_ms)
            assert_int_equal(outcome, RECORDS_OK);
        if (before >= end_ms) {
            assert_int_equal(outcome, RECORDS_NOT_FOUND);
            break;
        }
    }
    assert_int_equal(records_next(records, NS, false, BYTES(""), NO_BYTES, NO_BYTES, &found),
                     RECORDS_NOT_FOUND);
    struct records_sums sums;
    assert_int_equal(set("b", "sweeps"), RECORDS_OK);
    records_sum(records, NO_BYTES, &sums);
    assert_int_equal(sums.records, 1);
}

/* One key after the other of two namespaces, whose hashes differ. */
static void namespaces_share_no_key(void **state UNUSED)
{
    char content[2][8];
    for (int i = 0; i < 8; i++) {
        struct records_command command = {.deed = RECORDS_SET,
                                          .key = BYTES("a"),
                                          .type = RECORDS_STRING,
                                          .may_overwrite = true,
                                          .content = {content[i % 2], 8}};
        memset(content[i % 2], '0' + i, sizeof content[i % 2]);
        assert_int_equal(records_run(records, i % 2 ? BYTES("demo") : NS, 0, &command, &found), RECORDS_OK);
        command.deed = RECORDS_GET;
        for (int space = 0; space < 2 && space <= i; space++) {
            expect("another key", NULL);
            assert_int_equal(records_run(records, space ? BYTES("demo") : NS, 0, &command, &found),
                             RECORDS_OK);
            assert_true(bytes_equal(found.content, (struct bytes){content[space], 8}));
        }
    }
}

static void reading_touches(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 9000;
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID, .content = BYTES(""),
                         .expires_ms = end_ms, .touch_s = 60),
                     RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .is_probe = true), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a")), RECORDS_OK);
    assert_true(found.expires_ms > end_ms + 50000);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .expires_ms = end_ms + 500000), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms + 500000);
}

static void numbers_are_added_and_flags_flipped(void **state UNUSED)
{
    char number[8];
    records_write_integer(number, 40);
    struct records_command add = {
        .deed = RECORDS_ADD, .key = BYTES("n"), .type = RECORDS_INTEGER, .content = {number, 8}};
    assert_int_equal(run(&add), RECORDS_NOT_FOUND);
    add.may_overwrite = true;
    assert_int_equal(run(&add), RECORDS_OK);
    records_write_integer(number, -42);
    assert_int_equal(run(&add), RECORDS_OK);
    assert_int_equal(records_read_integer(found.content), -2);
    records_write_integer(number, INT64_MIN);
    assert_int_equal(run(&add), RECORDS_OUT_OF_RANGE);
    add.type = RECORDS_FLOAT;
    assert_int_equal(run(&add), RECORDS_WRONG_TYPE);
    assert_int_equal(RUN(.deed = RECORDS_NOT, .key = BYTES("n")), RECORDS_WRONG_TYPE);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("b"), .type = RECORDS_BOOLEAN,
                         .content = ((struct bytes){"\0", 1})),
                     RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_NOT, .key = BYTES("b")), RECORDS_OK);
    assert_int_equal(found.content.data[0], 1);
}

static void a_content_is_truncated(void **state UNUSED)
{
    assert_int_equal(set("a", "h\xc3\xa9llo"), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("a"), .size = 2), RECORDS_OUT_OF_RANGE);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("a"), .size = 9), RECORDS_OUT_OF_RANGE);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("a"), .size = 3), RECORDS_OK);
    expect("a", "h\xc3\xa9");
    assert_int_equal(
        RUN(.deed = RECORDS_SET, .key = BYTES("b"), .type = RECORDS_BUFFER, .content = BYTES("xy")),
        RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("b"), .size = 300), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("b")), RECORDS_OK);
    assert_int_equal(found.content.size, 300);
    assert_memory_equal(found.content.data, "xy\0\0", 4);
}

static void a_lock_keeps_others_out(void **state UNUSED)
{
    assert_int_equal(set("a", "one"), RECORDS_OK);
    assert_int_equal(lock("a", "me", 60000), RECORDS_OK);
    assert_int_equal(lock("a", "you", 60000), RECORDS_LOCKED);
    assert_int_equal(lock("a", "me", 90000), RECORDS_OK);
    assert_int_equal(set("a", "two"), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a")), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("a"), .to = BYTES("z")), RECORDS_LOCKED);
    expect("a", "one");
    assert_true(found.locked_until_ms > clock_present_ms() + 60000);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_STRING,
                         .content = BYTES("mine"), .owner = BYTES("me"), .may_overwrite = true,
                         .expires_ms = clock_present_ms() + 1),
                     RECORDS_OK);
    clock_sleep_ms(2);
    expect("a", "mine"); /* its end was moved to that of its lock */
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("a"), .owner = BYTES("you")), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("a"), .owner = BYTES("me")), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("a"), .owner = BYTES("me")),
                     RECORDS_NOT_LOCKED);
    /* A name that has no record: the lock makes one that goes with it. */
    assert_int_equal(lock("name", "me", 5), RECORDS_OK);
    while (lock("name", "you", 60000) == RECORDS_LOCKED)
        clock_sleep_ms(1);
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("name"), .owner = BYTES("you")), RECORDS_OK);
    expect("name", NULL);
}

static void work_is_marked(void **state UNUSED)
{
    struct records_command get = {
        .deed = RECORDS_GET, .key = BYTES("a"), .lease_ms = 60000, .leaves_worked = true};
    assert_int_equal(set("a", "job"), RECORDS_OK);
    assert_int_equal(run(&get), RECORDS_OK);
    assert_true(found.worked_until_ms > 0);
    assert_int_equal(run(&get), RECORDS_WORKED_ON);
    get.leaves_worked = false;
    assert_int_equal(run(&get), RECORDS_OK);
}

static void a_record_has_several_keys(void **state UNUSED)
{
    const struct bytes more[] = {BYTES("url:x"), BYTES("id:7")};
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("job:1"), .type = RECORDS_STRING,
                         .content = BYTES("work"), .more = more, .more_count = 2),
                     RECORDS_OK);
    expect("url:x", "work");
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("job:1"), .to = BYTES("id:7")), RECORDS_OK);
    expect("job:1", NULL);
    expect("id:7", "work");
    assert_int_equal(RUN(.deed = RECORDS_LINK, .key = BYTES("id:7"), .to = BYTES("job:2")), RECORDS_OK);
    assert_int_equal(set("url:x", "a content that does not fit into the piece that it had before"),
                     RECORDS_OK);
    expect("job:2", "a content that does not fit into the piece that it had before");
    assert_int_equal(RUN(.deed = RECORDS_UNLINK, .key = BYTES("job:2")), RECORDS_OK);
    expect("job:2", NULL);
    assert_int_equal(set("other", "x"), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("id:7"), .to = BYTES("other")),
                     RECORDS_NOT_FREE);
    assert_int_equal(RUN(.deed = RECORDS_LINK, .key = BYTES("id:7"), .to = BYTES("other")), RECORDS_NOT_FREE);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("id:7")), RECORDS_OK);
    expect("url:x", NULL);
    for (int i = 0; i < RECORDS_KEYS_MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(RUN(.deed = RECORDS_LINK, .key = BYTES("other"), .to = bytes_of(name)),
                         i < RECORDS_KEYS_MOST - 1 ? RECORDS_OK : RECORDS_TOO_MANY_KEYS);
    }
}

static void keys_are_in_order(void **state UNUSED)
{
    char key[16] = "", last[16] = "";
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "%03d", i * 7 % 500);
        assert_int_equal(set(key, key), RECORDS_OK);
    }
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("250")), RECORDS_OK);
    int count = 0;
    enum records_outcome outcome =
        records_next(records, NS, false, BYTES("100"), NO_BYTES, BYTES("399"), &found);
    for (; outcome == RECORDS_OK; count++) {
        snprintf(key, sizeof key, "%.*s", (int)found.key.size, found.key.data);
        assert_true(strcmp(key, last) > 0);
        memcpy(last, key, sizeof key);
        outcome = records_next(records, NS, false, NO_BYTES, bytes_of(key), BYTES("399"), &found);
    }
    assert_int_equal(outcome, RECORDS_NOT_FOUND);
    assert_int_equal(count, 299);
    /* Many keys without a record are passed in several calls. */
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "%03d", i);
        RUN(.deed = RECORDS_DELETE, .key = bytes_of(key));
    }
    outcome = records_next(records, NS, false, BYTES(""), NO_BYTES, NO_BYTES, &found);
    assert_int_equal(outcome, RECORDS_BUSY);
    assert_true(found.key.size == 3);
    snprintf(key, sizeof key, "%.*s", (int)found.key.size, found.key.data);
    assert_int_equal(records_next(records, NS, false, NO_BYTES, bytes_of(key), NO_BYTES, &found),
                     RECORDS_NOT_FOUND);
}

static void a_full_memory_refuses(void **state UNUSED)
{
    static char large[40000];
    char key[16];
    int count = 0;
    for (enum records_outcome outcome = RECORDS_OK; outcome == RECORDS_OK; count++) {
        snprintf(key, sizeof key, "%d", count);
        outcome = RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_BUFFER,
                      .content = ((struct bytes){large, sizeof large}));
        assert_true(outcome == RECORDS_OK || outcome == RECORDS_OUT_OF_MEMORY);
    }
    assert_in_range(count, 15, 27);
    records_check(records);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("0")), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("again"), .type = RECORDS_BUFFER,
                         .content = ((struct bytes){large, sizeof large})),
                     RECORDS_OK);
}

static void it_is_known_what_a_namespace_has(void **state UNUSED)
{
    static char large[2 * BYTES_SMALL];
    struct records_use uses[RECORDS_SPACES_MOST], read[RECORDS_SPACES_MOST];
    struct records_sums sums;
    size_t count = 1;
    assert_int_equal(records_uses(records, uses), 0);
    assert_int_equal(set("a", "some text"), RECORDS_OK);
    assert_int_equal(set("b", "some text"), RECORDS_OK);
    const struct records_command other = {.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID};
    assert_int_equal(records_run(records, BYTES("other"), 0, &other, &found), RECORDS_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("large"), .type = RECORDS_BUFFER,
                             .content = ((struct bytes){large, sizeof large})),
                         RECORDS_OUT_OF_MEMORY);
    assert_int_equal(records_uses(records, uses), 2);
    assert_string_equal(uses[0].ns, "lab");
    assert_int_equal(uses[0].records, 2);
    assert_string_equal(uses[1].ns, "other");
    assert_int_equal(uses[1].records, 1);
    records_sum(records, NO_BYTES, &sums);
    assert_int_equal(sums.bytes, uses[0].bytes + uses[1].bytes);
    assert_int_equal(sums.refused, 2);

    assert_true(records_peek(folder_path("records"), read, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(read[i].ns, uses[i].ns);
        assert_int_equal(read[i].bytes, uses[i].bytes);
        assert_int_equal(read[i].records, uses[i].records);
    }
    assert_true(records_peek(folder_path("none"), read, &count));
    assert_int_equal(count, 0);
    records_close(records);
    assert_true(records_peek(folder_path("records"), read, &count));
    assert_int_equal(count, 0); /* of nobody any more */
    records = open_at(BYTES_SMALL);
    assert_true(records_peek(folder_path("records"), read, &count));
    assert_int_equal(count, 0);
}

/* Another file system may have a file with the same inode. */
static void a_lock_is_of_a_device_and_an_inode(void **state UNUSED)
{
    struct records_use_file file = {.inode = 123456, .major = 0xfe, .minor = 1, .has_device = true};
    assert_true(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fe:01:123456 0 EOF\n", &file));
    assert_true(records_use_is_lock("12: FLOCK ADVISORY WRITE 1 fe:01:123456 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fe:02:123456 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fd:01:123456 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fe:01:12345 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: POSIX  ADVISORY  READ 4711 fe:01:123456 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: -> FLOCK\n", &file));
    file.has_device = false;
    assert_true(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fe:02:123456 0 EOF\n", &file));
    assert_false(records_use_is_lock("1: FLOCK  ADVISORY  READ 4711 fe:01:12345 0 EOF\n", &file));
}

static void a_quota_refuses_what_grows(void **state UNUSED)
{
    struct records_command command = {
        .deed = RECORDS_SET, .type = RECORDS_STRING, .content = BYTES("some text"), .may_overwrite = true};
    char key[16];
    int count = 0;
    enum records_outcome outcome = RECORDS_OK;
    for (; outcome == RECORDS_OK; count++) {
        snprintf(key, sizeof key, "%d", count);
        command.key = bytes_of(key);
        outcome = records_run(records, NS, 10000, &command, &found);
    }
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    assert_in_range(count, 50, 130);
    command.key = BYTES("0");
    command.content = BYTES("short");
    assert_int_equal(records_run(records, NS, 10000, &command, &found), RECORDS_OK);
    assert_int_equal(records_run(records, NS, 100, &command, &found), RECORDS_OK);
    command.key = BYTES("new");
    assert_int_equal(records_run(records, BYTES("other"), 10000, &command, &found), RECORDS_OK);
}

static uint64_t bytes_taken(void)
{
    struct records_sums sums;
    records_sum(records, NS, &sums);
    return sums.bytes;
}

/* Ends, touch and locks are paid for by those that have them. */
static void a_record_takes_little(void **state UNUSED)
{
    char content[100], key[16];
    struct records_command command = {.deed = RECORDS_SET,
                                      .type = RECORDS_STRING,
                                      .content = {content, sizeof content},
                                      .may_overwrite = true};
    memset(content, 'x', sizeof content);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%012d", i);
        command.key = bytes_of(key);
        assert_int_equal(run(&command), RECORDS_OK);
    }
    uint64_t plain = bytes_taken();
    assert_int_equal(plain, 100 * 184);
    command.expires_ms = clock_present_ms() + 60000;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(bytes_taken(), plain + 40);
    assert_int_equal(found.expires_ms, command.expires_ms);
    command.touch_s = 7;
    assert_int_equal(run(&command), RECORDS_OK);
    command.expires_ms = 0;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(bytes_taken(), plain + 40);
    assert_int_equal(found.touch_s, 7);
    command.touch_s = 0;
    assert_int_equal(run(&command), RECORDS_OK);
    assert_int_equal(bytes_taken(), plain);
    assert_int_equal(lock(key, "me", 60000), RECORDS_OK);
    assert_true(bytes_taken() > plain + 40);
    command.owner = BYTES("me");
    assert_int_equal(run(&command), RECORDS_OK);
    assert_true(bytes_taken() > plain + 40); /* the lock stands */
    assert_int_equal(lock(key, "you", 60000), RECORDS_LOCKED);
    assert_int_equal(
        RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .owner = BYTES("me"), .is_immediate = true),
        RECORDS_OK);
    assert_int_equal(bytes_taken(), 99 * 184);
}

static void what_has_expired_makes_room(void **state UNUSED)
{
    static char large[300000];
    int64_t end_ms = clock_present_ms() + 5;
    for (int i = 0; i < 2; i++)
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = i ? BYTES("a") : BYTES("b"), .type = RECORDS_BUFFER,
                             .content = ((struct bytes){large, sizeof large}), .expires_ms = end_ms),
                         RECORDS_OK);
    while (clock_present_ms() < end_ms)
        clock_sleep_ms(1);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("c"), .type = RECORDS_BUFFER,
                         .content = ((struct bytes){large, sizeof large})),
                     RECORDS_OK);
}

/* --- states of namespaces --- */

enum { AGE_MS = 60000 };
static struct records_answer answer;

static enum records_verdict admit(const char *ns, bool is_write)
{
    return records_state_admit(records, bytes_of(ns), is_write, true, AGE_MS, &answer);
}

static void apply(const struct records_reading *reading, enum ns_state lab)
{
    const struct records_state states[] = {
        {.ns = BYTES("demo"), .state = NS_ON},
        {.ns = NS, .state = lab, .message = BYTES("soon")},
    };
    records_state_apply(records, reading, states, COUNT_OF(states));
}

static void read_states(enum ns_state lab)
{
    struct records_reading reading;
    records_state_begin(records, &reading);
    apply(&reading, lab);
}

static void a_state_is_obeyed(void **state UNUSED)
{
    static const enum records_verdict verdicts[][2] = {{RECORDS_ADMITTED, RECORDS_ADMITTED},
                                                       {RECORDS_ADMITTED, RECORDS_IS_READONLY},
                                                       {RECORDS_IS_OFF, RECORDS_IS_OFF},
                                                       {RECORDS_IS_GONE, RECORDS_IS_GONE}};
    assert_int_equal(admit("lab", false), RECORDS_UNCONFIRMED);
    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        read_states((enum ns_state)i);
        assert_int_equal(admit("lab", false), verdicts[i][false]);
        assert_int_equal(admit("lab", true), verdicts[i][true]);
        assert_string_equal(answer.message, "soon");
        assert_int_equal(admit("demo", true), RECORDS_ADMITTED);
        assert_string_equal(answer.message, "");
    }
    records_state_apply(records, &(struct records_reading){.began_ms = clock_monotonic_ms()}, NULL, 0);
    assert_int_equal(admit("lab", false), RECORDS_IS_ABSENT);
    assert_int_equal(admit("demo", false), RECORDS_IS_ABSENT);
}

static void a_change_is_waited_for(void **state UNUSED)
{
    struct records_reading before, after;
    read_states(NS_ON);
    assert_false(records_state_is_due(records));
    records_state_begin(records, &before);
    records_state_move(records, NS);
    assert_true(records_state_is_due(records));
    assert_int_equal(admit("lab", false), RECORDS_IS_MOVED);
    assert_int_equal(admit("demo", false), RECORDS_ADMITTED);
    apply(&before, NS_ON); /* it may have read the state before the change */
    assert_int_equal(admit("lab", false), RECORDS_IS_MOVED);
    records_state_begin(records, &after);
    apply(&after, NS_OFF);
    assert_int_equal(admit("lab", false), RECORDS_IS_OFF);
    apply(&before, NS_ON);
    assert_int_equal(admit("lab", false), RECORDS_IS_OFF);
    records_state_move(records, BYTES("z"));
    assert_int_equal(admit("demo", false), RECORDS_IS_MOVED);
    assert_int_equal(records_state_admit(records, NS, false, true, -1, &answer), RECORDS_UNCONFIRMED);
}

static void requests_are_counted(void **state UNUSED)
{
    const struct records_state one = {.ns = NS,
                                      .rates = {{.count = 10, .period_ms = 86400000, .burst = 3},
                                                {.count = 10, .period_ms = 86400000, .burst = 1}}};
    for (int round = 0; round < 2; round++) {
        struct records_reading reading;
        records_state_begin(records, &reading);
        records_state_apply(records, &reading, &one, 1); /* forgets nothing */
        assert_int_equal(admit("lab", true), round ? RECORDS_TOO_MANY : RECORDS_ADMITTED);
        assert_int_equal(admit("lab", true), RECORDS_TOO_MANY); /* of the writes, and is not counted */
        assert_int_equal(admit("lab", false), round ? RECORDS_TOO_MANY : RECORDS_ADMITTED);
        assert_int_equal(admit("lab", false), round ? RECORDS_TOO_MANY : RECORDS_ADMITTED);
    }
    assert_in_range(answer.wait_ms, 8600000, 8640000);
}

static void a_long_message_is_cut_between_characters(void **state UNUSED)
{
    char text[RECORDS_STATE_MESSAGE_MOST + 2];
    struct records_reading reading;
    memset(text, 'x', sizeof text);
    memcpy(text + RECORDS_STATE_MESSAGE_MOST - 1, "\xc3\xa9", 2);
    const struct records_state one = {.ns = NS, .state = NS_OFF, .message = {text, sizeof text}};
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &one, 1);
    assert_int_equal(admit("lab", false), RECORDS_IS_OFF);
    assert_int_equal(strlen(answer.message), RECORDS_STATE_MESSAGE_MOST - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_set_is_read),
        TEST(the_latest_timestamp_wins),
        TEST(a_record_takes_the_keys_of_many_deletions),
        TEST(what_has_expired_is_never_seen),
        TEST(namespaces_share_no_key),
        TEST(reading_touches),
        TEST(numbers_are_added_and_flags_flipped),
        TEST(a_content_is_truncated),
        TEST(a_lock_keeps_others_out),
        TEST(work_is_marked),
        TEST(a_record_has_several_keys),
        TEST(keys_are_in_order),
        TEST(a_full_memory_refuses),
        TEST(it_is_known_what_a_namespace_has),
        TEST(a_lock_is_of_a_device_and_an_inode),
        TEST(a_quota_refuses_what_grows),
        TEST(a_record_takes_little),
        TEST(what_has_expired_makes_room),
        TEST(a_state_is_obeyed),
        TEST(a_change_is_waited_for),
        TEST(requests_are_counted),
        TEST(a_long_message_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
