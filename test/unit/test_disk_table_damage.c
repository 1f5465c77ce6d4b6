/* test_disk_table_damage: a table on disk whose writers die at each step, whose log is cut at each byte, and
 * whose bits are flipped. */
#include "disk_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "edge/mapping.h"

static int cases; /* of the matrix in doc/explanation/reliability.md */

/* --- files --- */

struct image {
    char *data;
    size_t size;
};

static struct image log_image, table_image;

static struct image read_image(const char *path)
{
    struct image image;
    int fd = open(folder_path(path), O_RDONLY);
    assert_true(fd >= 0);
    image.size = (size_t)lseek(fd, 0, SEEK_END);
    image.data = malloc(image.size);
    assert_int_equal(pread(fd, image.data, image.size, 0), image.size);
    close(fd);
    return image;
}

static void write_image(const char *path, const struct image *image, size_t size)
{
    int fd = open(folder_path(path), O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, image->data, size, 0), size);
    close(fd);
}

/* --- a log of a few changes --- */

enum { FIRST = 4096, CHANGES = 6 };

static size_t ends[CHANGES + 1]; /* behind each change; the first: before all */
static int errors_logged;

static void count_errors(enum log_level level, const char *line UNUSED, size_t size UNUSED)
{
    errors_logged += level == LOG_LEVEL_ERROR;
}

/* Of each change a key of its own, and one that all change. */
static void put_change(int number)
{
    char key[16], content[64];
    snprintf(key, sizeof key, "key %d", number);
    snprintf(content, sizeof content, "%d, %.*s", number, number * 3, "...................");
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_put(disk, bytes_of(key), bytes_of(content)));
    assert_null(disk_table_put(disk, BYTES("of all"), bytes_of(content)));
    assert_null(disk_table_commit(disk));
}

/* Which are there, a bit for each; each whole or not at all, in both keys. */
static unsigned changes_there(void)
{
    unsigned there = 0;
    int last = 0;
    char newest[64] = "";
    for (int number = 1; number <= CHANGES; number++) {
        char key[16], content[64];
        snprintf(key, sizeof key, "key %d", number);
        snprintf(content, sizeof content, "%d, %.*s", number, number * 3, "...................");
        text.size = 0;
        if (!get(key))
            continue;
        assert_true(bytes_equal(builder_bytes(&text), bytes_of(content)));
        there |= 1u << number;
        last = number;
        snprintf(newest, sizeof newest, "%s", content);
    }
    expect("of all", last ? newest : NULL);
    return there;
}

static size_t end_of_log(void)
{
    struct image image = read_image("disk/log");
    size_t end = image.size;
    while (end > FIRST && !image.data[end - 1])
        end--;
    free(image.data);
    return end;
}

static int set_up_changes(void **state)
{
    set_up(state);
    log_set_listener(count_errors);
    disk_log_system.sync = sync_nothing;
    ends[0] = FIRST;
    for (int number = 1; number <= CHANGES; number++) {
        put_change(number);
        ends[number] = end_of_log();
    }
    disk_table_close(disk);
    disk = NULL;
    log_image = read_image("disk/log");
    table_image = read_image("disk/data.mdb");
    return 0;
}

static int tear_down_changes(void **state)
{
    log_set_listener(NULL);
    free(log_image.data);
    free(table_image.data);
    return tear_down(state);
}

/* As it was, but for what is done to the log. */
static void put_back(void)
{
    disk_table_close(disk);
    disk = NULL;
    write_image("disk/data.mdb", &table_image, table_image.size);
    write_image("disk/log", &log_image, log_image.size);
    unlink(folder_path("disk/lock.mdb"));
    errors_logged = 0;
}

/* It goes on, and what it appends is there when it is opened again. */
static void go_on(unsigned there)
{
    put("key 9", BYTES("more"));
    reopen();
    expect("key 9", "more");
    assert_int_equal(changes_there(), there);
    cases++;
}

/* All changes up to this one. */
static unsigned up_to(int number)
{
    return (2u << number) - 2;
}

static int changes_before(size_t end)
{
    int number = 0;
    while (number < CHANGES && ends[number + 1] <= end)
        number++;
    return number;
}

