/* test_long_poll: which requests may wait, and how a wait ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "operation/long_poll.h"
#include "segment/segment_open.h"

enum { HANDLES = 6, LAB = 1, DEMO = 2, ANN = 7, EVE = 8, QUEUE = 5, SHORT_MS = 30, LONG_MS = 3600000 };

#include "handles_fixture.h"

/* A request at the first handle, in LAB, of ANN. */
struct waiting {
    struct worker_context context;
    struct call call;
    struct reply reply;
    struct attempt attempt;
    struct long_poll poll;
    int steps, looks;
    int wanted_at, found_at; /* the step at which another request comes; the look that finds something */
    enum fault fault;        /* of each look */
    int64_t of_queue;        /* that wait for QUEUE, as of the last step */
};

static struct waiting *present;

static bool is_wanted(const struct worker_context *context, int wait_ms)
{
    assert_ptr_equal(context, &present->context);
    assert_true(wait_ms > 0 && wait_ms <= 10);
    present->of_queue = metrics_waiting_at(handles[0], QUEUE);
    return ++present->steps == present->wanted_at;
}

static bool is_worth_a_look(void *context)
{
    assert_ptr_equal(context, present);
    return true;
}

static enum fault look(void *context, bool *is_over_r)
{
    assert_ptr_equal(context, present);
    *is_over_r = ++present->looks == present->found_at;
    return present->fault;
}

static void prepare(struct waiting *waiting, enum pulse_wait kind, int64_t processes)
{
    *waiting = (struct waiting){
        .context = {.segment = handles[0], .is_wanted = is_wanted},
        .call = {.client = ANN, .deadline_ms = clock_monotonic_ms() + LONG_MS},
        .poll = {.kind = kind,
                 .wait_ms = LONG_MS,
                 .processes = processes,
                 .context = waiting,
                 .is_worth_a_look = is_worth_a_look,
                 .look = look},
        .found_at = 3,
    };
    waiting->attempt = (struct attempt){
        .worker_context = &waiting->context, .call = &waiting->call, .reply = &waiting->reply, .ns = LAB};
    present = waiting;
}

static void note(int handle, enum pulse_wait kind, int ns, uint64_t client)
{
    struct segment *segment = handles[handle];
    metrics_note_wait(metrics_pulse(segment, segment_index(segment)), kind, ns, client, 0);
}

static enum fault wait_now(struct waiting *waiting)
{
    enum fault fault = long_poll_wait(&waiting->attempt, &waiting->poll);
    uint64_t noted = atomic_load(&metrics_pulse(handles[0], segment_index(handles[0]))->waits_for);
    assert_true(noted == 0);
    return fault;
}

static void a_wait_ends_when_there_is_something(void **state UNUSED)
{
    struct waiting waiting;
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    assert_int_equal(waiting.looks, 3);
    assert_true(waiting.poll.pauses_ms == 0);
}

static void a_wait_gives_way(void **state UNUSED)
{
    struct waiting waiting;
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.wanted_at = 2;
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    assert_int_equal(waiting.looks, 1);
    assert_true(waiting.poll.pauses_ms >= 250 && waiting.poll.pauses_ms < 1000);
}

static void a_wait_ends_with_its_time_or_that_of_the_request(void **state UNUSED)
{
    struct waiting waiting;
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.found_at = 0;
    waiting.poll.wait_ms = SHORT_MS;
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    assert_true(waiting.poll.pauses_ms == 0);
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.call.deadline_ms = clock_monotonic_ms() + 1000; /* it needs longer for the last look */
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    assert_int_equal(waiting.looks, 0);
}

static void a_fault_of_a_look_ends_the_wait(void **state UNUSED)
{
    struct waiting waiting;
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.fault = FAULT_SCLOSED;
    assert_int_equal(wait_now(&waiting), FAULT_SCLOSED);
    assert_int_equal(waiting.looks, 1);
}

static void whoever_wants_no_wait_has_none(void **state UNUSED)
{
    struct waiting waiting;
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.poll.wait_ms = 0;
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    prepare(&waiting, PULSE_WAITS_FOR_RECORDS, 2);
    waiting.context.is_wanted = NULL;
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    assert_int_equal(waiting.looks, 0);
}

