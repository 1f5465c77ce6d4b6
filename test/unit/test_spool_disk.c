/* test_spool_disk: a disk that fails while it is synchronised: no writer of what it lost is answered. */
#include "spool_fixture.h"

#include <sys/syscall.h>

#include "spool/spool_private.h"

/* The calls of the library come here.  `meanwhile` runs before a sync fails. */
static int sync_error, close_error;
static void (*meanwhile)(void);

int fdatasync(int fd)
{
    int error = sync_error;
    sync_error = 0;
    if (!error)
        return (int)syscall(SYS_fdatasync, fd);
    if (meanwhile)
        meanwhile();
    meanwhile = NULL;
    errno = error;
    return -1;
}

int fsync(int fd)
{
    int error = close_error;
    close_error = 0;
    if (!error)
        return (int)syscall(SYS_fsync, fd);
    errno = error;
    return -1;
}

/* Waits for nothing. */
static struct stampd_spool *other;

static int open_two(void **state)
{
    struct stampd_spool **spool = (struct stampd_spool **)state;
    fresh(NULL);
    *spool = open_spool();
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &other), 0);
    return 0;
}

static int close_two(void **state)
{
    stampd_spool_close(*state);
    stampd_spool_close(other);
    return 0;
}

static void put_third(void)
{
    put_many(other, 3, 3);
}

/* As if its writer waited again. */
static int wait_for(struct stampd_spool *spool, uint64_t first, uint64_t last)
{
    const struct stampd_spool_range range = {first, last};
    int before = stampd_spool_try_wait(spool, &range), error = stampd_spool_wait(spool, &range);
    assert_true(before == error || before == EAGAIN);
    assert_int_equal(stampd_spool_try_wait(spool, &range), error);
    return error;
}

static void any_failure_may_have_stored_it(void **state)
{
    const int errors[] = {EIO, ENOSPC, EDQUOT};
    for (uint64_t i = 0; i < COUNT_OF(errors); i++) {
        sync_error = errors[i];
        assert_int_equal(put_number(*state, 2 * i + 1, NULL), EIO);
        assert_int_equal(put_number(*state, 2 * i + 2, NULL), 0);
    }
}

static void what_came_during_a_failure_is_not_on_disk(void **state)
{
    put_many(*state, 1, 1);
    sync_error = EIO;
    meanwhile = put_third;
    assert_int_equal(put_number(*state, 2, NULL), EIO);
    put_many(other, 4, 4); /* closes the segment */
    assert_int_equal(wait_for(*state, 1, 1), 0);
    assert_int_equal(wait_for(*state, 2, 2), EIO);
    assert_int_equal(wait_for(*state, 3, 3), EIO);
    assert_int_equal(wait_for(*state, 4, 4), 0);
}

/* Its page may have been among those that the disk has not taken: the next sync would succeed all the same.
 */
static void what_came_during_a_failure_is_not_synchronised_again(void **state)
{
    put_many(*state, 1, 1);
    sync_error = EIO;
    meanwhile = put_third;
    assert_int_equal(put_number(*state, 2, NULL), EIO);
    assert_int_equal(wait_for(other, 3, 3), EIO);
    put_many(*state, 4, 4);
    assert_int_equal(wait_for(other, 4, 4), 0);
}

/* What was appended together has one answer, also when only a part of it is lost. */
static void a_part_that_is_lost_is_an_error(void **state)
{
    struct stampd_spool_range stored;
    uint64_t first;
    assert_int_equal(append_numbers(other, 1, 3, &stored), 0);
    first = stored.first;
    sync_error = EIO;
    assert_int_equal(put_number(*state, 4, NULL), EIO);
    assert_int_equal(append_numbers(other, 5, 3, &stored), 0);
    assert_int_equal(wait_for(other, first, 3), EIO);
    assert_int_equal(wait_for(*state, first, stored.last), EIO);
    assert_int_equal(wait_for(*state, 5, stored.last), 0);
}

/* A writer that has slept since the first failure reads what the second one has left. */
static void a_second_failure_does_not_hide_the_first(void **state)
{
    for (uint64_t number = 1; number <= 2; number++) {
        sync_error = EIO;
        assert_int_equal(put_number(*state, number, NULL), EIO);
    }
    put_many(*state, 3, 3);
    assert_int_equal(wait_for(*state, 1, 1), EIO);
    assert_int_equal(wait_for(*state, 2, 2), EIO);
    assert_int_equal(wait_for(*state, 3, 3), 0);
}

/* The next sync would succeed, for the kernel reports a failure once. */
static void a_segment_that_cannot_be_closed_is_not_on_disk(void **state)
{
    uint64_t number = 0;
    put_many(*state, 1, 1);
    for (int error = 0; !error;) {
        close_error = EIO;
        error = put_number(other, ++number + 1, NULL);
        close_error = 0;
        assert_true(error == 0 || error == EIO);
    }
    assert_true(number > 1);
    assert_int_equal(wait_for(*state, 1, 1), 0);
    for (uint64_t last = 2; last <= number; last++)
        assert_int_equal(wait_for(*state, last, last), EIO);
    put_many(*state, number + 1, number + 1);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)
    const struct CMUnitTest tests[] = {
        TEST(any_failure_may_have_stored_it),
        TEST(what_came_during_a_failure_is_not_on_disk),
        TEST(what_came_during_a_failure_is_not_synchronised_again),
        TEST(a_part_that_is_lost_is_an_error),
        TEST(a_second_failure_does_not_hide_the_first),
        TEST(a_segment_that_cannot_be_closed_is_not_on_disk),
    };
#undef TEST
    return cmocka_run_group_tests_name("spool disk", tests, NULL, end);
}
