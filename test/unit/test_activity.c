/* test_activity: the last hour in samples: whose turn it is, which samples are kept, and which are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/counts/activity.h"
#include "segment/segment_open.h"

enum { HANDLES = 2, NOW = 1000000 };

#include "handles_fixture.h"

static struct activity_sample sample_of(int64_t ms)
{
    struct activity_sample sample = {.ms = ms, .at_ms = 7 * ms};
    for (uint64_t i = 0; i < ACTIVITY_COUNT; i++)
        sample.values[i] = (uint64_t)ms + i;
    sample.latencies[PULSE_LATENCIES - 1] = (uint64_t)ms;
    return sample;
}

static void one_of_all_masters_takes_a_sample(void **state UNUSED)
{
    assert_true(activity_take_turn(handles[0], NOW));
    assert_false(activity_take_turn(handles[1], NOW));
    assert_false(activity_take_turn(handles[0], NOW + ACTIVITY_EVERY_MS - 1));
    assert_true(activity_take_turn(handles[1], NOW + ACTIVITY_EVERY_MS));
    assert_false(activity_take_turn(handles[0], NOW + ACTIVITY_EVERY_MS));
}

/* The file of the segment may outlive the host's start. */
static void a_turn_of_a_clock_that_has_begun_anew_is_not_waited_for(void **state UNUSED)
{
    assert_true(activity_take_turn(handles[0], INT64_C(1000) * NOW));
    assert_true(activity_take_turn(handles[1], NOW));
    assert_false(activity_take_turn(handles[0], NOW + 1));
}

static void the_last_hour_is_kept(void **state UNUSED)
{
    enum { COUNT = ACTIVITY_KEPT + 2 };
    struct activity_sample found, added;
    assert_int_equal(activity_newest(handles[1]), 0);
    assert_false(activity_read(handles[1], 0, &found));
    assert_false(activity_read(handles[1], 1, &found));
    for (int i = 1; i <= COUNT; i++) {
        added = sample_of(i);
        activity_add(handles[0], &added);
    }
    assert_int_equal(activity_newest(handles[1]), COUNT);
    assert_false(activity_read(handles[1], 2, &found));
    assert_false(activity_read(handles[1], COUNT + 1, &found));
    for (uint64_t i = 3; i <= COUNT; i++) {
        assert_true(activity_read(handles[1], i, &found));
        added = sample_of((int64_t)i);
        added.number = i;
        assert_memory_equal(&found, &added, sizeof found);
    }
}

static void half_a_sample_is_none(void **state UNUSED)
{
    struct activity_sample added = sample_of(1), found;
    activity_add(handles[0], &added);
    activity_add(handles[0], &added);
    struct activity_entry *entry = &handles[0]->activity->entries[1];
    atomic_store(&entry->words[0], 0); /* as its writer leaves it that dies */
    assert_false(activity_read(handles[1], 1, &found));
    assert_true(activity_read(handles[1], 2, &found));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_of_all_masters_takes_a_sample),
        TEST(a_turn_of_a_clock_that_has_begun_anew_is_not_waited_for),
        TEST(the_last_hour_is_kept),
        TEST(half_a_sample_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
