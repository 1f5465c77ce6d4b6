/* test_writer_queue: waiting, giving back, the order of slots, owners that are slow or dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "segment/processes.h"
#include "segment/writer_queue.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024, PROCESSES = 5, SHORT_MS = 30, LONG_MS = 200000 };

static struct segment *segment;
static struct arena *arena;
static int indexes[PROCESSES];

static int open_segment(void **state UNUSED)
{
    char problem[256], path[128];
    snprintf(path, sizeof path, "%s/segment", folder_make());
    if (!segment_open(&segment, path, SLOTS, 0, problem, sizeof problem) ||
        processes_take(segment, 1, 1, PROCESSES, indexes) != PROCESSES)
        return fprintf(stderr, "%s\n", problem), -1;
    segment_join(segment, indexes[0]);
    arena = arena_create("test");
    return 0;
}

static int close_segment(void **state UNUSED)
{
    arena_destroy(arena);
    segment_close(segment);
    folder_remove();
    return 0;
}

static int64_t in_ms(int64_t ms)
{
    return clock_monotonic_ms() + ms;
}

static bool is_free(uint32_t slot)
{
    return atomic_load(writer_queue_word(segment, slot)) == 0;
}

static void a_turn_is_held_until_it_is_given(void **state UNUSED)
{
    const uint32_t slots[] = {9, 3, 9, 0, SLOTS - 1};
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
    assert_false(writer_queue_has(writer_queue, 3));
    writer_queue_take(writer_queue, slots, COUNT_OF(slots), in_ms(LONG_MS));
    for (size_t i = 0; i < COUNT_OF(slots); i++)
        assert_true(writer_queue_has(writer_queue, slots[i]) && !is_free(slots[i]));
    assert_true(is_free(1) && is_free(4) && !writer_queue_has(writer_queue, 4));
    writer_queue_take(writer_queue, slots, 2, in_ms(LONG_MS)); /* they are ours */
    writer_queue_give(writer_queue);
    for (size_t i = 0; i < COUNT_OF(slots); i++)
        assert_true(is_free(slots[i]) && !writer_queue_has(writer_queue, slots[i]));
    writer_queue_give(writer_queue);
    writer_queue_take(writer_queue, slots, 1, in_ms(LONG_MS));
    assert_true(writer_queue_has(writer_queue, 9));
    writer_queue_give(writer_queue);
}

static struct gate held;
static uint32_t slot_of_child = 5;

static void hold(void *argument)
{
    segment_join(segment, indexes[1]);
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
    writer_queue_take(writer_queue, &slot_of_child, 1, in_ms(LONG_MS));
    DEMAND(writer_queue_has(writer_queue, slot_of_child));
    gate_pass(&held);
    if (argument) /* until somebody sleeps */
        while (!(atomic_load(writer_queue_word(segment, slot_of_child)) >> 31))
            sched_yield();
    else
        for (;;)
            pause();
    writer_queue_give(writer_queue);
    DEMAND(!writer_queue_has(writer_queue, slot_of_child));
}

static void who_sleeps_is_woken(void **state UNUSED)
{
    for (int i = 0; i < 20; i++) {
        struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
        gate_open(&held);
        pid_t child = child_start(hold, &held);
        gate_await(&held);
        writer_queue_take(writer_queue, &slot_of_child, 1, in_ms(LONG_MS));
        assert_true(writer_queue_has(writer_queue, slot_of_child));
        child_expect(child);
        writer_queue_give(writer_queue);
        assert_true(is_free(slot_of_child));
        gate_close(&held);
    }
}

static void who_is_late_goes_without(void **state UNUSED)
{
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
    gate_open(&held);
    pid_t child = child_start(hold, NULL);
    gate_await(&held);
    writer_queue_take(writer_queue, &slot_of_child, 1, in_ms(20));
    assert_false(writer_queue_has(writer_queue, slot_of_child));
    writer_queue_give(writer_queue);
    assert_false(is_free(slot_of_child));
    child_kill(child);
    gate_close(&held);
}

static void what_the_dead_held_is_taken_over(void **state UNUSED)
{
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, SHORT_MS);
    gate_open(&held);
    pid_t child = child_start(hold, NULL);
    gate_await(&held);
    child_kill(child);
    assert_false(is_free(slot_of_child));
    writer_queue_take(writer_queue, &slot_of_child, 1, in_ms(LONG_MS)); /* as from one that is slow */
    assert_true(writer_queue_has(writer_queue, slot_of_child));
    writer_queue_give(writer_queue);
    assert_true(is_free(slot_of_child));
    gate_close(&held);
}

