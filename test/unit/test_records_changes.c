/* test_records_changes: what listeners read: all changes, nothing else, whoever dies. */
#include "records_fixture.h"
#include "records/records_changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "edge/mapping.h"

static uint64_t position;
static struct builder read_text;

static uint64_t present_position(void)
{
    uint64_t now;
    assert_true(records_changes_position(records, &now));
    return now;
}

static enum records_changes_end read_changes(void)
{
    read_text.size = 0;
    return records_changes_read(records, NS, is_encrypted, &position, &read_text);
}

/* The keys that have changed since, in their order, "a b c". */
static const char *changes(void)
{
    static char list[400];
    struct bytes rest, key;
    uint64_t behind = 0;
    list[0] = '\0';
    assert_int_equal(read_changes(), RECORDS_CHANGES_ALL);
    for (rest = (struct bytes){read_text.data, read_text.size}; records_changes_take(&rest, &key, &behind);) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%.*s", at ? " " : "", (int)key.size, key.data);
    }
    assert_true(behind <= position);
    return list;
}

static int begin(void **state)
{
    set_up(state);
    position = present_position();
    return 0;
}

static int end(void **state)
{
    builder_free(&read_text);
    read_text = (struct builder){0};
    return tear_down(state);
}

/* --- what counts --- */

static void each_change_is_read_once(void **state UNUSED)
{
    const struct bytes more[] = {BYTES("b")};
    assert_string_equal(changes(), "");
    assert_int_equal(set("a", "one"), RECORDS_OK);
    assert_string_equal(changes(), "a");
    assert_string_equal(changes(), "");
    assert_int_equal(set("a", "one"), RECORDS_OK);
    assert_string_equal(changes(), "a");
    assert_int_equal(set("a", "a longer one, which needs another piece of the memory"), RECORDS_OK);
    assert_string_equal(changes(), "a");
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("a"), .to = BYTES("c")), RECORDS_OK);
    assert_string_equal(changes(), "a c");
    assert_int_equal(RUN(.deed = RECORDS_LINK, .key = BYTES("c"), .to = BYTES("d")), RECORDS_OK);
    assert_string_equal(changes(), "d");
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("c"), .size = 1), RECORDS_OK);
    assert_string_equal(changes(), "d c");
    assert_int_equal(RUN(.deed = RECORDS_UNLINK, .key = BYTES("c")), RECORDS_OK);
    assert_string_equal(changes(), "c");
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("d")), RECORDS_OK);
    assert_string_equal(changes(), "d");
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .more = more, .more_count = 1,
                         .type = RECORDS_BOOLEAN, .content = BYTES("\1")),
                     RECORDS_OK);
    assert_string_equal(changes(), "a b");
    assert_int_equal(RUN(.deed = RECORDS_NOT, .key = BYTES("b")), RECORDS_OK);
    assert_string_equal(changes(), "b a");
    assert_int_equal(lock("l", "me", 60000), RECORDS_OK);
    assert_string_equal(changes(), "l");
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("l"), .owner = BYTES("me")), RECORDS_OK);
    assert_string_equal(changes(), "l");
}

static void what_changes_nothing_is_not_read(void **state UNUSED)
{
    assert_int_equal(set("a", "one"), RECORDS_OK);
    assert_string_equal(changes(), "a");
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .type = RECORDS_VOID, .content = BYTES("")),
                     RECORDS_NOT_FREE);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a"), .timestamp_us = 1), RECORDS_OLDER);
    assert_int_equal(lock("a", "me", 60000), RECORDS_OK);
    assert_int_equal(set("a", "two"), RECORDS_LOCKED);
    assert_int_equal(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("a"), .owner = BYTES("me")), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .lease_ms = 1000), RECORDS_OK);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .is_listened = true), RECORDS_OK);
    assert_true(found.position == position);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("b"), .timestamp_us = 5), RECORDS_NOT_FOUND);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("b"), .timestamp_us = 6), RECORDS_NOT_FOUND);
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("b"), .is_immediate = true), RECORDS_NOT_FOUND);
    struct records_command too_much = {
        .deed = RECORDS_SET, .key = BYTES("c"), .type = RECORDS_VOID, .content = BYTES("")};
    assert_int_equal(records_run(records, NS, 1, &too_much, &found), RECORDS_OUT_OF_MEMORY);
    assert_int_equal(records_run(records, BYTES("other"), 0, &too_much, &found), RECORDS_OK);
    assert_string_equal(changes(), "");
}

