/* test_disk_table: texts by key on disk, of several processes. */
#include "disk_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "edge/mapping.h"

static void what_was_committed_is_got(void **state UNUSED)
{
    expect("key", NULL);
    put("key", BYTES("one"));
    put("void", BYTES(""));
    expect("key", "one");
    expect("void", ""); /* behind what the builder had */
    assert_int_equal(text.size, 3);
    put("key", BYTES("two"));
    put("void", NO_BYTES);
    put("void", NO_BYTES);
    for (int i = 0; i < 2; i++) {
        expect("key", "two");
        expect("void", NULL);
        reopen();
    }
}

static void a_change_under_way_is_not_seen(void **state UNUSED)
{
    put("key", BYTES("one"));
    for (int is_committed = 0; is_committed < 2; is_committed++) {
        assert_null(disk_table_begin(disk));
        assert_null(disk_table_put(disk, BYTES("key"), BYTES("two")));
        assert_null(disk_table_put(disk, BYTES("other"), BYTES("three")));
        expect("key", "one");
        expect("other", NULL);
        if (is_committed)
            assert_null(disk_table_commit(disk));
        else
            disk_table_abandon(disk);
        expect("key", is_committed ? "two" : "one");
        expect("other", is_committed ? "three" : NULL);
    }
}

static void sizes_are_bounded(void **state UNUSED)
{
    static char key[DISK_TABLE_KEY_MOST + 2];
    memset(key, 'k', DISK_TABLE_KEY_MOST + 1);
    assert_null(disk_table_begin(disk));
    assert_non_null(disk_table_put(disk, bytes_of(key), BYTES("x")));
    disk_table_abandon(disk);
    assert_null(disk_table_begin(disk));
    assert_non_null(disk_table_put(disk, BYTES("e"), BYTES("x"))); /* the table's own */
    disk_table_abandon(disk);
    key[DISK_TABLE_KEY_MOST] = 0;
    put(key, BYTES("x"));
    put("ee", BYTES("y"));
    reopen();
    expect(key, "x");
    expect("ee", "y");
}

/* --- each --- */

static int seen_a, seen_b, seen_others;

static enum disk_table_next take(void *context, struct bytes key UNUSED, struct bytes one)
{
    seen_a += bytes_equal(one, BYTES("a"));
    seen_b += bytes_equal(one, BYTES("b"));
    seen_others += !bytes_equal(one, BYTES("a")) && !bytes_equal(one, BYTES("b"));
    return bytes_equal(one, bytes_of(context)) ? DISK_TABLE_REMOVE : DISK_TABLE_KEEP;
}

static void see(const char *removed)
{
    seen_a = seen_b = seen_others = 0;
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_each(disk, take, (void *)(uintptr_t)removed));
    assert_null(disk_table_commit(disk));
}

static void each_has_what_is_in_the_log(void **state UNUSED)
{
    put("key a", BYTES("a"));
    put("key b", BYTES("former"));
    put("key c", BYTES("gone"));
    see("");
    assert_int_equal(seen_a, 1);
    assert_int_equal(seen_others, 2);
    put("key b", BYTES("b"));
    put("key c", NO_BYTES);
    see("b");
    assert_int_equal(seen_a, 1);
    assert_int_equal(seen_b, 1);
    assert_int_equal(seen_others, 0);
    expect("key b", NULL);
    see("");
    assert_int_equal(seen_a + seen_b + seen_others, 1);
}

/* --- other processes --- */

static void put_as_other(void *content)
{
    open_table();
    put("key", bytes_of(content));
}

static void another_process_is_seen_at_once(void **state UNUSED)
{
    char one[] = "one", two[] = "two";
    child_expect(child_start(put_as_other, one));
    expect("key", "one");
    child_expect(child_start(put_as_other, two));
    expect("key", "two");
    put("key", BYTES("three"));
    expect("key", "three");
}

enum { CROWD = 4, ROUNDS = 300, OWN_KEYS = 7, LONG = 3000 };

struct board {
    volatile int done[CROWD][OWN_KEYS];
};
static struct board *board;

static void name(char key_r[32], int own, int place)
{
    snprintf(key_r, 32, "key %d.%d", own, place);
}

