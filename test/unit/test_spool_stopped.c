/* test_spool_stopped: a process that is stopped while it holds a lock: the others get an answer in a limited
 * time, and one that does not say EIO has stored nothing. */
#include "spool_fixture.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "spool/spool_private.h"

enum { SHORT_MS = 100, SECOND_US = 1000000, PAUSES_MOST = 5000 };

/* --- a clock that passes while the library pauses --- */

static bool is_simulated; /* else the clock is that of the host, and a pause is one */
static int64_t simulated_us, longest_us;
static int pauses, tries;
static void (*at_a_try)(void); /* before a lock is tried */

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (!is_simulated || id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, now);
    *now = (struct timespec){simulated_us / SECOND_US, simulated_us % SECOND_US * 1000};
    return 0;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
    int64_t pause_us = pause->tv_sec * SECOND_US + pause->tv_nsec / 1000;
    if (!is_simulated)
        return (int)syscall(SYS_nanosleep, pause, left);
    pauses++;
    simulated_us +=
        pauses < PAUSES_MOST ? pause_us : SECOND_US; /* a library that does not grow them ends too */
    longest_us = pause_us > longest_us ? pause_us : longest_us;
    return 0;
}

int flock(int fd, int operation)
{
    if (operation & LOCK_EX) {
        tries++;
        if (at_a_try)
            at_a_try();
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static int calm(void **state)
{
    is_simulated = false;
    at_a_try = NULL;
    simulated_us = longest_us = pauses = tries = 0;
    fresh(state);
    spool_step_lock_ms = SHORT_MS;
    return 0;
}

/* --- one that is stopped --- */

/* A process that has locked this file of the spool, and does not run. */
static pid_t stop_with(const char *name)
{
    char path[160];
    int status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || syscall(SYS_flock, fd, LOCK_EX))
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

static void let_go(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void check_last(struct stampd_spool *spool, uint64_t last)
{
    struct stampd_spool_state now;
    assert_int_equal(stampd_spool_read_state(spool, &now), 0);
    assert_int_equal(now.last, last);
}

static void nothing_is_stored_without_the_lock(void **state)
{
    struct stampd_spool *spool = open_spool(), *other;
    (void)state;
    put_many(spool, 1, 1);
    uint64_t bytes = real_bytes(spool);
    pid_t holder = stop_with("lock");
    assert_int_equal(put_number(spool, 2, NULL), ETIMEDOUT);
    assert_int_equal(stampd_spool_renew(spool), ETIMEDOUT);
    check_last(spool, 1);
    assert_int_equal(real_bytes(spool), bytes);
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &other), 0);
    stampd_spool_close(other);
    let_go(holder);
    put_many(spool, 2, 2);
    stampd_spool_close(spool);
}

static void a_spool_that_is_to_be_repaired_is_not_opened(void **state)
{
    struct stampd_spool *spool = open_spool();
    (void)state;
    put_many(spool, 1, 1);
    stampd_spool_close(spool);
    for (int i = 0; i < 2; i++) {
        forget_board();
        pid_t holder = stop_with(i ? "synced" : "lock");
        assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), ETIMEDOUT);
        assert_null(spool);
        let_go(holder);
        spool = open_spool();
        put_many(spool, 2 + (uint64_t)i, 2 + (uint64_t)i);
        stampd_spool_close(spool);
    }
}

static int wait_for(struct stampd_spool *spool, uint64_t sequence)
{
    return stampd_spool_wait(spool, &(struct stampd_spool_range){sequence, sequence});
}

/* The record is written, and may be on disk, or not, until a sync has ended. */
static void one_that_is_written_may_be_there(void **state)
{
    struct stampd_spool *spool = open_spool(), *other;
    unsigned char seen[64];
    int damaged;
    (void)state;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &other), 0);
    for (uint64_t i = 0; i < 2; i++) {
        pid_t holder = stop_with(i ? "next" : "synced");
        assert_int_equal(put_number(spool, 3 * i + 1, NULL), EIO);
        assert_int_equal(wait_for(spool, 3 * i + 1), ETIMEDOUT);
        assert_int_equal(put_number(other, 3 * i + 2, NULL), 0);
        let_go(holder);
        assert_int_equal(wait_for(spool, 3 * i + 1), 0);
        assert_int_equal(put_number(spool, 3 * i + 3, NULL), 0);
    }
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), 6);
    assert_int_equal(damaged, 0);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* The next segment would be begun under the lock of `synced`, before the record is written. */