static void set_with_end(const char *key, const struct bytes *more, size_t more_count, int64_t ms)
{
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .more = more, .more_count = more_count,
                         .type = RECORDS_VOID, .content = BYTES(""), .expires_ms = clock_present_ms() + ms),
                     RECORDS_OK);
}

static void an_end_that_passes_is_a_change(void **state UNUSED)
{
    move_clock(0);
    assert_true(clock_follow(folder_path("clock")));
    set_with_end("a", NULL, 0, 30000);
    set_with_end("b", NULL, 0, 30000);
    assert_string_equal(changes(), "a b");
    move_clock(1);
    assert_string_equal(changes(), "a b");
    assert_string_equal(changes(), "");
    set_with_end("c", NULL, 0, 30000);
    assert_string_equal(changes(), "c");
    uint64_t before = records_changes(records);
    move_clock(2);
    records_changes_expire(records);
    assert_true(records_changes(records) != before);
    assert_string_equal(changes(), "c");
}

/* --- overtaken --- */

static void name_long(int number, size_t size, char *name_r)
{
    memset(name_r, 'x', size);
    name_r[size] = '\0';
    memcpy(name_r, &(char[]){(char)('a' + number % 26), (char)('a' + number / 26 % 26)}, 2);
}

/* More than the ring holds, in keys of all sizes, and so in all places of its end. */
static void all_keys_are_read_around_the_end(void **state UNUSED)
{
    char name[RECORDS_KEY_MOST + 1];
    struct bytes rest, key;
    uint64_t behind;
    for (int number = 0; number < 4000;) {
        int first = number;
        for (int i = 0; i < 20; i++, number++) {
            name_long(number, 2 + (size_t)(number * 37) % 200, name);
            assert_int_equal(set(name, ""), RECORDS_OK);
            if (number % 7 == 0)
                assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = bytes_of(name), .is_immediate = true),
                                 RECORDS_OK);
        }
        assert_int_equal(read_changes(), RECORDS_CHANGES_ALL);
        rest = (struct bytes){read_text.data, read_text.size};
        for (int i = first; i < number; i++)
            for (int times = i % 7 == 0 ? 2 : 1; times; times--) {
                name_long(i, 2 + (size_t)(i * 37) % 200, name);
                assert_true(records_changes_take(&rest, &key, &behind));
                assert_true(bytes_equal(key, bytes_of(name)));
            }
        assert_false(records_changes_take(&rest, &key, &behind));
        assert_true(behind == position);
    }
}

static void who_is_overtaken_learns_of_it(void **state UNUSED)
{
    uint64_t first = position;
    int kept = 0;
    for (enum records_changes_end last = RECORDS_CHANGES_ALL; last != RECORDS_CHANGES_LOST; kept++) {
        assert_int_equal(set("a", ""), RECORDS_OK);
        uint64_t before = position = first;
        assert_true(kept < 20000);
        last = read_changes();
        assert_true(last == RECORDS_CHANGES_LOST ? position == present_position() && !read_text.size
                                                 : position > before && read_text.size);
    }
    assert_true(kept > 5000); /* three quarters of 64 KiB by 8 bytes */
    int more = 0;
    first = position;
    for (position = first; more < 5000; more++)
        assert_int_equal(set("b", ""), RECORDS_OK);
    assert_int_equal(read_changes(), RECORDS_CHANGES_MORE);
    assert_int_equal(read_changes(), RECORDS_CHANGES_ALL);
    position = present_position() + 1;
    assert_int_equal(read_changes(), RECORDS_CHANGES_LOST);
}

