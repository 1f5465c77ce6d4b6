/* test_spool_crowd: writers that share a sync, while some of them die, wait, or have children. */
#include "spool_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "spool/spool_private.h"

enum { WRITERS = 4, EACH = 10, STEPS = 40, PATIENCE_S = 120 };

static unsigned char acknowledged[WRITERS * EACH + 1];

/* The calls of the library come here.  `meanwhile` runs once, before a lock is taken. */
static void (*meanwhile)(void);

int flock(int fd, int operation)
{
    void (*run)(void) = operation & LOCK_EX ? meanwhile : NULL;
    if (run) {
        meanwhile = NULL;
        run();
    }
    return (int)syscall(SYS_flock, fd, operation);
}

/* Puts its numbers, and notes those that were acknowledged; `step`: where it dies, 0: nowhere. */
static void write_numbers(int writer, int count, int step, int note)
{
    struct stampd_spool *spool;
    alarm(PATIENCE_S);
    if (stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
        _exit(2);
    spool_step_left = step;
    for (int i = 1; i <= count; i++) {
        uint64_t number = (uint64_t)(writer * EACH + i);
        if (put_number(spool, number, NULL) || write(note, &number, sizeof number) != sizeof number)
            _exit(2);
    }
    _exit(0);
}

static pid_t start_writer(int writer, int count, int step, const int ends[2])
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        write_numbers(writer, count, step, ends[1]);
    }
    return child;
}

static void read_notes(const int ends[2])
{
    uint64_t number;
    close(ends[1]);
    memset(acknowledged, 0, sizeof acknowledged);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        acknowledged[number] = 1;
    close(ends[0]);
}

/* All that was acknowledged is there, before and after a start of the machine. */
static void check_all(void)
{
    unsigned char seen[sizeof acknowledged];
    int damaged;
    for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
        if (is_restarted)
            forget_board();
        struct stampd_spool *spool = open_spool();
        read_all(spool, seen, sizeof seen, &damaged);
        assert_int_equal(damaged, 0);
        for (size_t number = 1; number < sizeof acknowledged; number++)
            assert_true(seen[number] >= acknowledged[number]);
        stampd_spool_close(spool);
        cases++;
    }
}