static void a_segment_that_cannot_be_begun_takes_no_record(void **state)
{
    struct stampd_spool *spool;
    uint64_t number = 0;
    int error = 0;
    (void)state;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &spool), 0);
    pid_t holder = stop_with("synced");
    while (!error)
        error = put_number(spool, ++number, NULL);
    assert_int_equal(error, ETIMEDOUT);
    assert_true(number > 2);
    check_last(spool, number - 1);
    let_go(holder);
    put_many(spool, number, number);
    stampd_spool_close(spool);
}

/* Of a batch, the first segment is filled: nothing is lost, nor stored twice, when it goes on from there. */
static void a_batch_ends_where_a_segment_cannot_be_begun(void **state)
{
    enum { COUNT = 30 };
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_range stored, rest;
    unsigned char seen[64];
    int damaged;
    (void)state;
    pid_t holder = stop_with("synced");
    assert_int_equal(append_numbers(spool, 1, COUNT, &stored), ETIMEDOUT);
    assert_true(stored.first == 1 && stored.last >= 1 && stored.last < COUNT);
    check_last(spool, stored.last);
    assert_int_equal(stampd_spool_wait(spool, &stored), ETIMEDOUT);
    assert_int_equal(stampd_spool_try_wait(spool, &stored), EAGAIN);
    assert_int_equal(append_numbers(spool, stored.last + 1, COUNT - stored.last, &rest), ETIMEDOUT);
    assert_true(rest.first == 1 && rest.last == 0);
    assert_int_equal(stampd_spool_wait(spool, &rest), 0);
    let_go(holder);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    rest = append_all(spool, stored.last + 1, COUNT - stored.last);
    assert_int_equal(rest.first, stored.last + 1);
    assert_int_equal(stampd_spool_wait(spool, &rest), 0);
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), COUNT);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
}

static void nothing_is_acknowledged_without_the_lock(void **state)
{
    struct stampd_spool *spool = open_spool();
    const struct stampd_spool_range range = {1, 1};
    unsigned char seen[64];
    int damaged;
    (void)state;
    put_many(spool, 1, 2);
    pid_t holder = stop_with("position");
    assert_int_equal(stampd_spool_acknowledge(spool, &range, 1), ETIMEDOUT);
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), 2);
    let_go(holder);
    assert_int_equal(stampd_spool_acknowledge(spool, &range, 1), 0);
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), 1);
    stampd_spool_close(spool);
}

/* --- how long --- */

/* As long as the limit, and with a try in each fiftieth of a second at most when it takes long. */
static void the_pauses_grow(void **state)
{
    enum { LIMIT_S = 10, LONGEST_US = 20000, TRIES_MOST = 700 };
    struct stampd_spool *spool = open_spool();
    (void)state;
    pid_t holder = stop_with("lock");
    spool_step_lock_ms = LIMIT_S * 1000;
    is_simulated = true;
    tries = 0;
    assert_int_equal(spool_files_lock(spool->lock), ETIMEDOUT);
    is_simulated = false;
    assert_true(simulated_us >= LIMIT_S * SECOND_US && simulated_us < LIMIT_S * SECOND_US + LONGEST_US);
    assert_int_equal(longest_us, LONGEST_US);
    assert_true(pauses > 0 && tries == pauses + 1 && tries < TRIES_MOST);
    let_go(holder);
    stampd_spool_close(spool);
}

static struct stampd_spool *leader;
static int held_for; /* tries */

static void release_in_time(void)
{
    if (!--held_for) {
        at_a_try = NULL;
        spool_files_unlock(leader->lock);
    }
}

