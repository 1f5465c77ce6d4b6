/* test_spool_append: many requests with one wait: their order, errors in the middle, deaths, cuts, and what
 * the one that synchronises waits for. */
#include "spool_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "spool/spool_private.h"

enum { MOST = APPENDED_MOST, PATIENCE_S = 120, WRITERS = 3, BATCHES = 4, EACH_BATCH = 7 };

/* The calls of the library come here. */
static int syncs;
static long writes_left; /* then one writes half and fails; 0: none does */

int fdatasync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (!writes_left || --writes_left)
        return syscall(SYS_pwrite64, fd, data, size, offset);
    if (size > 1 && syscall(SYS_pwrite64, fd, data, size / 2, offset) < 0)
        return -1;
    errno = ENOSPC;
    return -1;
}

/* --- requests --- */

/* These, and no others, in their order. */
static void check_numbers(uint64_t last)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    for (uint64_t number = 1; number <= last; number++) {
        assert_int_equal(stampd_spool_next(spool, number - 1, &record), 0);
        assert_int_equal(record.sequence, number);
        assert_int_equal(number_of(&record), number);
        check_record(&record);
    }
    assert_int_equal(stampd_spool_next(spool, last, &record), EAGAIN);
    stampd_spool_close(spool);
}

/* --- append and wait --- */

static void many_have_numbers_that_follow_each_other(void **state)
{
    struct stampd_spool *spool = open_spool(), *other = open_spool();
    (void)state;
    struct stampd_spool_range stored = append_all(spool, 1, MOST);
    assert_int_equal(stored.first, 1);
    put_many(other, MOST + 1, MOST + 1);
    stored = append_all(spool, MOST + 2, 3);
    assert_int_equal(stored.first, MOST + 2);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    check_numbers(MOST + 4);
    forget_board();
    check_numbers(MOST + 4);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* Longer than what is written at once, and than a segment. */
static void long_ones_are_written_in_parts(void **state)
{
    enum { COUNT = 9, BYTES = 600 << 10 };
    struct stampd_spool_request long_ones[COUNT];
    struct stampd_spool_record record;
    struct stampd_spool_range stored;
    char *param = malloc(BYTES);
    (void)state;
    use_large_segments();
    memset(param, ' ', BYTES);
    param[0] = '{';
    param[BYTES - 1] = '}';
    struct stampd_spool *spool = open_spool();
    for (size_t i = 0; i < COUNT; i++) {
        long_ones[i] = make_requests(1, 1)[0];
        long_ones[i].param = param;
        long_ones[i].param_size = BYTES - i;
        param[BYTES - 1 - i] = '}';
    }
    assert_int_equal(stampd_spool_append(spool, long_ones, COUNT, &stored), 0);
    assert_true(stored.first == 1 && stored.last == COUNT);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    for (uint64_t number = 1; number <= COUNT; number++) {
        assert_int_equal(stampd_spool_next(spool, number - 1, &record), 0);
        assert_true(record.sequence == number && record.request.param_size == BYTES - number + 1);
    }
    stampd_spool_close(spool);
    free(param);
}

static void one_sync_is_for_all(void **state)
{
    struct stampd_spool *spool = open_spool(), *other;
    (void)state;
    stampd_spool_close(spool);
    use_large_segments();
    spool = open_spool();
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &other), 0);
    syncs = 0;
    struct stampd_spool_range all = append_all(spool, 1, 50), stored = append_all(other, 51, 1);
    for (uint64_t number = 52; number <= 60; number++)
        stored = append_all(spool, number, 1);
    assert_int_equal(syncs, 0);
    assert_int_equal(stampd_spool_try_wait(spool, &all), EAGAIN);
    assert_int_equal(stampd_spool_try_wait(other, &stored), EAGAIN);
    assert_int_equal(syncs, 0);
    assert_int_equal(stampd_spool_wait(other, &stored), 0);
    assert_int_equal(syncs, 1);
    assert_int_equal(stampd_spool_try_wait(spool, &all), 0);
    assert_int_equal(stampd_spool_wait(spool, &all), 0);
    assert_int_equal(syncs, 1);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