/* The number that a text is of; each repeats its own all along. */
static int number_of(struct bytes one)
{
    char own[32] = "";
    int number = 0, size = 0;
    if (one.size)
        memcpy(own, one.data, one.size < 8 ? one.size : 8);
    DEMAND(sscanf(own, "%d %n", &number, &size) == 1);
    for (size_t i = 0; i < one.size; i++)
        DEMAND(one.data[i] == own[i % (size_t)size]);
    return number;
}

static struct bytes text_of(int number, char text_r[LONG])
{
    char own[32];
    size_t size = (size_t)snprintf(own, sizeof own, "%d ", number);
    size_t count = (size_t)(100 + number * 37 % 2000) / size;
    for (size_t i = 0; i < count * size; i++)
        text_r[i] = own[i % size];
    return (struct bytes){text_r, count * size};
}

/* Puts its keys, and reads those of the others: never older than they were when it began to read. */
static void put_and_read(void *argument)
{
    int own = *(int *)argument;
    unsigned seed = (unsigned)own;
    open_table();
    for (int number = 1; number <= ROUNDS; number++) {
        static char content[LONG];
        char key[32];
        int place = number % OWN_KEYS, other = rand_r(&seed) % CROWD, other_place = rand_r(&seed) % OWN_KEYS;
        name(key, own, place);
        put(key, text_of(number, content));
        board->done[own][place] = number;
        int least = board->done[other][other_place];
        name(key, other, other_place);
        text.size = 0;
        bool is_there = get(key);
        DEMAND(is_there || !least);
        DEMAND(!is_there || number_of(builder_bytes(&text)) >= least);
    }
    disk_table_close(disk);
}

static void check_board(void)
{
    for (int own = 0; own < CROWD; own++)
        for (int place = 0; place < OWN_KEYS; place++) {
            char key[32];
            name(key, own, place);
            text.size = 0;
            bool is_there = get(key);
            assert_int_equal(is_there ? number_of(builder_bytes(&text)) : 0, board->done[own][place]);
        }
}

/* The log is emptied several times meanwhile, under those who read. */
static void a_crowd_reads_what_is_newest(void **state UNUSED)
{
    board = mapping_share(sizeof *board);
    disk_log_system.sync = sync_nothing; /* nothing is lost here */
    child_crowd(CROWD, put_and_read);
    assert_int_equal(board->done[0][ROUNDS % OWN_KEYS], ROUNDS);
    check_board();
    reopen();
    check_board();
}

/* --- the log is emptied --- */

static void a_change_that_is_larger_than_the_log_is_put(void **state UNUSED)
{
    static char large[1 << 20];
    memset(large, 'l', sizeof large);
    put("before", BYTES("one"));
    put("large", (struct bytes){large, sizeof large});
    put("after", BYTES("two"));
    for (int i = 0; i < 2; i++) {
        expect("before", "one");
        expect("after", "two");
        text.size = 0;
        assert_true(get("large"));
        assert_int_equal(text.size, sizeof large);
        reopen();
    }
}

/* Has LMDB written since this was called last? */
static bool is_table_written(void)
{
    static const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    struct stat stat_;
    assert_int_equal(stat(folder_path("disk/data.mdb"), &stat_), 0);
    assert_int_equal(utimensat(AT_FDCWD, folder_path("disk/data.mdb"), long_ago, 0), 0);
    return stat_.st_mtim.tv_sec != 1;
}

static void the_table_is_written_when_the_log_is_full(void **state UNUSED)
{
    static char content[1000];
    disk_log_system.sync = sync_nothing;
    memset(content, 'c', sizeof content);
    assert_true(is_table_written());
    for (size_t i = 0; i < 100; i++)
        put("key", (struct bytes){content, i + 1});
    assert_false(is_table_written());
    for (size_t i = 0; i < 2000; i++)
        put("key", (struct bytes){content, i % 1000 + 1});
    assert_true(is_table_written());
    reopen();
    text.size = 0;
    assert_true(get("key"));
    assert_int_equal(text.size, 1000);
}

