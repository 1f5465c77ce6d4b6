/* test_disk_log: the sums, the entries of a change, and the log itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/coding/crc32c.h"
#include "child.h"
#include "log/disk_entries.h"
#include "log/disk_log.h"

/* --- the sums --- */

static void sums_are_those_of_the_standard(void **state UNUSED)
{
    static const char zeros[32];
    const struct bytes digits = BYTES("123456789"), zero = {zeros, sizeof zeros};
    assert_int_equal(crc32c(0, digits), 0xe3069283);
    assert_int_equal(crc32c_portable(0, digits), 0xe3069283);
    assert_int_equal(crc32c(0, zero), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(crc32c_portable(0, zero), 0x8a9136aa);
    assert_int_equal(crc32c(0, BYTES("")), 0);
}

/* At any alignment, of any size, and continued. */
static void the_instruction_sums_as_the_tables(void **state UNUSED)
{
    char text[300];
    unsigned seed = 5;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)rand_r(&seed);
    for (size_t at = 0; at < 9; at++)
        for (size_t size = 0; at + size <= sizeof text; size++) {
            uint32_t crc = (uint32_t)rand_r(&seed);
            struct bytes part = {text + at, size}, first = {text + at, size / 3},
                         second = {text + at + size / 3, size - size / 3};
            assert_int_equal(crc32c(crc, part), crc32c_portable(crc, part));
            assert_int_equal(crc32c(crc32c(crc, first), second), crc32c(crc, part));
        }
}

/* --- entries --- */

static void write_entry(struct builder *change, const char *key, struct bytes text)
{
    const struct disk_entry entry = {bytes_of(key), text};
    disk_entries_write(change, &entry);
}

static void a_key_has_its_last_entry(void **state UNUSED)
{
    const struct siphash_key hash = {{1, 2}};
    struct builder log = {0};
    struct disk_entry entry;
    builder_add_text(&log, "head"); /* no entry begins at 0 */
    write_entry(&log, "a", BYTES("one"));
    write_entry(&log, "b", BYTES(""));
    write_entry(&log, "a", BYTES("two"));
    size_t second = log.size;
    write_entry(&log, "b", NO_BYTES);
    struct disk_entries *entries = disk_entries_create(builder_bytes(&log));
    disk_entries_clear(entries, &hash);
    assert_true(disk_entries_add(entries, (struct bytes){log.data + 4, second - 4}));
    assert_int_equal(disk_entries_count(entries), 2);
    assert_true(disk_entries_find(entries, BYTES("a"), &entry));
    assert_true(bytes_equal(entry.text, BYTES("two")));
    assert_true(disk_entries_find(entries, BYTES("b"), &entry));
    assert_non_null(entry.text.data);
    assert_int_equal(entry.text.size, 0);
    assert_true(disk_entries_add(entries, (struct bytes){log.data + second, log.size - second}));
    assert_true(disk_entries_find(entries, BYTES("b"), &entry));
    assert_null(entry.text.data);
    assert_false(disk_entries_find(entries, BYTES("c"), &entry));
    disk_entries_clear(entries, &hash);
    assert_int_equal(disk_entries_count(entries), 0);
    assert_false(disk_entries_find(entries, BYTES("a"), &entry));
    disk_entries_destroy(entries);
    builder_free(&log);
}

static void many_keys_are_found(void **state UNUSED)
{
    enum { MANY = 5000 };
    const struct siphash_key hash = {{3, 4}};
    struct builder log = {0};
    struct disk_entry entry;
    char key[16];
    builder_add_text(&log, "head");
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(key, sizeof key, "%d", i % MANY);
        write_entry(&log, key, i < MANY ? BYTES("former") : bytes_of(key));
    }
    struct disk_entries *entries = disk_entries_create(builder_bytes(&log));
    disk_entries_clear(entries, &hash);
    assert_true(disk_entries_add(entries, (struct bytes){log.data + 4, log.size - 4}));
    assert_int_equal(disk_entries_count(entries), MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_true(disk_entries_find(entries, bytes_of(key), &entry));
        assert_true(bytes_equal(entry.text, bytes_of(key)));
    }
    size_t place = 0;
    int64_t sum = 0;
    for (int64_t number; disk_entries_next(entries, &place, &entry); sum += number)
        assert_true(bytes_to_i64(entry.text, &number));
    assert_int_equal(sum, (int64_t)MANY * (MANY - 1) / 2);
    disk_entries_destroy(entries);
    builder_free(&log);
}

