/* test_limiter: rates and bursts, subjects that share a line, full lines, entries that a dead process left,
 * processes that count at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "segment/counts/limiter.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024, LAB = 3, DEMO = 4, REQUESTS = 1, WRITES = 2 };
static const int64_t NOW = 5000000;
static const struct limiter_rate TEN = {.count = 600, .period_ms = 60000, .burst = 10}; /* one in 100 ms */

static struct segment *segment, *other; /* two handles of one segment, as of two processes */

static int open_two(void **state UNUSED)
{
    char problem[256];
    folder_make();
    assert_true(segment_open(&segment, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_true(segment_open(&other, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    return 0;
}

static int close_two(void **state UNUSED)
{
    segment_close(segment);
    segment_close(other);
    folder_remove();
    return 0;
}

static uint64_t key_of(int ns, int kind, const char *subject)
{
    return limiter_key(segment, ns, kind, bytes_of(subject));
}

/* A key of the first line. */
static uint64_t first_line(uint64_t tag)
{
    return tag << 40;
}

/* How many of `count` are admitted. */
static int take_many(struct segment *handle, uint64_t key, const struct limiter_rate *rate, int count,
                     int64_t now_ms)
{
    int admitted = 0;
    for (int i = 0; i < count; i++)
        admitted += limiter_take(handle, key, rate, 1, now_ms) == 0;
    return admitted;
}

static void the_burst_is_admitted_then_the_rate(void **state UNUSED)
{
    uint64_t ann = key_of(LAB, REQUESTS, "ann");
    assert_int_equal(take_many(segment, ann, &TEN, 5, NOW), 5);
    assert_int_equal(take_many(other, ann, &TEN, 9, NOW), 5);
    assert_int_equal(limiter_take(segment, ann, &TEN, 1, NOW), 100);
    assert_int_equal(limiter_take(segment, ann, &TEN, 3, NOW), 300);
    assert_int_equal(limiter_take(segment, ann, &TEN, 1, NOW + 99), 1);
    assert_int_equal(limiter_take(segment, ann, &TEN, 1, NOW + 100), 0);
    assert_int_equal(limiter_take(segment, ann, &TEN, 1, NOW + 100), 100);
    assert_int_equal(take_many(segment, ann, &TEN, 20, NOW + 600), 5);
    assert_int_equal(take_many(segment, ann, &TEN, 20, NOW + 100000), 10); /* never more at once */
}

static void a_look_counts_nothing(void **state UNUSED)
{
    uint64_t ann = key_of(LAB, REQUESTS, "ann");
    assert_int_equal(limiter_look(segment, ann, &TEN, 1, NOW), 0);
    assert_int_equal(take_many(segment, ann, &TEN, 10, NOW), 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(limiter_look(segment, ann, &TEN, 1, NOW), 100);
    assert_int_equal(limiter_look(segment, ann, &TEN, 1, NOW + 100), 0);
    assert_int_equal(limiter_use(segment, NOW).used, 1);
    limiter_forget(segment, ann, NOW);
    assert_int_equal(limiter_use(segment, NOW).used, 0);
    assert_int_equal(take_many(segment, ann, &TEN, 20, NOW), 10);
    limiter_forget(segment, key_of(LAB, REQUESTS, "nobody"), NOW);
}

static void what_is_given_back_was_not_taken(void **state UNUSED)
{
    uint64_t ann = key_of(LAB, REQUESTS, "ann"), bob = key_of(LAB, REQUESTS, "bob");
    assert_int_equal(take_many(segment, ann, &TEN, 10, NOW), 10);
    limiter_give_back(segment, ann, &TEN, NOW);
    assert_int_equal(take_many(segment, ann, &TEN, 20, NOW), 1);
    assert_int_equal(take_many(segment, bob, &TEN, 1, NOW), 1);
    for (int i = 0; i < 3; i++)
        limiter_give_back(segment, bob, &TEN, NOW); /* never more than there was */
    assert_int_equal(take_many(segment, bob, &TEN, 20, NOW), 10);
    limiter_give_back(segment, key_of(LAB, REQUESTS, "nobody"), &TEN, NOW);
    assert_int_equal(limiter_use(segment, NOW).used, 2);
}

static void each_subject_has_its_own(void **state UNUSED)
{
    const uint64_t keys[] = {key_of(LAB, REQUESTS, "ann"), key_of(LAB, REQUESTS, "bob"),
                             key_of(LAB, WRITES, "ann"), key_of(DEMO, REQUESTS, "ann"),
                             key_of(LAB, REQUESTS, "")};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_int_equal(take_many(segment, keys[i], &TEN, 20, NOW), 10);
    assert_int_equal(limiter_use(segment, NOW).used, COUNT_OF(keys));
    assert_true(limiter_key(segment, LAB, 1, BYTES("ann")) == limiter_key(other, LAB, 1, BYTES("ann")));
}

static void extreme_rates(void **state UNUSED)
{
    const struct limiter_rate daily = {1, 86400000, 1}, fast = {1000000, 60000, 3}, cut = {1, 86400000, 1000};
    const struct limiter_rate huge = {INT64_MAX / 2, 60000, INT64_MAX / 2};
    assert_int_equal(limiter_take(segment, first_line(1), &daily, 1, NOW), 0);
    assert_int_equal(limiter_take(segment, first_line(1), &daily, 1, NOW), 86400000);
    assert_int_equal(limiter_take(segment, first_line(1), &daily, 1, NOW + 86400000), 0);
    assert_int_equal(take_many(segment, first_line(2), &fast, 9, NOW), 3);
    assert_int_equal(limiter_take(segment, first_line(2), &fast, 1, NOW), 1);
    assert_int_equal(limiter_take(segment, first_line(2), &fast, 100, NOW + 1), 0); /* the whole burst */
    assert_int_equal(take_many(segment, first_line(3), &cut, 20, NOW), 6);
    assert_int_equal(take_many(segment, first_line(4), &huge, 1000, NOW), 1000);
}

static void time_wraps_around(void **state UNUSED)
{
    int64_t end = INT64_C(1) << 37; /* 2^40 ticks */
    for (int64_t now = end - 200; now < end + 400; now += 100)
        assert_int_equal(take_many(segment, first_line(1), &TEN, 20, now), now == end - 200 ? 10 : 1);
    assert_int_equal(take_many(segment, first_line(1), &TEN, 20, end + end / 2), 10); /* long past */
}

/* --- a full line --- */

static void a_paid_counter_goes_to_another(void **state UNUSED)
{
    for (uint64_t tag = 1; tag <= 3 * LIMITER_CELLS; tag++)
        assert_int_equal(take_many(segment, first_line(tag), &TEN, 20, NOW + (int64_t)tag * 1000), 10);
    assert_int_equal(limiter_use(segment, NOW + 3000 * LIMITER_CELLS).evicted, 0);
}

/* Who owes least goes: it is admitted anew, the others stay refused. */
static void of_a_full_line_the_least_is_evicted(void **state UNUSED)
{
    for (uint64_t tag = 1; tag <= LIMITER_CELLS; tag++)
        assert_int_equal(take_many(segment, first_line(tag), &TEN, tag == 3 ? 2 : 20, NOW),
                         tag == 3 ? 2 : 10);
    assert_int_equal(limiter_use(segment, NOW).evicted, 0);
    assert_int_equal(take_many(segment, first_line(99), &TEN, 20, NOW), 10);
    assert_int_equal(limiter_use(segment, NOW).evicted, 1);
    for (uint64_t tag = 1; tag <= LIMITER_CELLS; tag++)
        if (tag != 3)
            assert_int_equal(take_many(segment, first_line(tag), &TEN, 20, NOW), 0);
    assert_int_equal(limiter_use(segment, NOW).used, LIMITER_CELLS);
    assert_int_equal(limiter_use(segment, NOW).most, SLOTS / 8 * LIMITER_CELLS);
}

/* Many strangers with an event each leave those alone that owe more. */
static void strangers_evict_each_other(void **state UNUSED)
{
    uint64_t admitted = 0;
    assert_int_equal(take_many(segment, first_line(1), &TEN, 20, NOW), 10);
    for (uint64_t tag = 2; tag < 5000; tag++)
        admitted += limiter_take(segment, first_line(tag), &TEN, 1, NOW) == 0;
    assert_int_equal(admitted, 4998); /* nobody is refused for lack of room */
    assert_int_equal(take_many(segment, first_line(1), &TEN, 20, NOW), 0);
}

/* --- the death of a process --- */

/* Its ticket stands, its cell does not. */
static void an_entry_without_its_process(void **state UNUSED)
{
    struct limiter_line *line = segment->limiter->lines;
    for (uint64_t is_filled = 0; is_filled < 2; is_filled++) {
        uint64_t tag = 7 + is_filled, charge = 8 * 100;
        uint64_t ticket = UINT64_C(1) << 57 | is_filled << 54 | tag << 30 | charge;
        atomic_store(&line->ticket, ticket);
        if (is_filled)
            atomic_store(&line->cells[1], tag << 40 | (uint64_t)(NOW * 8 + 800));
        assert_int_equal(take_many(segment, first_line(tag), &TEN, 20, NOW), 9); /* its event counts */
        assert_int_equal(atomic_load(&line->ticket), ticket & ~(UINT64_C(1) << 57));
    }
    assert_int_equal(take_many(segment, first_line(9), &TEN, 20, NOW), 10);
    assert_int_equal(limiter_use(segment, NOW).used, 3);
}

/* --- many processes --- */

enum { CHILDREN = 4, SUBJECTS = 20, ACTIVE = 2, STEPS = 3000, STEP_MS = 10, TRIES = 8 };
static const struct limiter_rate QUICK = {.count = 1, .period_ms = 4, .burst = 4};

/* Shared with the children. */
static struct stage {
    _Atomic int64_t step, arrived, deaths;
    _Atomic int64_t admitted[SUBJECTS];
} * stage;

static uint64_t subject_of(int64_t step, int place)
{
    return (uint64_t)(step * 7 + place * 3) % SUBJECTS;
}

static void count_in_steps(void *argument UNUSED)
{
    for (int64_t step = 1; step <= STEPS; step++) {
        while (atomic_load(&stage->step) < step)
            sched_yield();
        for (int i = 0; i < TRIES; i++) {
            uint64_t subject = subject_of(step, i % ACTIVE);
            if (!limiter_take(other, first_line(1 + subject), &QUICK, 1, NOW + step * STEP_MS))
                atomic_fetch_add(&stage->admitted[subject], 1);
        }
        atomic_fetch_add(&stage->arrived, 1);
    }
}

static void open_stage(void)
{
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(stage != MAP_FAILED);
}

/* All act at one instant, on subjects that share a line and are given each other's cells; then the clock
 * moves.  Each instant admits exactly what one process alone would be granted. */
static void together_they_are_granted_what_one_is(void **state UNUSED)
{
    pid_t children[CHILDREN];
    int64_t paid_ms[SUBJECTS] = {0};
    open_stage();
    for (int i = 0; i < CHILDREN; i++)
        children[i] = child_start(count_in_steps, NULL);
    for (int64_t step = 1; step <= STEPS; step++) {
        int64_t now_ms = NOW + step * STEP_MS;
        atomic_store(&stage->step, step);
        while (atomic_load(&stage->arrived) < step * CHILDREN)
            sched_yield();
        for (int place = 0; place < ACTIVE; place++) {
            uint64_t subject = subject_of(step, place);
            int64_t debt_ms = paid_ms[subject] > now_ms ? paid_ms[subject] - now_ms : 0;
            int64_t granted = (QUICK.burst * QUICK.period_ms - debt_ms) / QUICK.period_ms;
            assert_int_equal(atomic_exchange(&stage->admitted[subject], 0), granted);
            paid_ms[subject] = now_ms + debt_ms + granted * QUICK.period_ms;
        }
    }
    for (int i = 0; i < CHILDREN; i++)
        child_expect(children[i]);
    assert_int_equal(limiter_use(segment, NOW).evicted, 0);
    munmap(stage, sizeof *stage);
}

enum { PAIR = 2, ROUNDS = 100000, FRESH = 3 };
static const struct limiter_rate ONCE = {.count = 1, .period_ms = 4, .burst = 1};

static void await_round(int64_t round)
{
    atomic_fetch_add(&stage->arrived, 1);
    for (int spins = 0; atomic_load(&stage->arrived) < round * PAIR; spins++)
        if (spins > 1000)
            sched_yield();
}

static void enter_subjects(int64_t of)
{
    for (int64_t round = 1; round <= ROUNDS; round++) {
        await_round(round);
        for (int64_t i = 0; i < FRESH; i++) {
            uint64_t tag = (uint64_t)(1 + round % 1000 * FRESH + (of ? FRESH - 1 - i : i));
            if (!limiter_take(of ? segment : other, first_line(tag), &ONCE, 1, NOW + round * STEP_MS))
                atomic_fetch_add(&stage->admitted[0], 1);
        }
    }
}

static void enter_as_second(void *argument UNUSED)
{
    enter_subjects(1);
}

/* Two processes enter the same subjects into one line, each of which admits one event. */
static void a_subject_enters_once(void **state UNUSED)
{
    open_stage();
    pid_t second = child_start(enter_as_second, NULL);
    enter_subjects(0);
    child_expect(second);
    assert_int_equal(atomic_load(&stage->admitted[0]), ROUNDS * FRESH);
    munmap(stage, sizeof *stage);
}

static const struct limiter_rate MANY = {.count = 1, .period_ms = 1000, .burst = 400000};

static void count_forever(void *argument UNUSED)
{
    for (uint64_t i = 0;; i++)
        if (!limiter_take(other, first_line(1 + i % 9), &MANY, 1, NOW))
            atomic_fetch_add(&stage->admitted[i % 9], 1);
}

/* Killed anywhere: what they were granted, and at most one event more each, is counted; all goes on. */
static void killed_processes_leave_a_line_that_works(void **state UNUSED)
{
    open_stage();
    for (int round = 0; round < 40; round++) {
        pid_t children[CHILDREN];
        for (int i = 0; i < CHILDREN; i++)
            children[i] = child_start(count_forever, NULL);
        clock_sleep_ms(1 + rand() % 10);
        for (int i = 0; i < CHILDREN; i++)
            child_kill(children[i]);
        for (uint64_t tag = 1; tag <= 9; tag++)
            assert_int_equal(limiter_take(segment, first_line(tag + 100), &TEN, 1, NOW + round * 1000), 0);
        assert_false(atomic_load(&segment->limiter->lines[0].ticket) & UINT64_C(1) << 57);
    }
    munmap(stage, sizeof *stage);
}

static const struct limiter_rate LARGE = {.count = 1, .period_ms = 1, .burst = 5000000};

static void count_one(void *argument UNUSED)
{
    for (;;)
        if (!limiter_take(other, first_line(5), &LARGE, 1, NOW))
            atomic_fetch_add(&stage->admitted[0], 1);
}

static void events_of_killed_processes_are_counted(void **state UNUSED)
{
    int64_t deaths = 0;
    open_stage();
    for (; deaths < 60; deaths += 2) {
        pid_t one = child_start(count_one, NULL), two = child_start(count_one, NULL);
        clock_sleep_ms(1 + rand() % 3);
        child_kill(one);
        child_kill(two);
    }
    int64_t admitted = atomic_load(&stage->admitted[0]);
    while (!limiter_take(segment, first_line(5), &LARGE, 1, NOW))
        admitted++;
    assert_in_range(admitted, LARGE.burst - deaths, LARGE.burst);
    munmap(stage, sizeof *stage);
}

int main(void)
{
#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, open_two, close_two)
    const struct CMUnitTest tests[] = {
        WITH_TWO(the_burst_is_admitted_then_the_rate),
        WITH_TWO(a_look_counts_nothing),
        WITH_TWO(what_is_given_back_was_not_taken),
        WITH_TWO(each_subject_has_its_own),
        WITH_TWO(extreme_rates),
        WITH_TWO(time_wraps_around),
        WITH_TWO(a_paid_counter_goes_to_another),
        WITH_TWO(of_a_full_line_the_least_is_evicted),
        WITH_TWO(strangers_evict_each_other),
        WITH_TWO(an_entry_without_its_process),
        WITH_TWO(together_they_are_granted_what_one_is),
        WITH_TWO(a_subject_enters_once),
        WITH_TWO(killed_processes_leave_a_line_that_works),
        WITH_TWO(events_of_killed_processes_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
