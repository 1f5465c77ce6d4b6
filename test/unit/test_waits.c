/* test_waits: workers that wait for the answer to a commit: when others must not begin to, and who gives up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/segment_open.h"
#include "segment/counts/waits.h"

enum { HANDLES = 3, OTHER_INSTANCE = 2, NOW = 1000000, SHORT = NOW - 500, LONG = NOW - 5000 };

#include "handles_fixture.h"

static void one_of_two_stays_free(void **state UNUSED)
{
    assert_false(waits_are_crowded(handles[0], 2, NOW));
    waits_begin(handles[1], LONG);
    assert_true(waits_are_crowded(handles[0], 2, NOW));
    assert_false(waits_are_crowded(handles[0], 3, NOW));
    waits_end(handles[1]);
    assert_false(waits_are_crowded(handles[0], 2, NOW));
}

/* A commit of half a second is no reason to refuse others. */
static void a_short_wait_hinders_nobody(void **state UNUSED)
{
    waits_begin(handles[1], SHORT);
    assert_false(waits_gives_up(handles[1], 2, NOW));
    assert_false(waits_are_crowded(handles[0], 2, NOW));
}

static void a_long_commit_waits_from_its_limit_on(void **state UNUSED)
{
    waits_begin(handles[1], NOW + 10000);
    assert_false(waits_are_crowded(handles[0], 2, NOW));
    assert_true(waits_are_crowded(handles[0], 2, NOW + 20000));
}

static void a_single_worker_waits(void **state UNUSED)
{
    waits_begin(handles[1], LONG);
    assert_false(waits_are_crowded(handles[0], 1, NOW));
}

static void one_of_those_that_wait_gives_up(void **state UNUSED)
{
    int count = 0;
    for (int i = 0; i < HANDLES; i++)
        waits_begin(handles[i], LONG);
    for (int i = 0; i < HANDLES; i++)
        count += waits_gives_up(handles[i], HANDLES, NOW);
    assert_int_equal(count, 1);
}

/* Killed while it opened a session: nobody may ever take its entry again. */
static void a_dead_process_waits_for_nothing(void **state UNUSED)
{
    int index = segment_index(handles[1]);
    waits_begin(handles[1], LONG);
    processes_set(handles[1], index, PROCESS_FREE, 0);
    assert_false(waits_are_crowded(handles[0], 2, NOW));
    processes_set(handles[1], index, PROCESS_HELD, 1);
    segment_join(handles[1], index);
    assert_false(waits_are_crowded(handles[0], 2, NOW));
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
    waits_begin(other, LONG);
    assert_false(waits_are_crowded(handles[0], 2, NOW));
    segment_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

static void silence_lasts_until_an_answer_or_its_end(void **state UNUSED)
{
    assert_false(waits_is_silent(handles[1], 0, NOW));
    waits_note_silence(handles[0], 0, NOW + 10);
    assert_true(waits_is_silent(handles[1], 0, NOW + 9));
    assert_false(waits_is_silent(handles[1], 1, NOW + 9)); /* another cell */
    assert_false(waits_is_silent(handles[1], 0, NOW + 10));
    waits_note_answer(handles[0], 0);
    assert_false(waits_is_silent(handles[1], 0, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_of_two_stays_free),
        TEST(a_short_wait_hinders_nobody),
        TEST(a_long_commit_waits_from_its_limit_on),
        TEST(a_single_worker_waits),
        TEST(one_of_those_that_wait_gives_up),
        TEST(silence_lasts_until_an_answer_or_its_end),
        TEST(a_dead_process_waits_for_nothing),
        TEST(other_instances_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