/* A change of more keys than a quarter of the ring holds: what has expired goes with what takes its keys. */
static void a_change_too_large_for_the_ring_loses_all(void **state UNUSED)
{
    enum { OLD = RECORDS_KEYS_MOST, KEYS = RECORDS_KEYS_MOST, SWEPT = 4 };
    static char names[OLD][KEYS][RECORDS_KEY_MOST + 1];
    struct bytes more[KEYS];
    move_clock(0);
    assert_true(clock_follow(folder_path("clock")));
    for (int i = 0; i < SWEPT; i++) /* these go before the change, each in one of its own */
        set_with_end((char[]){(char)('0' + i), '\0'}, NULL, 0, 1000);
    for (int i = 0; i < OLD; i++) {
        for (int k = 0; k < KEYS; k++) {
            name_long(i * KEYS + k, RECORDS_KEY_MOST, names[i][k]);
            more[k] = bytes_of(names[i][k]);
        }
        set_with_end(names[i][0], more + 1, KEYS - 1, 30000);
        assert_int_equal(read_changes(), RECORDS_CHANGES_ALL);
    }
    uint64_t before = position;
    move_clock(1);
    for (int k = 0; k < KEYS; k++)
        more[k] = bytes_of(names[k][1]);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = more[0], .more = more + 1, .more_count = KEYS - 1,
                         .type = RECORDS_VOID, .content = BYTES("")),
                     RECORDS_OK);
    assert_int_equal(read_changes(), RECORDS_CHANGES_LOST);
    assert_true(position == present_position() && position > before);
    assert_string_equal(changes(), "");
    assert_int_equal(set("a", ""), RECORDS_OK);
    assert_string_equal(changes(), "a");
}

/* --- marks --- */

static void the_mark_of_a_key_moves_with_it(void **state UNUSED)
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("a"), .is_listened = true), RECORDS_NOT_FOUND);
    uint64_t mark = found.mark;
    assert_false(records_changes_renew(records, &mark));
    assert_int_equal(set("a", ""), RECORDS_OK);
    assert_true(records_changes_renew(records, &mark));
    assert_false(records_changes_renew(records, &mark));
}

/* --- death --- */

static void rename_over(void *argument UNUSED)
{
    run(&(struct records_command){
        .deed = RECORDS_RENAME, .key = BYTES("from"), .to = BYTES("to"), .may_overwrite = true});
}

/* A process dies before each word that it writes, in turn. */
static void a_change_is_read_exactly_if_it_has_happened(void **state UNUSED)
{
    int deaths = 0;
    for (bool is_over = false; !is_over; deaths++) {
        char list[40];
        int status = 0;
        snprintf(list, sizeof list, "records-noted:%d", deaths + 1);
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("from"), .type = RECORDS_VOID,
                             .content = BYTES(""), .may_overwrite = true),
                         RECORDS_OK);
        assert_int_equal(set("to", "in the way"), RECORDS_OK);
        position = present_position();
        uint64_t hint = records_changes(records);
        crash_arm(list, mapping_share);
        pid_t pid = child_start(rename_over, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        is_over = !WIFSIGNALED(status);
        crash_arm("", mapping_share);
        const char *read = changes();
        bool has_changed = RUN(.deed = RECORDS_GET, .key = BYTES("from")) == RECORDS_NOT_FOUND;
        assert_string_equal(read, has_changed ? "to from to" : "");
        assert_true(!has_changed || records_changes(records) != hint);
        assert_true(has_changed == is_over);
    }
    assert_true(deaths > 10);
    assert_int_equal(set("from", ""), RECORDS_OK);
    position = present_position();
    crash_arm("records-done:1", mapping_share);
    child_kill(child_start(rename_over, NULL));
    crash_arm("", mapping_share);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("from")) == RECORDS_NOT_FOUND,
                     strcmp(changes(), "to from to") == 0);
}

/* --- nothing is missed: a copy that is kept by what is read --- */