static void what_was_never_appended_is_an_error(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_range stored;
    (void)state;
    alarm(PATIENCE_S);
    assert_int_equal(append_numbers(spool, 1, 0, &stored), 0);
    assert_true(stored.first == 1 && stored.last == 0);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    stored = append_all(spool, 1, 3);
    stored.last++;
    assert_int_equal(stampd_spool_try_wait(spool, &stored), EINVAL);
    assert_int_equal(stampd_spool_wait(spool, &stored), EINVAL);
    stored.last--;
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    stored = (struct stampd_spool_range){.last = UINT64_MAX};
    assert_int_equal(stampd_spool_wait(spool, &stored), EINVAL);
    struct spool_synced synced;
    spool_shared_read(spool, &synced);
    assert_int_equal(synced.durable, 3);
    alarm(0);
    stampd_spool_close(spool);
}

/* A segment that was closed after the append is on disk: nobody has to synchronise. */
static void a_closed_segment_is_on_disk(void **state)
{
    struct stampd_spool *spool = open_spool(), *other;
    uint64_t number = 2;
    (void)state;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &other), 0);
    syncs = 0;
    const struct stampd_spool_range stored = append_all(spool, 1, 1);
    while (stampd_spool_try_wait(spool, &stored) == EAGAIN && number < MOST)
        put_many(other, number, number), number++;
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    assert_int_equal(syncs, 0);
    check_numbers(number - 1);
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

static void a_child_can_neither_append_nor_wait(void **state)
{
    struct stampd_spool *spool = open_spool();
    const struct stampd_spool_range stored = append_all(spool, 1, 2);
    struct stampd_spool_range range;
    int status;
    (void)state;
    pid_t child = fork();
    if (!child)
        _exit(!(append_numbers(spool, 3, 1, &range) == ECHILD &&
                stampd_spool_wait(spool, &stored) == ECHILD &&
                stampd_spool_try_wait(spool, &stored) == ECHILD));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    check_numbers(2);
    stampd_spool_close(spool);
}

/* --- errors in the middle --- */

static void what_is_before_a_malformed_one_is_stored(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_range stored;
    char *long_param = calloc(1, STAMPD_SPOOL_PARAM_MOST + 1);
    (void)state;
    for (size_t wrong = 0; wrong < 5; wrong++) {
        struct stampd_spool_request *requests = make_requests(1, 5);
        requests[wrong].param = long_param;
        requests[wrong].param_size = wrong % 2 ? STAMPD_SPOOL_PARAM_MOST + 1 : 1;
        assert_int_equal(stampd_spool_append(spool, requests, 5, &stored), wrong % 2 ? EMSGSIZE : EINVAL);
        assert_int_equal(stored.last + 1 - stored.first, wrong);
        assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    }
    struct stampd_spool_state now;
    assert_int_equal(stampd_spool_read_state(spool, &now), 0);
    assert_int_equal(now.last, 0 + 1 + 2 + 3 + 4);
    free(long_param);
    stampd_spool_close(spool);
}

static void a_spool_that_becomes_full_keeps_the_first(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_range stored;
    uint64_t last = 0;
    int error;
    (void)state;
    for (; !(error = append_numbers(spool, last + 1, MOST, &stored)); last = stored.last)
        assert_int_equal(stored.last, last + MOST);
    assert_int_equal(error, EDQUOT);
    assert_true(stored.first == last + 1 && stored.last > last && stored.last < last + MOST);
    assert_int_equal(stampd_spool_wait(spool, &stored), 0);
    last = stored.last;
    check_numbers(last);
    assert_int_equal(append_numbers(spool, last + 1, 5, &stored), EDQUOT);
    assert_true(stored.first == 1 && stored.last == 0);
    const struct stampd_spool_range half = {1, last / 2};
    assert_int_equal(stampd_spool_acknowledge(spool, &half, 1), 0);
    stored = append_all(spool, last + 1, 5);
    assert_int_equal(stored.first, last + 1);
    stampd_spool_close(spool);
    cases++;
}