static void the_next_of_an_index_gives_back_what_the_dead_held(void **state UNUSED)
{
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
    gate_open(&held);
    pid_t child = child_start(hold, NULL);
    gate_await(&held);
    child_kill(child);
    writer_queue_recover(segment, indexes[2]);
    assert_false(is_free(slot_of_child));
    writer_queue_recover(segment, indexes[1]);
    assert_true(is_free(slot_of_child));
    writer_queue_take(writer_queue, &slot_of_child, 1, 0);
    assert_true(writer_queue_has(writer_queue, slot_of_child));
    writer_queue_recover(segment, indexes[1]);
    assert_false(is_free(slot_of_child));
    writer_queue_give(writer_queue);
    gate_close(&held);
}

static void who_was_taken_over_gives_back_nothing(void **state UNUSED)
{
    struct writer_queue *slow = writer_queue_create(arena, segment, SHORT_MS),
                        *next = writer_queue_create(arena, segment, SHORT_MS);
    writer_queue_take(slow, &slot_of_child, 1, in_ms(LONG_MS));
    segment_join(segment, indexes[3]);
    writer_queue_take(next, &slot_of_child, 1, in_ms(LONG_MS));
    assert_true(writer_queue_has(next, slot_of_child));
    writer_queue_give(slow);
    assert_false(is_free(slot_of_child));
    writer_queue_give(next);
    assert_true(is_free(slot_of_child));
    /* nor a later turn of the same process */
    writer_queue_take(slow, &slot_of_child, 1, in_ms(LONG_MS));
    writer_queue_take(next, &slot_of_child, 1, in_ms(LONG_MS));
    writer_queue_give(slow);
    assert_false(is_free(slot_of_child));
    writer_queue_give(next);
}

static void nobody_waits_against_the_order(void **state UNUSED)
{
    const uint32_t above = slot_of_child + 1, below = slot_of_child - 1;
    struct writer_queue *writer_queue = writer_queue_create(arena, segment, LONG_MS);
    gate_open(&held);
    pid_t child = child_start(hold, NULL);
    gate_await(&held);
    writer_queue_take(writer_queue, &above, 1, in_ms(LONG_MS));
    writer_queue_take(writer_queue, &slot_of_child, 1, in_ms(LONG_MS)); /* else there would be no end */
    assert_false(writer_queue_has(writer_queue, slot_of_child));
    writer_queue_take(writer_queue, &below, 1, in_ms(LONG_MS)); /* what is free is taken all the same */
    assert_true(writer_queue_has(writer_queue, below));
    writer_queue_give(writer_queue);
    child_kill(child);
    gate_close(&held);
}

/* --- many --- */

static int64_t overdue_ms; /* of what they take */

static void take_often(void *argument)
{
    int process = (int)(intptr_t)argument;
    unsigned int chance = (unsigned int)getpid();
    segment_join(segment, indexes[process]);
    for (int i = 0; i < 3000; i++) {
        struct writer_queue *writer_queue = writer_queue_create(arena, segment, overdue_ms);
        uint32_t slots[3];
        for (size_t k = 0; k < COUNT_OF(slots); k++)
            slots[k] = ((chance = chance * 1103515245 + 12345) >> 16) % 4;
        writer_queue_take(writer_queue, slots, 1 + chance % 2, in_ms(LONG_MS));
        writer_queue_take(writer_queue, slots + 2, 1, in_ms(LONG_MS));
        if (chance & 0x10000)
            sched_yield();
        writer_queue_give(writer_queue);
        arena_reset(arena);
    }
}

static void expect_all_free(const pid_t takers[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++)
        child_expect(takers[i]);
    for (uint32_t slot = 0; slot < 4; slot++)
        assert_true(is_free(slot));
}

static void nobody_is_left_asleep(void **state UNUSED)
{
    pid_t takers[PROCESSES];
    overdue_ms = LONG_MS;
    for (intptr_t i = 0; i < PROCESSES; i++)
        takers[i] = child_start(take_often, (void *)i);
    expect_all_free(takers);
}

/* One that is killed may have been woken in another's place, who then sleeps until the turn is overdue. */
static void all_come_through_beside_the_dying(void **state UNUSED)
{
    pid_t takers[PROCESSES];
    overdue_ms = SHORT_MS;
    for (intptr_t i = 0; i < PROCESSES; i++)
        takers[i] = child_start(take_often, (void *)i);
    for (int i = 0; i < 30; i++) { /* the first dies again and again, and has a successor */
        usleep(1000);
        kill(takers[0], SIGKILL);
        waitpid(takers[0], NULL, 0);
        takers[0] = child_start(take_often, (void *)0);
    }
    expect_all_free(takers);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_segment, close_segment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_turn_is_held_until_it_is_given),
        TEST(who_sleeps_is_woken),
        TEST(who_is_late_goes_without),
        TEST(what_the_dead_held_is_taken_over),
        TEST(the_next_of_an_index_gives_back_what_the_dead_held),
        TEST(who_was_taken_over_gives_back_nothing),
        TEST(nobody_waits_against_the_order),
        TEST(nobody_is_left_asleep),
        TEST(all_come_through_beside_the_dying),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
