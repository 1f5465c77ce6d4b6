/* test_hashers: the share of workers at digests of passwords: dead processes, and processes that come
 * together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "edge/mapping.h"
#include "segment/counts/hashers.h"
#include "segment/segment_open.h"

enum { HANDLES = 6, OTHER_INSTANCE = 2, ROUNDS = 20000, MOST = 2 };

#include "handles_fixture.h"

static bool enter(struct segment *segment, int64_t most)
{
    return hashers_enter(segment, &(struct hashers_room){.most = most}, false);
}

static void no_more_enter_than_the_share(void **state UNUSED)
{
    assert_int_equal(hashers_count(handles[0]), 0);
    assert_true(enter(handles[0], 2));
    assert_true(enter(handles[1], 2));
    assert_false(enter(handles[2], 2));
    assert_int_equal(hashers_count(handles[5]), 2);
    assert_true(enter(handles[3], 3));
    hashers_leave(handles[0]);
    hashers_leave(handles[3]);
    assert_true(enter(handles[2], 2));
}

static struct tickets_slot *waiting_slot(int handle)
{
    return &handles[handle]->hashers->waiting[segment_index(handles[handle])];
}

static void who_may_wait_comes_first(void **state UNUSED)
{
    const struct hashers_room room = {.most = 1, .waiting_most = 2};
    assert_true(enter(handles[0], 1));
    tickets_take(waiting_slot(1), &handles[1]->hashers->next);
    hashers_leave(handles[0]);
    assert_false(hashers_enter(handles[2], &room, false)); /* the place is for the one who waits */
    assert_false(
        hashers_enter(handles[2], &room, true)); /* who comes later waits in vain, for no time here */
    assert_int_equal(hashers_count(handles[0]), 0);
    tickets_leave(waiting_slot(1));
    assert_true(hashers_enter(handles[2], &room, true));
}

static void the_queue_is_short(void **state UNUSED)
{
    const struct hashers_room room = {.most = 1, .waiting_most = 1, .wait_ms = INT32_MAX};
    assert_true(enter(handles[0], 1));
    tickets_take(waiting_slot(1), &handles[1]->hashers->next);
    assert_false(hashers_enter(handles[2], &room, true)); /* at once */
    processes_set(handles[1], segment_index(handles[1]), PROCESS_DIRTY, (uint32_t)getpid());
    hashers_leave(handles[0]);
    assert_true(hashers_enter(handles[2], &room, true)); /* the dead do not wait */
}

static void leave_later(void *argument UNUSED)
{
    clock_sleep_ms(50);
    hashers_leave(handles[0]);
}

static void who_waits_gets_the_place_that_is_left(void **state UNUSED)
{
    const struct hashers_room room = {.most = 1, .waiting_most = 1, .wait_ms = INT32_MAX};
    assert_true(enter(handles[0], 1));
    pid_t pid = child_start(leave_later, NULL);
    assert_true(hashers_enter(handles[1], &room, true));
    child_expect(pid);
}

static void the_dead_do_not_count(void **state UNUSED)
{
    int index = segment_index(handles[0]);
    assert_true(enter(handles[0], 1));
    assert_false(enter(handles[1], 1));
    processes_set(handles[1], index, PROCESS_DIRTY, (uint32_t)getpid());
    assert_true(enter(handles[1], 1));
    hashers_leave(handles[1]);
    processes_set(handles[1], index, PROCESS_HELD, (uint32_t)getpid() + 1); /* its successor */
    assert_int_equal(hashers_count(handles[1]), 0);
    assert_true(enter(handles[1], 1));
}

static void other_instances_do_not_count(void **state UNUSED)
{
    int index;
    struct segment *other;
    char problem[256];
    assert_true(segment_open(&other, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_int_equal(processes_take(other, OTHER_INSTANCE, 2, 1, &index), 1);
    processes_set(other, index, PROCESS_HELD, (uint32_t)getpid());
    segment_join(other, index);
    assert_true(enter(other, 1));
    assert_true(enter(handles[0], 1));
    assert_int_equal(hashers_count(handles[0]), 1);
    segment_close(other);
}

static struct shared {
    _Atomic int inside, entered;
} * shared;

static void crowd_in(void *argument)
{
    struct segment *segment = handles[*(int *)argument];
    processes_set(segment, segment_index(segment), PROCESS_HELD, (uint32_t)getpid());
    for (int i = 0; i < ROUNDS; i++) {
        if (!enter(segment, MOST))
            continue;
        DEMAND(atomic_fetch_add(&shared->inside, 1) < MOST);
        atomic_fetch_add(&shared->entered, 1);
        if (i % 64 == 0)
            sched_yield();
        atomic_fetch_sub(&shared->inside, 1);
        hashers_leave(segment);
    }
}

static void processes_that_come_together(void **state UNUSED)
{
    shared = mapping_share(sizeof *shared);
    child_crowd(HANDLES, crowd_in);
    assert_true(shared->entered > 0);
    assert_int_equal(hashers_count(handles[0]), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_more_enter_than_the_share), TEST(who_may_wait_comes_first),
        TEST(the_queue_is_short),           TEST(who_waits_gets_the_place_that_is_left),
        TEST(the_dead_do_not_count),        TEST(other_instances_do_not_count),
        TEST(processes_that_come_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