static void overwrite(size_t at, int byte)
{
    int fd = open(folder_path("disk/log"), O_WRONLY);
    static char bytes[1 << 20];
    memset(bytes, byte, log_image.size - at);
    assert_int_equal(pwrite(fd, bytes, log_image.size - at, (off_t)at), log_image.size - at);
    close(fd);
}

/* A write that was cut: behind it stands what was there before, zeros or another epoch. */
static void a_cut_costs_what_was_cut(void **state UNUSED)
{
    for (size_t end = ends[CHANGES - 3]; end <= ends[CHANGES]; end++)
        for (int filling = 0; filling < 2; filling++) {
            put_back();
            overwrite(end, filling ? 0xa5 : 0);
            open_table();
            unsigned there = up_to(changes_before(end));
            if (changes_there() != there)
                fail_msg("cut at %zu: %x, expected %x", end, changes_there(), there);
            assert_int_equal(errors_logged, 0);
            go_on(there);
        }
}

/* The file itself is shorter: of a copy that was not finished. */
static void a_file_that_is_cut_has_what_it_has(void **state UNUSED)
{
    for (size_t size = 0; size <= ends[CHANGES]; size += size < FIRST ? 512 : 7) {
        put_back();
        write_image("disk/log", &log_image, size);
        if (!try_open()) {
            assert_true(size <= FIRST);
            assert_non_null(strstr(problem, "cut"));
            cases++;
            continue;
        }
        assert_true(size > FIRST);
        unsigned there = up_to(changes_before(size));
        assert_int_equal(changes_there(), there);
        go_on(there);
    }
}