static void a_malformed_entry_is_refused(void **state UNUSED)
{
    struct builder change = {0};
    struct disk_entry entry;
    write_entry(&change, "key", BYTES("text"));
    for (size_t size = 0; size < change.size; size++) {
        char *cut = malloc(size + 1); /* the sanitizer sees what is read beyond it */
        memcpy(cut, change.data, size);
        struct bytes rest = {cut, size};
        cut = realloc(cut, size ? size : 1);
        rest.data = cut;
        assert_false(disk_entries_cut(&rest, &entry));
        free(cut);
    }
    struct bytes whole = builder_bytes(&change);
    assert_true(disk_entries_cut(&whole, &entry));
    assert_int_equal(whole.size, 0);
    memset(change.data, 0, 4); /* no key */
    whole = builder_bytes(&change);
    assert_false(disk_entries_cut(&whole, &entry));
    builder_free(&change);
}

/* --- the log --- */

enum { ROOM = 60000 };

static const struct disk_epoch first_epoch = {1, 77}, next_epoch = {2, 78};
static struct disk_log *log_, *other;

static struct disk_log *open_log(struct disk_epoch epoch)
{
    char problem[300] = "";
    struct disk_log *opened = NULL;
    if (disk_log_open(&opened, folder_path(""), problem, sizeof problem) != DISK_LOG_OPENED)
        fail_msg("%s", problem);
    disk_log_begin(opened, epoch);
    return opened;
}

static int set_up(void **state UNUSED)
{
    folder_make();
    assert_true(disk_log_create(folder_path(""), ROOM));
    log_ = open_log(first_epoch);
    other = open_log(first_epoch);
    return 0;
}

static struct disk_log_system sound;

static int tear_down(void **state UNUSED)
{
    disk_log_system = sound;
    disk_log_close(log_);
    disk_log_close(other);
    folder_remove();
    return 0;
}

static void append(struct disk_log *log, const char *text)
{
    struct bytes change;
    const char *error = disk_log_append(log, bytes_of(text), &change);
    if (error)
        fail_msg("%s: %s", text, error);
    assert_true(bytes_equal(change, bytes_of(text)));
}

static void expect_next(struct disk_log *log, const char *text)
{
    struct bytes change;
    assert_int_equal(disk_log_next(log, &change), text ? DISK_LOG_CHANGE : DISK_LOG_END);
    if (text && !bytes_equal(change, bytes_of(text)))
        fail_msg("read %.*s, expected %s", (int)change.size, change.data, text);
}

static void changes_are_read_in_their_order(void **state UNUSED)
{
    expect_next(log_, NULL);
    append(log_, "one");
    append(log_, "two, which is longer than a head of a change is");
    expect_next(other, "one");
    expect_next(other, "two, which is longer than a head of a change is");
    expect_next(other, NULL);
    append(other, "three"); /* one writes after the other */
    expect_next(log_, "three");
    expect_next(log_, NULL);
    assert_true(disk_log_is_same(log_) && disk_log_is_same(other));
}

static void a_new_epoch_begins_at_the_front(void **state UNUSED)
{
    append(log_, "one");
    append(log_, "two");
    expect_next(other, "one");
    disk_log_begin(log_, next_epoch);
    expect_next(log_, NULL);
    append(log_, "new");
    assert_false(disk_log_is_same(other)); /* it must look up the epoch */
    expect_next(other, "two");             /* as long as it does not */
    disk_log_begin(other, next_epoch);
    expect_next(other, "new");
    expect_next(other, NULL); /* `two` is of another epoch */
    assert_true(disk_log_is_foreign(log_, first_epoch));
    assert_false(disk_log_is_foreign(log_, next_epoch));
    assert_false(disk_log_is_foreign(log_, (struct disk_epoch){3, 1}));
    assert_true(disk_log_is_foreign(log_, (struct disk_epoch){2, 1}));
}

static void the_room_ends(void **state UNUSED)
{
    static char text[1001];
    int count = 0;
    memset(text, 'x', 1000);
    for (; disk_log_has_room(log_, 1000); count++)
        append(log_, text);
    assert_true(count > ROOM / 1100 && count < (ROOM + (2 << 16)) / 1000);
    assert_false(disk_log_has_room(log_, SIZE_MAX));
    for (int i = 0; i < count; i++)
        expect_next(other, text);
    expect_next(other, NULL);
    disk_log_break(log_); /* has its place */
    struct bytes change;
    assert_int_equal(disk_log_next(other, &change), DISK_LOG_BROKEN);
}

/* --- a system that fails --- */

static int error_of_sync, bytes_until_full;

static ssize_t write_until_full(int fd, const void *data, size_t size, off_t at)
{
    if (!bytes_until_full) {
        errno = ENOSPC;
        return -1;
    }
    size_t part = size < (size_t)bytes_until_full ? size : (size_t)bytes_until_full;
    bytes_until_full -= (int)part;
    return pwrite(fd, data, part, at);
}

static int sync_with_error(int fd UNUSED)
{
    errno = error_of_sync;
    return -1;
}

