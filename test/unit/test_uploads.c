/* test_uploads: the shares of workers that receive files, of one client and of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "child.h"
#include "segment/segment_open.h"
#include "segment/counts/shares.h"

enum { HANDLES = 4 };
enum { ANN = 7, BEA = 8, ALL = 1 };
enum entry { CLIENT_FULL, FULL, ENTERED };

#include "handles_fixture.h"

static enum entry enter(int worker, uint64_t client, int64_t client_most, int64_t most)
{
    const struct shares_subject subjects[SHARES_SUBJECTS] = {{client, client_most}, {ALL, most}};
    int full;
    return shares_enter(handles[worker], SHARES_UPLOADS, subjects, &full) ? ENTERED : (enum entry)full;
}

static void no_more_enter_than_the_share(void **state UNUSED)
{
    assert_int_equal(enter(0, ANN, 4, 2), ENTERED);
    assert_int_equal(enter(1, BEA, 4, 2), ENTERED);
    assert_int_equal(enter(2, BEA, 4, 2), FULL);
    assert_int_equal(shares_count(handles[3], SHARES_UPLOADS), 2);
    assert_int_equal(shares_count(handles[3], SHARES_STREAMS), 0);
    shares_leave(handles[0], SHARES_UPLOADS);
    assert_int_equal(enter(2, BEA, 4, 2), ENTERED);
}

static void a_client_has_a_share_of_its_own(void **state UNUSED)
{
    assert_int_equal(enter(0, ANN, 1, 3), ENTERED);
    assert_int_equal(enter(1, ANN, 1, 3), CLIENT_FULL);
    assert_int_equal(enter(1, BEA, 1, 3), ENTERED);
    assert_int_equal(enter(2, 0, 1, 3), ENTERED); /* an exempt one */
    assert_int_equal(shares_count(handles[3], SHARES_UPLOADS), 3);
    assert_int_equal(enter(3, 0, 1, 4), ENTERED);
}

static void the_dead_do_not_count(void **state UNUSED)
{
    int index = segment_index(handles[0]);
    assert_int_equal(enter(0, ANN, 1, 1), ENTERED);
    assert_int_equal(enter(1, BEA, 1, 1), FULL);
    processes_set(handles[1], index, PROCESS_DIRTY, (uint32_t)getpid());
    assert_int_equal(shares_count(handles[1], SHARES_UPLOADS), 0);
    assert_int_equal(enter(1, BEA, 1, 1), ENTERED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_more_enter_than_the_share),
        TEST(a_client_has_a_share_of_its_own),
        TEST(the_dead_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