/* The disk is full at each write, after half of it. */
static void a_disk_that_becomes_full_keeps_the_first(void **state)
{
    enum { BEFORE = 2, COUNT = 30 };
    bool is_done = false;
    int failures = 0;
    for (long at = 1; !is_done; at++) {
        struct stampd_spool_range stored;
        fresh(state);
        struct stampd_spool *spool = open_spool();
        put_many(spool, 1, BEFORE);
        writes_left = at;
        int error = append_numbers(spool, BEFORE + 1, COUNT, &stored);
        is_done = writes_left > 0;
        writes_left = 0;
        assert_true(error == ENOSPC || !error);
        failures += error != 0;
        assert_true(error || stored.last == BEFORE + COUNT); /* zeros that are written in advance may fail */
        uint64_t last = stored.last ? stored.last : BEFORE;
        assert_true(stored.last ? stored.first == BEFORE + 1 : stored.first == 1);
        assert_int_equal(stampd_spool_wait(spool, &stored), 0);
        check_numbers(last);
        stampd_spool_close(spool);
        forget_board();
        check_numbers(last);
        spool = open_spool();
        stored = append_all(spool, last + 1, 2);
        assert_int_equal(stored.first, last + 1);
        check_numbers(last + 2);
        stampd_spool_close(spool);
        cases++;
        assert_true(at < MOST);
    }
    assert_true(failures > 10);
}

/* --- deaths and cuts --- */

/* Appends batches, and notes the last number of those for which it has waited. */
static void write_batches(uint64_t writer, int step, int note)
{
    struct stampd_spool *spool;
    alarm(PATIENCE_S);
    if (stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
        _exit(2);
    spool_step_left = step;
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        struct stampd_spool_range stored, single;
        uint64_t first = (writer * BATCHES + batch) * EACH_BATCH;
        if (append_numbers(spool, first, EACH_BATCH - 1, &stored) ||
            append_numbers(spool, first + EACH_BATCH - 1, 1, &single) || stampd_spool_wait(spool, &stored) ||
            stampd_spool_wait(spool, &single) || stampd_spool_try_wait(spool, &stored) ||
            write(note, &first, sizeof first) != sizeof first)
            _exit(2);
    }
    _exit(0);
}

/* What was waited for is there; of every other batch, the first ones are. */
static void check_batches(const unsigned char *noted)
{
    unsigned char seen[WRITERS * BATCHES * EACH_BATCH];
    int damaged;
    for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
        if (is_restarted)
            forget_board();
        struct stampd_spool *spool = open_spool();
        read_all(spool, seen, sizeof seen, &damaged);
        assert_int_equal(damaged, 0);
        for (size_t number = 0; number < sizeof seen; number++) {
            if (noted[number / EACH_BATCH])
                assert_int_equal(seen[number], 1);
            if (number % EACH_BATCH)
                assert_true(seen[number] <= seen[number - 1]);
        }
        stampd_spool_close(spool);
        cases++;
    }
}

/* The first writer dies at this step, if it has as many; the others do not. */
static bool die_at(int step, uint64_t writers)
{
    unsigned char noted[WRITERS * BATCHES] = {0};
    pid_t children[WRITERS];
    int ends[2], status;
    uint64_t first;
    bool is_alive = true;
    fresh(NULL);
    assert_int_equal(pipe(ends), 0);
    for (uint64_t i = 0; i < writers; i++)
        if (!(children[i] = fork()))
            write_batches(i, i ? 0 : step, ends[1]);
    close(ends[1]);
    while (read(ends[0], &first, sizeof first) == sizeof first)
        noted[first / EACH_BATCH] = 1;
    close(ends[0]);
    for (uint64_t i = 0; i < writers; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!i && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            is_alive = false;
        else
            assert_int_equal(status, 0);
    }
    check_batches(noted);
    return is_alive;
}

static void deaths_at_every_step_lose_nothing(void **state)
{
    (void)state;
    int step = 1;
    while (!die_at(step, 1))
        step++;
    assert_true(step > 50);
    for (step = 1; step <= 60; step++)
        die_at(step, WRITERS);
}