static void a_full_disk_changes_nothing(void **state UNUSED)
{
    struct bytes change;
    append(log_, "before");
    expect_next(other, "before");
    for (bytes_until_full = 0; bytes_until_full < 45;) {
        int bytes = bytes_until_full;
        disk_log_system.write = write_until_full;
        assert_string_equal(disk_log_append(log_, BYTES("refused"), &change), strerror(ENOSPC));
        disk_log_system = sound;
        expect_next(other, NULL);
        expect_next(log_, NULL);
        bytes_until_full = bytes + 1;
    }
    append(log_, "after");
    expect_next(other, "after");
    expect_next(other, NULL);
}

/* What was written may not be on disk, and never will be: nothing may stand behind it. */
static void a_failed_sync_breaks_the_log(void **state UNUSED)
{
    struct bytes change;
    append(log_, "before");
    disk_log_system.sync = sync_with_error;
    error_of_sync = EIO;
    assert_string_equal(disk_log_append(log_, BYTES("refused"), &change), strerror(EIO));
    disk_log_system = sound;
    assert_int_equal(disk_log_next(log_, &change), DISK_LOG_BROKEN);
    expect_next(other, "before");
    assert_int_equal(disk_log_next(other, &change), DISK_LOG_BROKEN);
    disk_log_close(other);
    other = open_log(first_epoch);
    expect_next(other, "before");
    assert_int_equal(disk_log_next(other, &change), DISK_LOG_BROKEN);
    disk_log_begin(log_, next_epoch);
    append(log_, "new");
}

/* A process that has read the change before its sync has failed reads again. */
static int sync_with_a_reader(int fd)
{
    expect_next(other, "refused");
    assert_true(disk_log_is_same(other));
    return sync_with_error(fd);
}

static void what_was_taken_back_is_noticed(void **state UNUSED)
{
    struct bytes change;
    disk_log_system.sync = sync_with_a_reader;
    assert_non_null(disk_log_append(log_, BYTES("refused"), &change));
    assert_false(disk_log_is_same(other));
    disk_log_begin(other, first_epoch);
    assert_int_equal(disk_log_next(other, &change), DISK_LOG_BROKEN);
}

/* --- files that are no log of ours --- */

static void expect_refusal(const char *words)
{
    char problem[300] = "";
    struct disk_log *opened;
    assert_int_equal(disk_log_open(&opened, folder_path(""), problem, sizeof problem), DISK_LOG_REFUSED);
    if (!strstr(problem, words))
        fail_msg("%s, expected: %s", problem, words);
}

static void another_layout_is_refused(void **state UNUSED)
{
    char path[300];
    uint32_t block[4];
    snprintf(path, sizeof path, "%s", folder_path("log"));
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, block, sizeof block, 0), sizeof block);
    block[2]++;
    assert_int_equal(pwrite(fd, block, sizeof block, 0), sizeof block);
    expect_refusal("damaged");
    block[3] = crc32c(0, (struct bytes){(char *)block, 12});
    assert_int_equal(pwrite(fd, block, sizeof block, 0), sizeof block);
    expect_refusal("another layout");
    assert_int_equal(ftruncate(fd, 4096), 0);
    expect_refusal("cut");
    close(fd);
}

static void a_log_that_cannot_be_made_is_not_there(void **state UNUSED)
{
    char problem[300] = "";
    struct disk_log *opened;
    disk_log_close(log_);
    disk_log_close(other);
    log_ = other = NULL;
    assert_int_equal(unlink(folder_path("log")), 0);
    assert_int_equal(disk_log_open(&opened, folder_path(""), problem, sizeof problem), DISK_LOG_ABSENT);
    disk_log_system.write = write_until_full;
    bytes_until_full = ROOM / 2;
    assert_false(disk_log_create(folder_path(""), ROOM));
    assert_int_equal(errno, ENOSPC);
    disk_log_system = sound;
    assert_int_equal(disk_log_open(&opened, folder_path(""), problem, sizeof problem), DISK_LOG_ABSENT);
    assert_int_equal(access(folder_path("log.new"), F_OK), -1);
    assert_true(disk_log_create(folder_path(""), ROOM));
    log_ = open_log(first_epoch);
    append(log_, "one");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        cmocka_unit_test(the_instruction_sums_as_the_tables),
        cmocka_unit_test(a_key_has_its_last_entry),
        cmocka_unit_test(many_keys_are_found),
        cmocka_unit_test(a_malformed_entry_is_refused),
        TEST(changes_are_read_in_their_order),
        TEST(a_new_epoch_begins_at_the_front),
        TEST(the_room_ends),
        TEST(a_full_disk_changes_nothing),
        TEST(a_failed_sync_breaks_the_log),
        TEST(what_was_taken_back_is_noticed),
        TEST(another_layout_is_refused),
        TEST(a_log_that_cannot_be_made_is_not_there),
    };
    sound = disk_log_system;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