/* What is acknowledged has room in the table, also when all of it is in the log at first. */
static void the_room_of_the_table_is_kept(void **state UNUSED)
{
    static char content[20000];
    char key[32];
    int count = 0;
    const char *error = NULL;
    memset(content, 'c', sizeof content);
    disk_log_system.sync = sync_nothing;
    disk_table_close(disk);
    table_bytes = 3 << 19;
    folder_remove();
    folder_make();
    open_table();
    for (; !error && count < 200; count++) {
        snprintf(key, sizeof key, "key %d", count);
        error = try_put(key, (struct bytes){content, sizeof content});
    }
    assert_string_equal(error, "its room is used up");
    expect(key, NULL);
    assert_true(count > 30);
    put("key 0", NO_BYTES); /* makes room */
    put("key 1", NO_BYTES);
    put("key 2", BYTES("small"));
    for (int i = 0; i < 2; i++) {
        see("");
        assert_int_equal(seen_others, count - 3);
        expect("key 0", NULL);
        expect("key 2", "small");
        reopen();
    }
}

/* --- folders of former versions, and what does not belong together --- */

/* As before there was a log. */
static void a_table_without_a_log_is_opened(void **state UNUSED)
{
    MDB_env *env;
    MDB_txn *change;
    MDB_dbi table;
    MDB_val key = {8, (char[]){"an old 1"}}, value = {7, (char[]){"content"}};
    disk_table_close(disk);
    folder_remove();
    folder_make();
    assert_int_equal(mkdir(folder_path("disk"), 0700), 0);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, folder_path("disk"), MDB_NOTLS, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &change), 0);
    assert_int_equal(mdb_dbi_open(change, NULL, 0, &table), 0);
    assert_int_equal(mdb_put(change, table, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(change), 0);
    mdb_env_close(env);
    open_table();
    expect("an old 1", "content");
    put("new", BYTES("one"));
    reopen();
    expect("an old 1", "content");
    expect("new", "one");
    see("");
    assert_int_equal(seen_others, 2);
}

static void move(const char *from, const char *to)
{
    char former[300];
    snprintf(former, sizeof former, "%s", folder_path(from));
    assert_int_equal(rename(former, folder_path(to)), 0);
}

/* The table of an earlier copy beside a later log, and the log of another table. */
static void a_log_of_another_table_is_refused(void **state UNUSED)
{
    put("key", BYTES("one"));
    see("");
    put("key", BYTES("two"));
    disk_table_close(disk);
    move("disk", "later");
    open_table();
    put("key", BYTES("other"));
    disk_table_close(disk);
    move("disk/log", "log of the other");
    move("later/log", "disk/log");
    assert_false(try_open());
    assert_non_null(strstr(problem, "not of one copy"));
    move("disk/log", "later/log");
    move("disk", "former");
    move("later", "disk");
    open_table();
    expect("key", "two");
    disk_table_close(disk);
    move("disk/log", "later log");
    move("log of the other", "disk/log"); /* of a former epoch: nothing that the table does not have */
    open_table();
    expect("key", "one");
}

/* Live: first the log, then the table, as mdb_copy does it; changes go on in between. */
static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 16];
    int in = open(folder_path(from), O_RDONLY),
        out = open(folder_path(to), O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t size; (size = read(in, bytes, sizeof bytes)) > 0;)
        assert_int_equal(write(out, bytes, (size_t)size), size);
    close(in);
    close(out);
}

static void a_copy_has_what_was_acknowledged_before_it(void **state UNUSED)
{
    for (int is_emptied = 0; is_emptied < 2; is_emptied++) {
        put("key", BYTES("one"));
        put("other", BYTES("two"));
        assert_int_equal(mkdir(folder_path("copy"), 0700), 0);
        copy_file("disk/log", "copy/log");
        put("later", BYTES("three"));
        if (is_emptied)
            see("");
        copy_file("disk/data.mdb", "copy/data.mdb"); /* nobody writes to it now */
        disk_table_close(disk);
        move("disk", is_emptied ? "former 1" : "former 0");
        move("copy", "disk");
        open_table();
        expect("key", "one");
        expect("other", "two");
        expect("later", is_emptied ? "three" : NULL);
    }
}

/* --- a system that fails --- */

static int error_of_system;

static ssize_t write_with_error(int fd UNUSED, const void *data UNUSED, size_t size UNUSED, off_t at UNUSED)
{
    errno = error_of_system;
    return -1;
}

