/* test_uploads: the shares of workers that receive files, of one client and of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "child.h"
#include "segment/segment_open.h"
#include "segment/counts/uploads.h"

enum { HANDLES = 4 };
enum { ANN = 7, BEA = 8 };

#include "handles_fixture.h"

static enum uploads_entry enter(int worker, uint64_t client, int64_t client_most, int64_t most)
{
    const struct uploads_shares shares = {.client = client, .client_most = client_most, .most = most};
    return uploads_enter(handles[worker], &shares);
}

static void no_more_enter_than_the_share(void **state UNUSED)
{
    assert_int_equal(enter(0, ANN, 4, 2), UPLOADS_ENTERED);
    assert_int_equal(enter(1, BEA, 4, 2), UPLOADS_ENTERED);
    assert_int_equal(enter(2, BEA, 4, 2), UPLOADS_FULL);
    assert_int_equal(uploads_count(handles[3]), 2);
    uploads_leave(handles[0]);
    assert_int_equal(enter(2, BEA, 4, 2), UPLOADS_ENTERED);
}

static void a_client_has_a_share_of_its_own(void **state UNUSED)
{
    assert_int_equal(enter(0, ANN, 1, 3), UPLOADS_ENTERED);
    assert_int_equal(enter(1, ANN, 1, 3), UPLOADS_CLIENT_FULL);
    assert_int_equal(enter(1, BEA, 1, 3), UPLOADS_ENTERED);
    assert_int_equal(enter(2, 0, 1, 3), UPLOADS_ENTERED); /* an exempt one */
    assert_int_equal(uploads_count(handles[3]), 3);
    assert_int_equal(enter(3, 0, 1, 4), UPLOADS_ENTERED);
}

static void the_dead_do_not_count(void **state UNUSED)
{
    int index = segment_index(handles[0]);
    assert_int_equal(enter(0, ANN, 1, 1), UPLOADS_ENTERED);
    assert_int_equal(enter(1, BEA, 1, 1), UPLOADS_FULL);
    processes_set(handles[1], index, PROCESS_DIRTY, (uint32_t)getpid());
    assert_int_equal(uploads_count(handles[1]), 0);
    assert_int_equal(enter(1, BEA, 1, 1), UPLOADS_ENTERED);
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