static bool may_wait(enum pulse_wait kind, int64_t processes)
{
    struct waiting waiting;
    prepare(&waiting, kind, processes);
    assert_int_equal(wait_now(&waiting), FAULT_NONE);
    return waiting.looks > 0;
}

static void no_more_processes_wait_than_may(void **state UNUSED)
{
    assert_false(may_wait(PULSE_WAITS_FOR_RECORDS, 0));
    for (int other = 1; other < 4; other++)
        note(other, PULSE_WAITS_FOR_RECORDS, DEMO, EVE);
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 4) && !may_wait(PULSE_WAITS_FOR_RECORDS, 3));
    assert_true(may_wait(PULSE_WAITS_FOR_TASK, 1)); /* those that wait for something else do not count */
    note(1, PULSE_WAITS_FOR_NOTHING, 0, 0);
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 3));
}

/* Nothing clears the pulse that it has left but its end. */
static void the_dead_do_not_wait(void **state UNUSED)
{
    int index = segment_index(handles[1]);
    note(1, PULSE_WAITS_FOR_TASK, DEMO, EVE);
    assert_false(may_wait(PULSE_WAITS_FOR_TASK, 1));
    processes_set(handles[0], index, PROCESS_DIRTY, 0);
    assert_true(may_wait(PULSE_WAITS_FOR_TASK, 1));
    note(1, PULSE_WAITS_FOR_TASK, DEMO, EVE);
    processes_set(handles[0], index, PROCESS_HELD, (uint32_t)getpid());
    assert_false(may_wait(PULSE_WAITS_FOR_TASK, 1));
}

static void a_namespace_has_half(void **state UNUSED)
{
    note(1, PULSE_WAITS_FOR_RECORDS, LAB, EVE);
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 4) && may_wait(PULSE_WAITS_FOR_RECORDS, 3));
    note(2, PULSE_WAITS_FOR_RECORDS, LAB, EVE);
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 5) && !may_wait(PULSE_WAITS_FOR_RECORDS, 4));
    note(1, PULSE_WAITS_FOR_TASK, LAB, ANN);
    note(2, PULSE_WAITS_FOR_TASK, LAB, ANN);
    assert_true(may_wait(PULSE_WAITS_FOR_TASK, 3)); /* of tasks all */
}

static void a_client_has_half(void **state UNUSED)
{
    note(1, PULSE_WAITS_FOR_RECORDS, DEMO, ANN);
    note(2, PULSE_WAITS_FOR_RECORDS, DEMO, ANN);
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 5) && !may_wait(PULSE_WAITS_FOR_RECORDS, 4));
    note(1, PULSE_WAITS_FOR_RECORDS, DEMO, 0);
    note(2, PULSE_WAITS_FOR_RECORDS, DEMO, 0); /* of unknown ones: no limit per client applies */
    assert_true(may_wait(PULSE_WAITS_FOR_RECORDS, 4));
}

static void a_wait_counts_for_its_queue(void **state UNUSED)
{
    struct waiting waiting;
    for (uint64_t place = QUEUE - 1; place <= QUEUE + 1; place++) {
        prepare(&waiting, PULSE_WAITS_FOR_TASK, 2);
        waiting.poll.queue = 1 + place;
        assert_int_equal(wait_now(&waiting), FAULT_NONE);
        assert_int_equal(waiting.of_queue, place == QUEUE);
        assert_int_equal(metrics_waiting_at(handles[0], QUEUE), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_ends_when_there_is_something),
        TEST(a_wait_gives_way),
        TEST(a_wait_ends_with_its_time_or_that_of_the_request),
        TEST(a_fault_of_a_look_ends_the_wait),
        TEST(whoever_wants_no_wait_has_none),
        TEST(no_more_processes_wait_than_may),
        TEST(the_dead_do_not_wait),
        TEST(a_namespace_has_half),
        TEST(a_client_has_half),
        TEST(a_wait_counts_for_its_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
