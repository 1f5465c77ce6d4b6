/* test_long_requests: places of long requests, their shares, trials, dead processes, and processes that come
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
#include "segment/counts/long_requests.h"
#include "segment/segment.h"
#include "segment/segment_open.h"

enum { HANDLES = 6, OTHER_INSTANCE = 2, CHOOSING = 1 };
enum { LAB = 3, DEMO = 4 };
static const uint64_t ANN = 11, BOB = 12, NOBODY = 0;

#include "handles_fixture.h"

static const struct long_shares *shares(int ns, uint64_t client, int64_t ns_most, int64_t client_most)
{
    static struct long_shares all;
    all = (struct long_shares){.ns = ns, .client = client, .ns_most = ns_most, .client_most = client_most};
    return &all;
}

static void expect(int handle, const struct long_shares *wanted, enum long_requests_entry entry)
{
    assert_int_equal(long_requests_enter(handles[handle], wanted), entry);
}

/* The trial ends without room. */
static void expect_refusal(int handle, const struct long_shares *wanted, bool is_slow,
                           enum long_requests_entry entry)
{
    assert_int_equal(long_requests_extend(handles[handle], wanted, is_slow), entry);
}

static void each_has_its_share(void **state UNUSED)
{
    assert_int_equal(long_requests_count(handles[0]), 0);
    expect(0, shares(LAB, ANN, 2, 1), LONG_REQUESTS_ENTERED);
    expect(1, shares(DEMO, BOB, 2, 1), LONG_REQUESTS_ENTERED); /* of another namespace and client */
    expect(2, shares(LAB, ANN, 2, 1), LONG_REQUESTS_ON_TRIAL);
    assert_int_equal(long_requests_count(handles[0]), 3);
    expect_refusal(2, shares(LAB, ANN, 2, 1), false, LONG_REQUESTS_CLIENT_FULL);
    assert_int_equal(long_requests_count(handles[0]), 2);
    expect(2, shares(LAB, BOB, 2, 2), LONG_REQUESTS_ENTERED); /* BOB's second, in the second of LAB */
    expect(3, shares(LAB, NOBODY, 2, 1), LONG_REQUESTS_ON_TRIAL);
    expect_refusal(3, shares(LAB, NOBODY, 2, 1), false, LONG_REQUESTS_NAMESPACE_FULL);
    long_requests_leave(handles[0]);
    expect(3, shares(LAB, ANN, 2, 1), LONG_REQUESTS_ENTERED);
    assert_int_equal(long_requests_count(handles[5]), 3);
}

static void without_a_limit_all_enter(void **state UNUSED)
{
    for (int i = 0; i < HANDLES; i++)
        expect(i, shares(LAB, ANN, 0, 0), LONG_REQUESTS_ENTERED);
}

static void clients_without_a_name_share_nothing(void **state UNUSED)
{
    for (int i = 0; i < HANDLES; i++)
        expect(i, shares(LAB, NOBODY, 0, 1), LONG_REQUESTS_ENTERED);
}

/* Whoever came first is not counted among those after it. */
static void the_first_stays_whoever_comes(void **state UNUSED)
{
    expect(0, shares(LAB, ANN, 1, 1), LONG_REQUESTS_ENTERED);
    expect(1, shares(LAB, ANN, 1, 1), LONG_REQUESTS_ON_TRIAL);
    assert_int_equal(long_requests_extend(handles[0], shares(LAB, ANN, 1, 1), false), LONG_REQUESTS_ENTERED);
    long_requests_leave(handles[0]);
    assert_int_equal(long_requests_extend(handles[1], shares(LAB, ANN, 1, 1), true), LONG_REQUESTS_ENTERED);
}

static void who_was_slow_on_trial_gets_no_other(void **state UNUSED)
{
    expect(0, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ENTERED);
    expect(1, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ON_TRIAL);
    expect_refusal(1, shares(LAB, ANN, 0, 1), false, LONG_REQUESTS_CLIENT_FULL);
    expect(1, shares(LAB, ANN, 0, 1),
           LONG_REQUESTS_ON_TRIAL); /* in a snapshot a trial cannot go on: no blame */
    expect_refusal(1, shares(LAB, ANN, 0, 1), true, LONG_REQUESTS_CLIENT_FULL);
    expect(1, shares(LAB, ANN, 0, 1), LONG_REQUESTS_CLIENT_FULL);
    assert_int_equal(long_requests_count(handles[0]), 1); /* who is refused has left */
    expect(2, shares(LAB, BOB, 0, 1), LONG_REQUESTS_ENTERED);
    expect(3, shares(LAB, BOB, 0, 1), LONG_REQUESTS_ON_TRIAL); /* another client has its own */
    long_requests_leave(handles[0]);
    expect(1, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ENTERED); /* within its share it needs none */

    expect(4, shares(LAB, ANN, 0, 1), LONG_REQUESTS_CLIENT_FULL);
    struct long_requests_suspect *suspects = handles[0]->long_requests->suspects;
    int64_t left_ms = suspects[ANN % LONG_REQUESTS_SUSPECTS].until_ms - clock_monotonic_ms();
    assert_in_range(left_ms, 5000, 10000);
    suspects[ANN % LONG_REQUESTS_SUSPECTS].until_ms = clock_monotonic_ms();
    expect(4, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ON_TRIAL);
}