static void flip(size_t at, int bit)
{
    char byte = (char)(log_image.data[at] ^ (1 << bit));
    int fd = open(folder_path("disk/log"), O_WRONLY);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static size_t padded(size_t size)
{
    return (size + 15) / 16 * 16;
}

/* One change, and no other; reported unless it is the last one, which looks like one that was cut. */
static void a_flipped_bit_costs_one_change(void **state UNUSED)
{
    int reported = 0;
    for (size_t at = FIRST; at < ends[CHANGES]; at++) {
        int hit = changes_before(at) + 1;
        bool is_padding = at >= ends[hit - 1] && hit > 1 && at < padded(ends[hit - 1]);
        put_back();
        flip(at, (int)at % 8);
        open_table();
        unsigned there = up_to(CHANGES) & ~(is_padding ? 0 : 1u << hit);
        if (changes_there() != there)
            fail_msg("flipped at %zu: %x, expected %x", at, changes_there(), there);
        assert_int_equal(errors_logged, !is_padding && hit < CHANGES);
        reported += errors_logged;
        go_on(there);
        assert_int_equal(errors_logged, !is_padding && hit < CHANGES); /* once */
    }
    assert_true(reported > 100);
}

/* In the layout of the file: nothing is done to it. */
static void a_flipped_bit_of_the_layout_is_refused(void **state UNUSED)
{
    for (size_t at = 0; at < 16; at++) {
        put_back();
        flip(at, (int)at % 8);
        assert_false(try_open());
        assert_non_null(strstr(problem, "damaged"));
        write_image("disk/log", &log_image, log_image.size);
        open_table();
        assert_int_equal(changes_there(), up_to(CHANGES));
        go_on(up_to(CHANGES));
    }
}

static void two_damages_cost_two_changes(void **state UNUSED)
{
    put_back();
    flip(ends[1] + 30, 1);
    flip(ends[3] + 60, 1);
    flip(ends[4] + 60, 1);
    open_table();
    unsigned there = up_to(CHANGES) & ~(1u << 2 | 1u << 4 | 1u << 5);
    assert_int_equal(changes_there(), there);
    assert_int_equal(errors_logged, 2);
    go_on(there);
}

/* --- deaths --- */

enum { KEYS = 4, STEPS = 60 };

struct progress {
    volatile int begun, acknowledged;
};
static struct progress *progress;

static int sync_quickly(int fd UNUSED)
{
    return 0; /* a death of a process loses nothing of what was written */
}

/* Each change has the same number under all keys; the log is filled several times. */
static void write_until_death(void *argument UNUSED)
{
    static char content[12000];
    memset(content, '.', sizeof content);
    disk_log_system.sync = sync_quickly;
    open_table();
    for (int number = progress->acknowledged + 1, steps = 0; steps < STEPS; number++, steps++) {
        int size = snprintf(content, 16, "%d", number);
        content[size] = '.';
        progress->begun = number;
        DEMAND(!disk_table_begin(disk));
        for (int i = 0; i < KEYS; i++) {
            const char key[] = {'k', (char)('0' + i), 0};
            DEMAND(!disk_table_put(disk, bytes_of(key), (struct bytes){content, sizeof content - (size_t)i}));
        }
        DEMAND(!disk_table_commit(disk));
        progress->acknowledged = number;
    }
    disk_table_close(disk);
}

static void check_progress(void)
{
    int numbers[KEYS];
    for (int i = 0; i < KEYS; i++) {
        const char key[] = {'k', (char)('0' + i), 0};
        text.size = 0;
        numbers[i] = get(key) ? atoi(text.data) : 0;
        assert_int_equal(numbers[i], numbers[0]);
    }
    if (numbers[0] < progress->acknowledged || numbers[0] > progress->begun)
        fail_msg("%d is there: %d was acknowledged, %d begun", numbers[0], progress->acknowledged,
                 progress->begun);
    progress->acknowledged = numbers[0];
}

static bool dies(void)
{
    int status = 0;
    pid_t pid = child_start(write_until_death, NULL);
    if (waitpid(pid, &status, 0) != pid)
        fail_msg("the child is gone");
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* The reader has the table open meanwhile; at every second death it opens it again. */
static void a_death_at_any_step_is_whole_or_not_at_all(void **state UNUSED)
{
    static const char *const points[] = {"disk-log-written", "disk-log-synced", "disk-table-filled",
                                         "disk-table-emptied"};
    static int deaths[COUNT_OF(points)];
    progress = mapping_share(sizeof *progress);
    for (size_t point = 0; point < COUNT_OF(points); point++)
        for (int count = 1, is_over = 0; !is_over; count += point < 2 ? 5 : 1) {
            char list[40];
            snprintf(list, sizeof list, "%s:%d", points[point], count);
            crash_arm(list, mapping_share);
            is_over = !dies();
            crash_arm("", mapping_share);
            deaths[point] += !is_over;
            cases++;
            if (count % 2)
                reopen();
            check_progress();
        }
    for (size_t point = 0; point < COUNT_OF(points); point++)
        assert_true(deaths[point] >= 2);
}

/* Before there is a log: the next process creates it. */
static void a_death_while_the_log_is_created_leaves_none(void **state UNUSED)
{
    progress = mapping_share(sizeof *progress);
    disk_table_close(disk);
    disk = NULL;
    folder_remove();
    folder_make();
    crash_arm("disk-log-filled:1", mapping_share);
    assert_true(dies());
    crash_arm("", mapping_share);
    assert_int_equal(access(folder_path("disk/log"), F_OK), -1);
    assert_false(dies());
    open_table();
    check_progress();
    assert_int_equal(progress->acknowledged, STEPS);
    assert_int_equal(access(folder_path("disk/log.new"), F_OK), -1);
    cases++;
}

static int report_cases(void **state UNUSED)
{
    printf("disk_table: %d cases of the matrix\n", cases);
    return 0;
}

int main(void)
{
#define DAMAGE(name) cmocka_unit_test_setup_teardown(name, set_up_changes, tear_down_changes)
#define DEATH(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        DAMAGE(a_cut_costs_what_was_cut),
        DAMAGE(a_file_that_is_cut_has_what_it_has),
        DAMAGE(a_flipped_bit_costs_one_change),
        DAMAGE(a_flipped_bit_of_the_layout_is_refused),
        DAMAGE(two_damages_cost_two_changes),
        DEATH(a_death_at_any_step_is_whole_or_not_at_all),
        DEATH(a_death_while_the_log_is_created_leaves_none),
    };
    return cmocka_run_group_tests(tests, NULL, report_cases);
}