/* One dies, at each of its steps: also while it synchronises for the others, and while it waits for that. */
static void one_that_dies_stops_nobody(void **state)
{
    for (int step = 1; step <= STEPS; step++) {
        pid_t children[WRITERS];
        int ends[2], status;
        fresh(state);
        assert_int_equal(pipe(ends), 0);
        for (int i = 0; i < WRITERS; i++)
            children[i] = start_writer(i, EACH, i ? 0 : step, ends);
        read_notes(ends);
        for (int i = 0; i < WRITERS; i++) {
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_true(i ? WIFEXITED(status) && !WEXITSTATUS(status)
                          : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        for (int number = EACH + 1; number <= WRITERS * EACH; number++)
            assert_int_equal(acknowledged[number], 1);
        check_all();
    }
}

/* --- who waits --- */

/* The process with a lock on this file; 0: none. */
static pid_t find_holder(const char *name)
{
    char path[256], line[256];
    struct stat stat_;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(stat(path, &stat_), 0);
    FILE *locks = fopen("/proc/locks", "r");
    pid_t holder = 0;
    while (locks && fgets(line, sizeof line, locks)) {
        int pid;
        unsigned device[2];
        unsigned long inode;
        if (sscanf(line, "%*d: FLOCK ADVISORY WRITE %d %x:%x:%lu", &pid, &device[0], &device[1], &inode) ==
                4 &&
            makedev(device[0], device[1]) == stat_.st_dev && inode == stat_.st_ino && pid > 0)
            holder = pid;
    }
    if (locks)
        fclose(locks);
    return holder;
}

static void wait_until_written(struct stampd_spool *spool, uint64_t last)
{
    struct spool_board board = {0};
    while (board.written < last) {
        assert_int_equal(spool_board_read(spool, &board), 0);
        sched_yield();
    }
}

/* The lock of `synced` is released and nobody is woken; the next writer has died before. */
static void those_that_sleep_go_on_alone(void **state)
{
    struct stampd_spool *spool = open_spool();
    pid_t children[WRITERS], holder;
    int ends[2], status;
    (void)state;
    if (access("/proc/locks", R_OK)) {
        stampd_spool_close(spool);
        skip();
    }
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(spool_files_lock(spool->synced), 0);
    for (int i = 0; i < WRITERS; i++)
        children[i] = start_writer(i, EACH, 0, ends);
    wait_until_written(spool, WRITERS);
    while (!(holder = find_holder("next")))
        sched_yield();
    assert_int_equal(kill(holder, SIGKILL), 0);
    int dead = 0;
    while (dead < WRITERS && children[dead] != holder)
        dead++;
    assert_true(dead < WRITERS);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    spool_files_unlock(spool->synced);
    read_notes(ends);
    for (int i = 0; i < WRITERS; i++)
        assert_true(i == dead || (waitpid(children[i], &status, 0) == children[i] && !status));
    for (int number = 1; number <= WRITERS * EACH; number++)
        assert_int_equal(acknowledged[number], (number - 1) / EACH != dead);
    stampd_spool_close(spool);
    check_all();
}

/* The record of the one that was next is on disk already: it ends the round, so that the one behind it leads.
 */
static void the_next_one_wakes_those_behind_it(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct spool_synced synced;
    int ends[2], status;
    (void)state;
    if (access("/proc/locks", R_OK)) {
        stampd_spool_close(spool);
        skip();
    }
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(spool_files_lock(spool->synced), 0);
    pid_t next = start_writer(0, 1, 0, ends);
    while (!find_holder("next"))
        sched_yield();
    pid_t behind = start_writer(1, 1, 0, ends);
    wait_until_written(spool, 2);
    spool_shared_read(spool, &synced);
    uint32_t round = synced.round;
    synced.durable = 1;
    assert_int_equal(spool_shared_write(spool, &synced), 0);
    spool_files_unlock(spool->synced);
    assert_true(waitpid(next, &status, 0) == next && !status);
    assert_true(waitpid(behind, &status, 0) == behind && !status);
    spool_shared_read(spool, &synced);
    assert_int_equal(synced.durable, 2);
    assert_int_equal(synced.round, round + 2);
    read_notes(ends);
    stampd_spool_close(spool);
    check_all();
}

/* --- before the lock --- */

static struct stampd_spool *other;

static void put_first(void)
{
    put_many(other, 1, 1);
}

/* The size of the segment that the writer has read is that of before: zeros would overwrite the other record,
 * or the segment would seem to be cut. */
static void another_makes_the_segment_longer(void **state)
{
    struct stampd_spool *spool = open_spool();
    unsigned char seen[sizeof acknowledged];
    int damaged;
    (void)state;
    other = open_spool();
    assert_int_equal(spool_segment_open(spool, 1, &spool->writing), 0);
    meanwhile = put_first;
    put_many(spool, 2, 2);
    assert_null(meanwhile);
    run_shell("test $(ls %s/*.segment | wc -l) = 1", folder);
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), 2);
    assert_int_equal(damaged, 0);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* A writer that has the segment open notices it at its next record. */
static void a_segment_that_is_removed_is_not_written_to(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    uint64_t sequence;
    (void)state;
    put_many(spool, 1, 1);
    run_shell("rm %s/*.segment", folder);
    assert_int_equal(put_number(spool, 2, &sequence), 0);
    other = open_spool();
    assert_int_equal(stampd_spool_next(other, sequence - 1, &record), 0);
    assert_int_equal(number_of(&record), 2);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* --- forks --- */

/* A writer that has a child dies with the locks: the child does not keep them. */
static void a_child_holds_no_lock(void **state)
{
    for (int step = 1; step <= 12; step++) {
        int ends[2], status;
        char byte;
        fresh(state);
        assert_int_equal(pipe(ends), 0);
        pid_t writer = fork();
        if (!writer) {
            struct stampd_spool *spool = open_spool();
            if (!fork()) { /* lives until the test has ended */
                close(ends[1]);
                _exit(read(ends[0], &byte, 1) != 0);
            }
            spool_step_left = step;
            for (uint64_t number = 1;; number++)
                if (put_number(spool, number, NULL))
                    _exit(2);
        }
        close(ends[0]);
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        alarm(PATIENCE_S);
        struct stampd_spool *spool = open_spool();
        assert_int_equal(stampd_spool_hold(spool), 0);
        assert_int_equal(put_number(spool, 60, NULL), 0);
        alarm(0);
        stampd_spool_close(spool);
        close(ends[1]);
        cases++;
    }
}

/* The handle is none in a child, and is that of the parent as before. */
static void a_child_has_no_handle(void **state)
{
    struct stampd_spool *first = open_spool(), *spool = open_spool(), *last = open_spool();
    const struct stampd_spool_range range = {1, 1};
    struct stampd_spool_record record;
    struct stampd_spool_state now;
    const char *reason;
    int status;
    (void)state;
    put_many(spool, 1, 2);
    stampd_spool_close(last);
    assert_int_equal(stampd_spool_hold(first), 0);
    pid_t child = fork();
    if (!child) {
        bool is_right =
            put_number(spool, 9, NULL) == ECHILD && stampd_spool_next(spool, 0, &record) == ECHILD &&
            stampd_spool_read_state(spool, &now) == ECHILD && stampd_spool_hold(first) == ECHILD &&
            stampd_spool_acknowledge(spool, &range, 1) == ECHILD &&
            stampd_spool_next_dead(spool, 0, &record, &reason) == ECHILD &&
            stampd_spool_drop_dead(spool, 1) == ECHILD && stampd_spool_renew(spool) == ECHILD &&
            stampd_spool_descriptor(spool) < 0;
        stampd_spool_close(spool);
        is_right = is_right && !stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool) &&
                   !put_number(spool, 3, NULL) && stampd_spool_hold(spool) == EBUSY;
        stampd_spool_close(spool);
        stampd_spool_close(first);
        _exit(!is_right);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stampd_spool_next(spool, 2, &record), 0);
    assert_int_equal(number_of(&record), 3);
    put_many(spool, 4, 5);
    stampd_spool_close(first);
    stampd_spool_close(spool);
}

/* --- threads --- */

static void *put_in_a_thread(void *argument)
{
    struct stampd_spool *spool;
    uint64_t first = *(const uint64_t *)argument;
    int error = stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool);
    for (uint64_t number = first; !error && number < first + EACH; number++)
        error = put_number(spool, number, NULL);
    stampd_spool_close(spool);
    return error ? argument : NULL;
}

static void threads_share(void **state)
{
    pthread_t threads[WRITERS];
    uint64_t firsts[WRITERS];
    unsigned char seen[sizeof acknowledged];
    int damaged;
    void *failed;
    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        firsts[i] = (uint64_t)(i * EACH + 1);
        assert_int_equal(pthread_create(&threads[i], NULL, put_in_a_thread, &firsts[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    struct stampd_spool *spool = open_spool();
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), WRITERS * EACH);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_dies_stops_nobody),
        cmocka_unit_test_setup(those_that_sleep_go_on_alone, fresh),
        cmocka_unit_test_setup(the_next_one_wakes_those_behind_it, fresh),
        cmocka_unit_test_setup(another_makes_the_segment_longer, fresh),
        cmocka_unit_test_setup(a_segment_that_is_removed_is_not_written_to, fresh),
        cmocka_unit_test(a_child_holds_no_lock),
        cmocka_unit_test_setup(a_child_has_no_handle, fresh),
        cmocka_unit_test_setup(threads_share, fresh),
    };
    return cmocka_run_group_tests_name("spool crowd", tests, NULL, end);
}