static void a_namespace_that_was_slow_gets_no_other(void **state UNUSED)
{
    expect(0, shares(LAB, ANN, 1, 0), LONG_REQUESTS_ENTERED);
    expect(1, shares(LAB, BOB, 1, 0), LONG_REQUESTS_ON_TRIAL);
    expect_refusal(1, shares(LAB, BOB, 1, 0), true, LONG_REQUESTS_NAMESPACE_FULL);
    expect(2, shares(LAB, NOBODY, 1, 0), LONG_REQUESTS_NAMESPACE_FULL);
    expect(2, shares(DEMO, BOB, 1, 0), LONG_REQUESTS_ENTERED);
    expect(3, shares(DEMO, BOB, 1, 0), LONG_REQUESTS_ON_TRIAL); /* neither BOB nor DEMO is to blame */
    handles[0]->long_requests->namespaces_until_ms[LAB] = clock_monotonic_ms();
    expect(4, shares(LAB, NOBODY, 1, 0), LONG_REQUESTS_ON_TRIAL);
}

static void places_of_the_dead_do_not_count(void **state UNUSED)
{
    int index = segment_index(handles[0]);
    const struct long_shares *one = shares(LAB, ANN, 1, 1);
    expect(0, one, LONG_REQUESTS_ENTERED);
    processes_set(handles[1], index, PROCESS_DIRTY, (uint32_t)getpid());
    assert_int_equal(long_requests_count(handles[1]), 0);
    expect(1, one, LONG_REQUESTS_ENTERED);
    long_requests_leave(handles[1]);
    processes_set(handles[1], index, PROCESS_HELD, (uint32_t)getpid() + 1); /* its successor */
    assert_int_equal(long_requests_count(handles[1]), 0);
    expect(1, one, LONG_REQUESTS_ENTERED);
}

/* Accounts cost nothing, and so do addresses to whoever has many: neither multiplies the share of the other.
 */
static void an_account_has_one_share_wherever_it_is(void **state UNUSED)
{
    struct long_shares wanted = *shares(LAB, ANN, 0, 1);
    wanted.account = 21;
    expect(0, &wanted, LONG_REQUESTS_ENTERED);
    wanted.client = BOB;
    expect(1, &wanted, LONG_REQUESTS_ON_TRIAL);
    expect_refusal(1, &wanted, false, LONG_REQUESTS_CLIENT_FULL);
    wanted.client = NOBODY; /* it is exempt, the account is not */
    expect(1, &wanted, LONG_REQUESTS_ON_TRIAL);
    expect_refusal(1, &wanted, false, LONG_REQUESTS_CLIENT_FULL);
    wanted = (struct long_shares){.ns = LAB, .client = ANN, .account = 22, .client_most = 1};
    expect(1, &wanted, LONG_REQUESTS_ON_TRIAL);
    expect_refusal(1, &wanted, false, LONG_REQUESTS_CLIENT_FULL);
    wanted.client = BOB;
    expect(1, &wanted, LONG_REQUESTS_ENTERED);
}

/* Two instances on one host share a segment, and have workers of their own. */
static void other_instances_do_not_count(void **state UNUSED)
{
    int index;
    struct segment *other;
    char problem[256];
    assert_true(segment_open(&other, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_int_equal(processes_take(other, OTHER_INSTANCE, 2, 1, &index), 1);
    processes_set(other, index, PROCESS_HELD, (uint32_t)getpid());
    segment_join(other, index);
    assert_int_equal(long_requests_enter(other, shares(LAB, ANN, 1, 1)), LONG_REQUESTS_ENTERED);
    expect(0, shares(LAB, ANN, 1, 1), LONG_REQUESTS_ENTERED);
    assert_int_equal(long_requests_count(handles[0]), 1);
    segment_close(other);
}

/* Its place in the order is not known yet: it may come first. */
static void one_that_is_choosing_counts(void **state UNUSED)
{
    struct long_requests_slot *slot = &handles[0]->long_requests->slots[segment_index(handles[0])];
    expect(0, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ENTERED);
    slot->ticket.ticket = CHOOSING;
    expect(1, shares(LAB, ANN, 0, 1), LONG_REQUESTS_ON_TRIAL);
}

/* --- processes that come together --- */

enum { ROUNDS = 20000, MOST = 2 };
static struct shared {
    _Atomic int inside, entered;
} * shared;

static void crowd_in(void *argument)
{
    struct segment *segment = handles[*(int *)argument];
    const struct long_shares two = {.ns = LAB, .client = NOBODY, .ns_most = MOST};
    processes_set(segment, segment_index(segment), PROCESS_HELD, (uint32_t)getpid());
    for (int i = 0; i < ROUNDS; i++) {
        enum long_requests_entry entry = long_requests_enter(segment, &two);
        if (entry == LONG_REQUESTS_ENTERED) {
            DEMAND(atomic_fetch_add(&shared->inside, 1) < MOST);
            atomic_fetch_add(&shared->entered, 1);
            if (i % 64 == 0)
                sched_yield();
            atomic_fetch_sub(&shared->inside, 1);
        }
        if (entry == LONG_REQUESTS_ENTERED || entry == LONG_REQUESTS_ON_TRIAL)
            long_requests_leave(segment);
    }
}

static void no_more_than_the_share_enter(void **state UNUSED)
{
    shared = mapping_share(sizeof *shared);
    child_crowd(HANDLES, crowd_in);
    assert_true(shared->entered > 0);
    assert_int_equal(long_requests_count(handles[0]), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_has_its_share),
        TEST(without_a_limit_all_enter),
        TEST(clients_without_a_name_share_nothing),
        TEST(an_account_has_one_share_wherever_it_is),
        TEST(the_first_stays_whoever_comes),
        TEST(who_was_slow_on_trial_gets_no_other),
        TEST(a_namespace_that_was_slow_gets_no_other),
        TEST(places_of_the_dead_do_not_count),
        TEST(other_instances_do_not_count),
        TEST(one_that_is_choosing_counts),
        TEST(no_more_than_the_share_enter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