static int sync_with_error(int fd UNUSED)
{
    errno = error_of_system;
    return -1;
}

static void what_the_disk_refuses_is_not_there(void **state UNUSED)
{
    static const int errors[] = {ENOSPC, EIO, EDQUOT};
    for (size_t i = 0; i < COUNT_OF(errors) * 2; i++) {
        put("key", BYTES("before"));
        error_of_system = errors[i / 2];
        disk_log_system.write = i % 2 ? sound.write : write_with_error;
        disk_log_system.sync = i % 2 ? sync_with_error : sound.sync;
        assert_string_equal(try_put("key", BYTES("refused")), strerror(error_of_system));
        expect("key", "before");
        disk_log_system = sound;
        if (i / 2 == 1)
            reopen();
        expect("key", "before");
        char other[] = "of another";
        if (i / 2 == 2) {
            child_expect(child_start(put_as_other, other));
            expect("key", "of another");
        }
        put("key", BYTES("after"));
        expect("key", "after");
        reopen();
        expect("key", "after");
    }
}

/* Neither the log nor the table can be written: as often as it is tried. */
static void a_broken_log_waits_for_the_table(void **state UNUSED)
{
    static const int flag[] = {0, O_DSYNC};
    put("key", BYTES("before"));
    for (size_t i = 0; i < COUNT_OF(flag);
         i++) { /* LMDB writes pages by one descriptor, and its root by another */
        char path[300], link[64], target[300];
        int former = -1, place = -1;
        snprintf(path, sizeof path, "%s", folder_path("disk/data.mdb"));
        for (int fd = 3; fd < 64 && place < 0; fd++) {
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            ssize_t size = readlink(link, target, sizeof target - 1);
            target[size < 0 ? 0 : size] = 0;
            if (strcmp(target, path) == 0 && (fcntl(fd, F_GETFL) & O_DSYNC) == flag[i])
                place = fd;
        }
        assert_true(place >= 0);
        former = dup(place);
        int unwritable = open(path, O_RDONLY);
        assert_true(former >= 0 && unwritable >= 0);
        error_of_system = EIO;
        disk_log_system.sync = sync_with_error;
        assert_string_equal(try_put("key", BYTES("refused")), strerror(EIO));
        disk_log_system = sound;
        assert_true(dup2(unwritable, place) == place);
        assert_non_null(try_put("key", BYTES("refused"))); /* by the table */
        expect("key", "before");
        if (i == 0)
            assert_true(dup2(former, place) == place); /* else LMDB is opened again */
        close(former);
        close(unwritable);
        put("key", BYTES("after"));
        expect("key", "after");
        put("key", BYTES("before"));
        reopen();
        expect("key", "before");
    }
}

/* Without room for a log all goes to the table, until another process makes one. */
static void without_a_log_the_table_is_written(void **state UNUSED)
{
    disk_table_close(disk);
    folder_remove();
    folder_make();
    error_of_system = ENOSPC;
    disk_log_system.write = write_with_error;
    open_table();
    put("key", BYTES("one"));
    expect("key", "one");
    assert_int_equal(access(folder_path("disk/log"), F_OK), -1);
    disk_log_system = sound;
    char two[] = "two";
    child_expect(child_start(put_as_other, two));
    assert_int_equal(access(folder_path("disk/log"), F_OK), 0);
    expect("key", "two");
    put("key", BYTES("three"));
    expect("key", "three");
    reopen();
    expect("key", "three");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_is_got),
        TEST(a_change_under_way_is_not_seen),
        TEST(sizes_are_bounded),
        TEST(each_has_what_is_in_the_log),
        TEST(another_process_is_seen_at_once),
        TEST(a_crowd_reads_what_is_newest),
        TEST(a_change_that_is_larger_than_the_log_is_put),
        TEST(the_table_is_written_when_the_log_is_full),
        TEST(the_room_of_the_table_is_kept),
        TEST(a_table_without_a_log_is_opened),
        TEST(a_log_of_another_table_is_refused),
        TEST(a_copy_has_what_was_acknowledged_before_it),
        TEST(what_the_disk_refuses_is_not_there),
        TEST(a_broken_log_waits_for_the_table),
        TEST(without_a_log_the_table_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