enum { COPY_KEYS = 40, CROWD = 3 };

static void name_of(int number, char name_r[16])
{
    snprintf(name_r, 16, "key%02d", number);
}

static void churn(void *argument)
{
    unsigned seed = (unsigned)*(int *)argument + 1;
    for (;;) {
        char key[16], to[16], text[64];
        name_of(rand_r(&seed) % COPY_KEYS, key);
        name_of(rand_r(&seed) % COPY_KEYS, to);
        snprintf(text, sizeof text, "%d %.*s", rand_r(&seed), rand_r(&seed) % 40,
                 "........................................");
        struct records_command command = {.deed = RECORDS_RENAME,
                                          .key = bytes_of(key),
                                          .to = bytes_of(to),
                                          .may_overwrite = true,
                                          .is_immediate = rand_r(&seed) % 2};
        int deed = rand_r(&seed) % 4;
        if (deed < 2)
            DEMAND(set(key, text) != RECORDS_BUSY);
        else {
            command.deed = deed == 2 ? RECORDS_RENAME : RECORDS_DELETE;
            DEMAND(run(&command) != RECORDS_BUSY);
        }
    }
}

struct copy {
    bool is_there;
    char text[64];
};

static void fetch(struct copy *copy, const char *key)
{
    copy->is_there = RUN(.deed = RECORDS_GET, .key = bytes_of(key)) == RECORDS_OK;
    copy->text[0] = '\0';
    if (copy->is_there)
        snprintf(copy->text, sizeof copy->text, "%.*s", (int)found.content.size, found.content.data);
}

static void fetch_number(struct copy *copies, int number)
{
    char key[16];
    name_of(number, key);
    fetch(&copies[number], key);
}

/* Until all is read. */
static void follow(struct copy *copies)
{
    enum records_changes_end last;
    do {
        struct bytes rest, key;
        uint64_t behind;
        last = read_changes();
        assert_int_not_equal(last, RECORDS_CHANGES_BUSY);
        for (int i = 0; i < COPY_KEYS && last == RECORDS_CHANGES_LOST; i++)
            fetch_number(copies, i);
        for (rest = (struct bytes){read_text.data, read_text.size};
             records_changes_take(&rest, &key, &behind);)
            fetch_number(copies, (key.data[3] - '0') * 10 + key.data[4] - '0');
    } while (last != RECORDS_CHANGES_ALL);
}

static void nothing_is_missed_whoever_is_killed(void **state UNUSED)
{
    enum { ROUNDS = 20, KILLS = 4 };
    struct copy copies[COPY_KEYS] = {0}, present;
    unsigned seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[CROWD];
        uint64_t changed = records_changes(records);
        for (int i = 0; i < CROWD; i++)
            pids[i] = child_start(churn, &(int){round * 100 + i});
        for (int i = 0; i < KILLS; i++) {
            int one = rand_r(&seed) % CROWD;
            while (records_changes(records) < changed + 50)
                follow(copies);
            changed = records_changes(records);
            child_kill(pids[one]);
            pids[one] = child_start(churn, &(int){round * 100 + CROWD + i});
        }
        for (int i = 0; i < CROWD; i++)
            child_kill(pids[i]);
        follow(copies);
        for (int i = 0; i < COPY_KEYS; i++) {
            char key[16];
            name_of(i, key);
            fetch(&present, key);
            assert_int_equal(copies[i].is_there, present.is_there);
            assert_string_equal(copies[i].text, present.text);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_change_is_read_once),
        TEST(what_changes_nothing_is_not_read),
        TEST(all_keys_are_read_around_the_end),
        TEST(who_is_overtaken_learns_of_it),
        TEST(the_mark_of_a_key_moves_with_it),
        TEST(a_change_is_read_exactly_if_it_has_happened),
        TEST(nothing_is_missed_whoever_is_killed),
        /* These move the clock, for the rest of the process. */
        TEST(an_end_that_passes_is_a_change),
        TEST(a_change_too_large_for_the_ring_loses_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