static void a_lock_that_is_released_is_taken(void **state)
{
    struct stampd_spool *spool = open_spool();
    (void)state;
    leader = open_spool();
    spool_step_lock_ms = PATIENCE_MS;
    for (int held = 1; held < 100; held += 7) {
        assert_int_equal(spool_files_lock(leader->lock), 0);
        held_for = held;
        at_a_try = release_in_time;
        tries = 0;
        assert_int_equal(put_number(spool, 1, NULL), 0);
        assert_int_equal(held_for, 0);
    }
    stampd_spool_close(leader);
    stampd_spool_close(spool);
}

/* Ends a round without the record, as of one that synchronised what was written before, in most of the limit;
 * the last of them has it. */
static void end_round_late(void)
{
    struct spool_synced synced;
    simulated_us += SHORT_MS * INT64_C(1000) * 3 / 4;
    spool_shared_read(leader, &synced);
    if (!--held_for) {
        at_a_try = NULL;
        synced.durable = 1;
    }
    assert_int_equal(spool_shared_end_round(leader, &synced), 0);
}

/* A disk that is slow, but ends one sync after the other, is waited for: by the next one, and behind it. */
static void wait_for_rounds(bool is_next)
{
    struct stampd_spool *spool = open_spool(), *writer;
    leader = open_spool();
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &writer), 0);
    put_many(writer, 1, 1);
    assert_int_equal(spool_files_lock(is_next ? leader->synced : leader->next), 0);
    held_for = is_next ? 100 : 8;
    at_a_try = end_round_late;
    is_simulated = true;
    assert_int_equal(wait_for(spool, 1), 0);
    assert_int_equal(held_for, 0);
    is_simulated = false;
    stampd_spool_close(writer);
    stampd_spool_close(leader);
    stampd_spool_close(spool);
}

static void rounds_that_end_are_waited_for(void **state)
{
    (void)state;
    wait_for_rounds(false);
}

static void the_next_waits_for_rounds_that_end(void **state)
{
    (void)state;
    wait_for_rounds(true);
}

/* --- a lock that is held for long --- */

static void pass_time(void)
{
    simulated_us += 50 * 1000;
}

/* The tries of others may be as far apart. */
static void a_lock_that_was_held_for_long_is_left_to_others(void **state)
{
    enum { MANY = 30, REST_US = 20000 };
    struct stampd_spool *spool = open_spool(), *other = open_spool();
    (void)state;
    spool_step_lock_ms = PATIENCE_MS;
    is_simulated = true;
    append_all(spool, 1, 1);
    append_all(spool, 2, 1);
    assert_int_equal(pauses, 0);
    for (int i = 0; i < 2; i++) {
        at_a_try = pass_time; /* each segment takes so long */
        append_all(spool, 1, MANY);
        at_a_try = NULL;
        int64_t before_us = simulated_us;
        append_all(other, 1, 1);
        assert_true(pauses == i && simulated_us == before_us);
        simulated_us += i ? REST_US : 0;
        before_us = simulated_us;
        append_all(spool, 1, 1);
        assert_int_equal(simulated_us - before_us, i ? 0 : REST_US);
        append_all(spool, 1, 1);
        assert_int_equal(pauses, 1);
    }
    is_simulated = false;
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
#define TEST(name) cmocka_unit_test_setup(name, calm)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_stored_without_the_lock),
        TEST(a_spool_that_is_to_be_repaired_is_not_opened),
        TEST(one_that_is_written_may_be_there),
        TEST(a_segment_that_cannot_be_begun_takes_no_record),
        TEST(nothing_is_acknowledged_without_the_lock),
        TEST(the_pauses_grow),
        TEST(a_lock_that_is_released_is_taken),
        TEST(rounds_that_end_are_waited_for),
        TEST(the_next_waits_for_rounds_that_end),
        TEST(a_batch_ends_where_a_segment_cannot_be_begun),
        TEST(a_lock_that_was_held_for_long_is_left_to_others),
    };
#undef TEST
    return cmocka_run_group_tests_name("spool stopped", tests, NULL, end);
}