/* A failure of power while a batch is written: those of which all bytes are there stay. */
static void a_batch_is_cut_at_every_byte(void **state)
{
    enum { BEFORE = 1, COUNT = 4 };
    char whole[128], path[256];
    off_t ends[COUNT + 1];
    (void)state;
    struct stampd_spool *spool = open_spool();
    for (int i = 0; i <= COUNT; i++) { /* how long they are */
        append_all(spool, (uint64_t)(BEFORE + i), 1);
        ends[i] = (off_t)real_bytes(spool);
    }
    stampd_spool_close(spool);
    fresh(state);
    spool = open_spool();
    put_many(spool, 1, BEFORE);
    append_all(spool, BEFORE + 1, COUNT);
    assert_int_equal(real_bytes(spool), ends[COUNT]);
    assert_true(ends[COUNT] < SMALL_SEGMENT);
    stampd_spool_close(spool);
    snprintf(whole, sizeof whole, "%s", folder);
    for (off_t size = ends[0]; size <= ends[COUNT]; size++)
        for (int is_zeroed = 0; is_zeroed < 2; is_zeroed++) {
            uint64_t left = BEFORE;
            while (left < BEFORE + COUNT && ends[left - BEFORE + 1] <= size)
                left++;
            snprintf(folder, sizeof folder, "%s/cut%d%d", top, (int)size, is_zeroed);
            copy_folder(whole, folder);
            last_segment(path, sizeof path);
            assert_int_equal(truncate(path, size), 0);
            assert_int_equal(truncate(path, is_zeroed ? SMALL_SEGMENT : size), 0);
            check_numbers(left);
            spool = open_spool();
            assert_int_equal(append_all(spool, left + 1, 2).first, left + 1);
            stampd_spool_close(spool);
            check_numbers(left + 2);
            remove_folder(folder);
            cases++;
        }
    snprintf(folder, sizeof folder, "%s", whole);
}

/* --- threads --- */

static _Atomic uint64_t appended;

/* Waits for what another appends. */
static void *wait_in_a_thread(void *nothing)
{
    struct stampd_spool *spool;
    int error = stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool);
    for (uint64_t done = 0; !error && done < MOST;) {
        const struct stampd_spool_range range = {done + 1, appended};
        error = stampd_spool_wait(spool, &range);
        done = range.last;
        sched_yield();
    }
    stampd_spool_close(spool);
    return error ? spool : nothing;
}

static void another_thread_waits(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_range stored;
    pthread_t thread;
    void *failed;
    (void)state;
    alarm(PATIENCE_S);
    appended = 0;
    assert_int_equal(pthread_create(&thread, NULL, wait_in_a_thread, NULL), 0);
    while (appended < MOST) {
        stored = append_all(spool, appended + 1, 8);
        appended = stored.last;
        while (stampd_spool_try_wait(spool, &stored) == EAGAIN)
            sched_yield();
        assert_int_equal(stampd_spool_try_wait(spool, &stored), 0);
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    alarm(0);
    check_numbers(MOST);
    stampd_spool_close(spool);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_have_numbers_that_follow_each_other, fresh),
        cmocka_unit_test_setup(long_ones_are_written_in_parts, fresh),
        cmocka_unit_test_setup(one_sync_is_for_all, fresh),
        cmocka_unit_test_setup(what_was_never_appended_is_an_error, fresh),
        cmocka_unit_test_setup(a_closed_segment_is_on_disk, fresh),
        cmocka_unit_test_setup(a_child_can_neither_append_nor_wait, fresh),
        cmocka_unit_test_setup(what_is_before_a_malformed_one_is_stored, fresh),
        cmocka_unit_test_setup(a_spool_that_becomes_full_keeps_the_first, fresh),
        cmocka_unit_test(a_disk_that_becomes_full_keeps_the_first),
        cmocka_unit_test(deaths_at_every_step_lose_nothing),
        cmocka_unit_test_setup(a_batch_is_cut_at_every_byte, fresh),
        cmocka_unit_test_setup(another_thread_waits, fresh),
    };
    return cmocka_run_group_tests_name("spool append", tests, NULL, end);
}
