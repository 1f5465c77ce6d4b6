/* agenda: a heap against sorting; which task is next, in queues, domains and batches; what scans bring and
 * take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "queue/agenda.h"
#include "queue/latency_estimate.h"

/* --- the heap --- */

struct number {
    struct heap_link link;
    int value;
};

static bool is_less(const struct heap_link *a, const struct heap_link *b)
{
    return ((const struct number *)a)->value < ((const struct number *)b)->value;
}

static void what_comes_out_is_sorted(void **state UNUSED)
{
    enum { MOST = 300 };
    static struct number numbers[MOST];
    unsigned seed = 4711;
    for (int round = 0; round < 200; round++) {
        struct heap heap = {.is_before = is_less};
        size_t count = (size_t)rand_r(&seed) % MOST, left = 0;
        for (size_t i = 0; i < count; i++) {
            numbers[i] = (struct number){.value = rand_r(&seed) % 50};
            heap_add(&heap, &numbers[i].link);
        }
        for (size_t i = 0; i < count; i++) { /* some are taken from the middle */
            if (rand_r(&seed) % 3 == 0)
                heap_remove(&heap, &numbers[i].link);
            left += numbers[i].link.place != 0;
        }
        assert_int_equal(heap.count, left);
        for (int last = -1; left; left--) {
            struct number *first = (struct number *)heap_first(&heap);
            assert_true(first->value >= last);
            last = first->value;
            heap_remove(&heap, &first->link);
            assert_int_equal(first->link.place, 0);
        }
        assert_null(heap_first(&heap));
        heap_free(&heap);
    }
}

/* --- the agenda --- */

static const int plenty[AGENDA_QUEUES] = {100};

static bool put(struct agenda *agenda, const char *id, int64_t start_ms)
{
    return agenda_put(agenda,
                      &(struct agenda_entry){.id = bytes_of(id), .start_ms = start_ms, .priority = 20});
}

static void put_entry(struct agenda *agenda, const char *id, struct agenda_entry entry)
{
    entry.id = bytes_of(id);
    assert_true(agenda_put(agenda, &entry));
}

static struct agenda_task *expect(struct agenda *agenda, int64_t now_ms, const char *id)
{
    struct agenda_task *task = agenda_take(agenda, now_ms);
    assert_non_null(task);
    assert_string_equal(task->id, id);
    return task;
}

static void nothing_starts_too_early_nor_out_of_order(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put(agenda, "later", 2000);
    put(agenda, "soon", 1000);
    put_entry(agenda, "urgent", (struct agenda_entry){.start_ms = 1500, .priority = 1});
    assert_int_equal(agenda_next_ms(agenda), 1000);
    assert_null(agenda_take(agenda, 999));
    expect(agenda, 1000, "soon");
    assert_null(agenda_take(agenda, 1000));
    assert_int_equal(agenda_next_ms(agenda), 1500);
    expect(agenda, 5000, "urgent"); /* priority goes before start */
    expect(agenda, 5000, "later");
    assert_null(agenda_take(agenda, 5000));
    assert_int_equal(agenda_next_ms(agenda), INT64_MAX);
    assert_int_equal(agenda_running(agenda), 3);
    agenda_destroy(agenda);
}

static void namespaces_take_turns(void **state UNUSED)
{
    enum { MANY = 4000, FEW = 20 };
    static const int one[AGENDA_QUEUES] = {1};
    struct agenda *agenda = agenda_create(one, MANY);
    char id[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "many%d", i);
        put_entry(agenda, id, (struct agenda_entry){.ns = 3}); /* of the best priority */
    }
    for (int i = 0; i < FEW; i++) { /* beyond what may be known in all, too */
        snprintf(id, sizeof id, "few%d", i);
        put_entry(agenda, id, (struct agenda_entry){.ns = i % 2 ? 0 : 7, .start_ms = 50, .priority = 200});
    }
    int few = 0, places = 0;
    for (struct agenda_task *task; few < FEW; places++) {
        task = agenda_take(agenda, 100);
        assert_non_null(task);
        few += *task->id == 'f';
        agenda_end(agenda, task, true, true);
    }
    assert_in_range(places, FEW, FEW * 3 / 2 + 1);
    agenda_destroy(agenda);
}

static bool is_quick(void *context, const struct agenda_task *task)
{
    (void)context;
    return task->priority == 1;
}

static int take_all(struct agenda *agenda, struct agenda_task **taken)
{
    int count = 0;
    while ((taken[count] = agenda_take(agenda, 100)) != NULL)
        count++;
    return count;
}

static void places_are_shared(void **state UNUSED)
{
    static const int four[AGENDA_QUEUES] = {4};
    struct agenda *agenda = agenda_create(four, 1000);
    struct agenda_task *taken[16];
    char id[16];
    agenda_judge(agenda, is_quick, NULL);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "a%d", i);
        put_entry(agenda, id, (struct agenda_entry){.ns = 1, .priority = 20});
    }
    assert_int_equal(take_all(agenda, taken), 4); /* of nobody else anything was heard */
    put_entry(agenda, "b0", (struct agenda_entry){.ns = 2, .priority = 200});
    agenda_end(agenda, taken[0], true, true);
    assert_string_equal((taken[0] = agenda_take(agenda, 100))->id, "b0");
    agenda_end(agenda, taken[0], true, true);
    assert_null(agenda_take(agenda, 100)); /* the last one is kept from the namespace that has all others */
    put_entry(agenda, "quick", (struct agenda_entry){.ns = 1, .priority = 1});
    assert_string_equal((taken[0] = agenda_take(agenda, 100))->id, "quick"); /* but for what soon ends */
    agenda_end(agenda, taken[0], true, true);
    for (int i = 1; i < 5; i++) {
        snprintf(id, sizeof id, "b%d", i);
        put_entry(agenda, id, (struct agenda_entry){.ns = 2, .priority = 200});
    }
    for (int i = 0; i < 3; i++) /* places become free: they go to the one that has fewer */
        agenda_end(agenda, taken[1 + i], true, true);
    assert_int_equal(take_all(agenda, taken), 4);
    int own = 0, free_places;
    for (int i = 0; i < 4; i++)
        own += taken[i]->ns == 1;
    assert_int_equal(own, 2);
    assert_int_equal(agenda_slots(agenda, 0, &free_places), 4);
    assert_int_equal(free_places, 4);
    for (int i = 0; i < 4; i++)
        if (taken[i]->ns == 1)
            agenda_end(agenda, taken[i], true, true);
    put_entry(agenda, "c", (struct agenda_entry){.ns = 3, .priority = 255});
    assert_int_equal(take_all(agenda, taken + 4), 2);
    for (int i = 4; i < 6; i++)
        assert_int_not_equal(taken[i]->ns, 2);
    agenda_destroy(agenda);
}

static void one_place_is_shared_in_turns_only(void **state UNUSED)
{
    static const int one[AGENDA_QUEUES] = {1};
    struct agenda *agenda = agenda_create(one, 10);
    put_entry(agenda, "a", (struct agenda_entry){.ns = 1});
    put_entry(agenda, "b", (struct agenda_entry){.ns = 2});
    struct agenda_task *task = agenda_take(agenda, 100);
    assert_non_null(task);
    assert_null(agenda_take(agenda, 100));
    agenda_end(agenda, task, true, true);
    assert_non_null(agenda_take(agenda, 100));
    agenda_destroy(agenda);
}

static void a_task_told_of_twice_is_one(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put(agenda, "one", 1000);
    put(agenda, "one", 3000); /* moved back */
    assert_null(agenda_take(agenda, 2999));
    put(agenda, "one", 500); /* and forth */
    struct agenda_task *task = expect(agenda, 500, "one");
    assert_null(agenda_take(agenda, 9000));
    put(agenda, "one", 700); /* while it runs */
    assert_null(agenda_take(agenda, 9000));
    agenda_end(agenda, task, true, false);
    task = expect(agenda, 9000, "one");
    agenda_end(agenda, task, true, false);
    assert_null(agenda_take(agenda, 9000));
    assert_int_equal(agenda_count(agenda).running + agenda_count(agenda).due + agenda_count(agenda).later, 0);
    agenda_destroy(agenda);
}

static void equal_names_in_two_namespaces_are_two_tasks(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put_entry(agenda, "one", (struct agenda_entry){.ns = 1});
    put_entry(agenda, "one", (struct agenda_entry){.ns = 2});
    assert_int_not_equal(expect(agenda, 1, "one")->ns, expect(agenda, 1, "one")->ns);
    agenda_destroy(agenda);
}

static void each_queue_has_its_places(void **state UNUSED)
{
    static const int concurrency[AGENDA_QUEUES] = {2, 1, 0, 1};
    struct agenda *agenda = agenda_create(concurrency, 100);
    struct agenda_task *task = NULL;
    int taken[AGENDA_QUEUES] = {0};
    for (int queue = 0; queue < 5; queue++)
        for (int i = 0; i < 4; i++) {
            char id[16] = {(char)('a' + queue), (char)('0' + i)};
            put_entry(agenda, id, (struct agenda_entry){.queue = queue});
        }
    for (struct agenda_task *next; (next = agenda_take(agenda, 1)) != NULL; task = next)
        taken[next->queue]++;
    assert_int_equal(taken[0], 2);
    assert_int_equal(taken[1], 1); /* those of queue 2 too */
    assert_int_equal(taken[2], 0);
    assert_int_equal(taken[3], 1); /* those of queue 4 too */
    assert_int_equal(task->queue, 3);
    agenda_end(agenda, task, true, false);
    assert_int_equal(agenda_take(agenda, 1)->queue, 3);
    assert_null(agenda_take(agenda, 1));
    agenda_destroy(agenda);
}

static void of_a_domain_one_runs(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put_entry(agenda, "a1", (struct agenda_entry){.domain = BYTES("a"), .start_ms = 1});
    put_entry(agenda, "a2", (struct agenda_entry){.domain = BYTES("a"), .start_ms = 2});
    put_entry(agenda, "b1", (struct agenda_entry){.domain = BYTES("b"), .start_ms = 3});
    put_entry(agenda, "other", (struct agenda_entry){.ns = 1, .domain = BYTES("a"), .start_ms = 4});
    struct agenda_task *first = expect(agenda, 9, "a1");
    assert_false(first->has_followers);
    struct agenda_task *other = expect(agenda, 9, "other"); /* of another namespace, whose turn it is */
    struct agenda_task *beside = expect(agenda, 9, "b1");
    assert_null(agenda_take(agenda, 9));
    assert_true(first->has_followers); /* a2 was dropped */
    assert_false(other->has_followers || beside->has_followers);
    agenda_doubt(agenda, 0);
    assert_true(beside->has_followers);
    assert_false(other->has_followers);
    agenda_end(agenda, first, true, false);
    put_entry(agenda, "a2", (struct agenda_entry){.domain = BYTES("a")}); /* told with the end of the first */
    assert_false(expect(agenda, 9, "a2")->has_followers);
    agenda_destroy(agenda);
}

static bool is_overlooked(const struct agenda *agenda, const char *id, struct agenda_entry entry)
{
    entry.id = bytes_of(id);
    return agenda_is_overlooked(agenda, &entry, 10000);
}

static void what_is_due_for_long_and_nobody_starts_is_overlooked(void **state UNUSED)
{
    static const int places[AGENDA_QUEUES] = {3, 1, 0};
    struct agenda *agenda = agenda_create(places, 100);
    const struct agenda_entry of_domain = {.domain = BYTES("a"), .start_ms = 1};
    assert_true(is_overlooked(agenda, "x", (struct agenda_entry){.start_ms = 5000}));
    assert_false(is_overlooked(agenda, "x", (struct agenda_entry){.start_ms = 5001}));
    put(agenda, "waits", 1);
    assert_false(is_overlooked(agenda, "waits", (struct agenda_entry){.start_ms = 1}));
    expect(agenda, 9, "waits");
    assert_false(is_overlooked(agenda, "waits", (struct agenda_entry){.start_ms = 1})); /* it runs */
    assert_true(is_overlooked(agenda, "a2", of_domain));
    put_entry(agenda, "a1", of_domain);
    struct agenda_task *first = expect(agenda, 9, "a1");
    assert_false(is_overlooked(agenda, "a2", of_domain)); /* it is the turn of a1 */
    assert_true(is_overlooked(agenda, "a2", (struct agenda_entry){.ns = 1, .domain = BYTES("a")}));
    agenda_end(agenda, first, true, true);
    put_entry(agenda, "slow", (struct agenda_entry){.queue = 2});
    expect(agenda, 9, "slow"); /* in the place of queue 1 */
    assert_false(is_overlooked(agenda, "x", (struct agenda_entry){.queue = 2}));
    assert_true(is_overlooked(agenda, "x", (struct agenda_entry){.queue = 0}));
    agenda_destroy(agenda);
}

static void a_batch_is_of_one_kind(void **state UNUSED)
{
    static const int one[AGENDA_QUEUES] = {1};
    struct agenda *agenda = agenda_create(one, 100);
    struct agenda_entry entry = {.operation = BYTES("Count"), .batch = 10};
    put_entry(agenda, "c1", entry);
    entry.start_ms = 1;
    put_entry(agenda, "c2", entry);
    entry.start_ms = 2;
    entry.operation = BYTES("Mail");
    put_entry(agenda, "m1", entry);
    entry.start_ms = 3;
    entry.domain = BYTES("x");
    put_entry(agenda, "d1", entry);
    struct agenda_task *first = expect(agenda, 9, "c1");
    struct agenda_task *second = agenda_see_along(agenda, first, 9);
    assert_string_equal(second->id, "c2");
    agenda_take_along(agenda, second);
    assert_null(agenda_see_along(agenda, first, 9));
    assert_null(agenda_take(agenda, 9));
    agenda_end(agenda, first, true, false);
    agenda_end(agenda, second, false, false);
    first = expect(agenda, 9, "m1");
    assert_null(agenda_see_along(agenda, first, 9)); /* a domain shares nothing */
    agenda_destroy(agenda);
}

static void who_has_failed_goes_alone(void **state UNUSED)
{
    static const int two[AGENDA_QUEUES] = {2};
    struct agenda *agenda = agenda_create(two, 100);
    put_entry(agenda, "a1", (struct agenda_entry){.operation = BYTES("A"), .batch = 1});
    put_entry(agenda, "b2", (struct agenda_entry){.operation = BYTES("B"), .batch = 1, .start_ms = 2});
    put_entry(agenda, "a3", (struct agenda_entry){.operation = BYTES("A"), .retry = 1, .start_ms = 3});
    put_entry(agenda, "a4", (struct agenda_entry){.operation = BYTES("A"), .start_ms = 4});
    put_entry(agenda, "c5", (struct agenda_entry){.operation = BYTES("C"), .batch = 2, .start_ms = 5});
    struct agenda_task *first = expect(agenda, 9, "a1");
    assert_int_equal(agenda_share(agenda, first), 3);
    struct agenda_task *second = agenda_see_along(agenda, first, 9);
    assert_string_equal(second->id, "b2"); /* of another operation */
    agenda_take_along(agenda, second);
    assert_null(agenda_see_along(agenda, first, 9));
    struct agenda_task *failed = expect(agenda, 9, "a3");
    assert_null(agenda_see_along(agenda, failed, 9));
    agenda_end(agenda, first, true, true);
    agenda_end(agenda, second, false, true);
    first = expect(agenda, 9, "a4");
    assert_int_equal(agenda_share(agenda, first), 1);
    assert_null(agenda_see_along(agenda, first, 9)); /* it shares its commit */
    agenda_destroy(agenda);
}

static void who_has_failed_leaves_the_batch(void **state UNUSED)
{
    static const int one[AGENDA_QUEUES] = {1};
    struct agenda *agenda = agenda_create(one, 100);
    struct agenda_entry entry = {.operation = BYTES("Count"), .batch = 10};
    put_entry(agenda, "c1", entry);
    entry.start_ms = 1;
    put_entry(agenda, "c2", entry);
    struct agenda_task *first = expect(agenda, 9, "c1");
    struct agenda_task *second = agenda_see_along(agenda, first, 9);
    agenda_take_along(agenda, second);
    entry.start_ms = 2;
    entry.retry = 1;
    put_entry(agenda, "c2", entry); /* the news of its failure, before the request is over */
    agenda_end(agenda, second, false, false);
    agenda_end(agenda, first, true, true);
    entry.start_ms = 3;
    entry.retry = 0;
    put_entry(agenda, "c3", entry);
    first = expect(agenda, 9, "c2");
    assert_int_equal(first->retry, 1);
    assert_null(agenda_see_along(agenda, first, 9));
    agenda_end(agenda, first, true, true);
    put_entry(agenda, "c4",
              (struct agenda_entry){.operation = BYTES("Count"), .batch = 10, .retry = 1, .start_ms = 4});
    first = expect(agenda, 9, "c3");
    assert_null(agenda_see_along(agenda, first, 9));
    agenda_destroy(agenda);
}

static void what_is_done_is_not_begun_by_old_news(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put(agenda, "once", 5);
    struct agenda_task *task = expect(agenda, 9, "once");
    put(agenda, "once", 5); /* a scan that looked before it was begun */
    agenda_end(agenda, task, true, true);
    assert_null(agenda_take(agenda, 9));
    put(agenda, "again", 5);
    task = expect(agenda, 9, "again");
    put(agenda, "again", 7); /* the next turn of a periodic one */
    agenda_end(agenda, task, true, true);
    task = expect(agenda, 9, "again");
    put(agenda, "again", 7);
    agenda_end(agenda, task, true, false); /* what became of it is not known */
    expect(agenda, 9, "again");
    agenda_destroy(agenda);
}

/* The order is that of goes_first. */
static void of_what_is_due_the_smaller_priority_then_the_earlier_then_the_first_told_goes(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put_entry(agenda, "third", (struct agenda_entry){.start_ms = 300, .priority = 20});
    put_entry(agenda, "fourth", (struct agenda_entry){.start_ms = 300, .priority = 20});
    put_entry(agenda, "second", (struct agenda_entry){.start_ms = 200, .priority = 20});
    put_entry(agenda, "first", (struct agenda_entry){.start_ms = 400, .priority = 1});
    expect(agenda, 5000, "first");
    expect(agenda, 5000, "second");
    expect(agenda, 5000, "third");
    expect(agenda, 5000, "fourth");
    agenda_destroy(agenda);
}

/* So many that some lie side by side, however names are spread. */
static void tasks_of_many_namespaces_may_have_one_name(void **state UNUSED)
{
    enum { NAMESPACES = 40, NAMES = 100 };
    struct agenda *agenda = agenda_create(plenty, NAMESPACES * NAMES);
    char id[16];
    for (int i = 0; i < NAMES; i++)
        for (int ns = 0; ns < NAMESPACES; ns++) {
            snprintf(id, sizeof id, "name%d", i);
            put_entry(agenda, id, (struct agenda_entry){.ns = ns, .start_ms = 100});
        }
    int count = 0;
    while (agenda_take(agenda, 5000))
        count++;
    assert_int_equal(count, plenty[0]);
    for (int ns = 0; ns < NAMESPACES; ns++)
        count += agenda_waiting(agenda, ns);
    assert_in_range(count, NAMESPACES * NAMES,
                    NAMESPACES * NAMES + plenty[0]); /* those that run may be counted twice */
    agenda_destroy(agenda);
}

static void what_a_scan_does_not_tell_of_has_gone(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 100);
    put(agenda, "stays", 10);
    put(agenda, "goes", 20);
    put(agenda, "far", 900); /* the scan did not look that far */
    put(agenda, "runs", 1);
    put_entry(agenda, "foreign", (struct agenda_entry){.ns = 1, .priority = 20, .start_ms = 30});
    struct agenda_task *running = expect(agenda, 1, "runs");
    agenda_begin_scan(agenda, 0);
    put(agenda, "stays", 10);
    put(agenda, "new", 40); /* a wake-up while it is under way */
    agenda_end_scan(agenda, 0, 500);
    assert_int_equal(agenda_waiting(agenda, 0), 3);
    agenda_end(agenda, running, true, false);
    expect(agenda, 999, "foreign");
    expect(agenda, 999, "stays");
    expect(agenda, 999, "new");
    expect(agenda, 999, "far");
    assert_null(agenda_take(agenda, 999));
    put(agenda, "last", 1);
    agenda_drop_ns(agenda, 0);
    assert_null(agenda_take(agenda, 999));
    agenda_destroy(agenda);
}

static void there_is_room_for_so_many(void **state UNUSED)
{
    struct agenda *agenda = agenda_create(plenty, 3000);
    char id[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(id, sizeof id, "t%d", i);
        assert_true(put(agenda, id, i));
    }
    assert_false(put(agenda, "more", 0));
    assert_true(put(agenda, "t7", 0)); /* known already */
    for (int i = 0; i < 100; i++)
        assert_non_null(agenda_take(agenda, 5000));
    assert_null(agenda_take(agenda, 5000));
    assert_true(put(agenda, "more", 0));
    agenda_destroy(agenda);
}

/* --- the pace --- */

/* From a request for so many tasks of Quick. */
static void learn(struct latency_estimate *latency_estimate, size_t count, int64_t guess_us, int64_t took_us)
{
    static const char *const operations[] = {"Quick", "Quick", "Quick", "Quick", "Quick",
                                             "Quick", "Quick", "Quick", "Quick", "Quick"};
    assert_true(count <= COUNT_OF(operations));
    latency_estimate_learn(latency_estimate, 0, operations, count, guess_us, took_us);
}

static void the_latency_estimate_of_an_operation_is_learnt(void **state UNUSED)
{
    static struct latency_estimate latency_estimate;
    assert_int_equal(latency_estimate_us(&latency_estimate, 0, "Quick"), LATENCY_UNKNOWN_US);
    learn(&latency_estimate, 1, LATENCY_UNKNOWN_US, 2000);
    assert_int_equal(latency_estimate_us(&latency_estimate, 0, "Quick"), 2000);
    assert_int_equal(latency_estimate_us(&latency_estimate, 1, "Quick"),
                     LATENCY_UNKNOWN_US); /* of another namespace */
    for (int i = 0; i < 100; i++)         /* ten of them in 5 ms */
        learn(&latency_estimate, 10, 10 * latency_estimate_us(&latency_estimate, 0, "Quick"), 5000);
    assert_in_range(latency_estimate_us(&latency_estimate, 0, "Quick"), 490, 510);
    learn(&latency_estimate, 1, 500, LATENCY_UNKNOWN_US); /* no answer */
    assert_true(latency_estimate_us(&latency_estimate, 0, "Quick") > LATENCY_UNKNOWN_US / 3);
    for (int i = 0; i < 100; i++)
        learn(&latency_estimate, 1, latency_estimate_us(&latency_estimate, 0, "Quick"), 0);
    assert_in_range(latency_estimate_us(&latency_estimate, 0, "Quick"), LATENCY_LEAST_US,
                    LATENCY_LEAST_US + 4);
}

static void a_request_is_one_observation_of_each_operation(void **state UNUSED)
{
    static struct latency_estimate latency_estimate;
    static const char *const operations[] = {"Quick", "Slow", "Quick", "Quick", "Slow", "Quick"};
    latency_estimate_learn(&latency_estimate, 0, operations, 1, LATENCY_UNKNOWN_US, 2000);
    latency_estimate_learn(&latency_estimate, 0, operations + 1, 1, LATENCY_UNKNOWN_US, 4000);
    latency_estimate_learn(&latency_estimate, 0, operations, COUNT_OF(operations), 16000,
                           32000); /* a hiccup: twice as long */
    assert_int_equal(latency_estimate_us(&latency_estimate, 0, "Quick"), 3000);
    assert_int_equal(latency_estimate_us(&latency_estimate, 0, "Slow"), 6000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_out_is_sorted),
        cmocka_unit_test(nothing_starts_too_early_nor_out_of_order),
        cmocka_unit_test(of_what_is_due_the_smaller_priority_then_the_earlier_then_the_first_told_goes),
        cmocka_unit_test(tasks_of_many_namespaces_may_have_one_name),
        cmocka_unit_test(namespaces_take_turns),
        cmocka_unit_test(places_are_shared),
        cmocka_unit_test(one_place_is_shared_in_turns_only),
        cmocka_unit_test(a_task_told_of_twice_is_one),
        cmocka_unit_test(equal_names_in_two_namespaces_are_two_tasks),
        cmocka_unit_test(each_queue_has_its_places),
        cmocka_unit_test(of_a_domain_one_runs),
        cmocka_unit_test(what_is_due_for_long_and_nobody_starts_is_overlooked),
        cmocka_unit_test(a_batch_is_of_one_kind),
        cmocka_unit_test(who_has_failed_goes_alone),
        cmocka_unit_test(who_has_failed_leaves_the_batch),
        cmocka_unit_test(what_is_done_is_not_begun_by_old_news),
        cmocka_unit_test(the_latency_estimate_of_an_operation_is_learnt),
        cmocka_unit_test(a_request_is_one_observation_of_each_operation),
        cmocka_unit_test(what_a_scan_does_not_tell_of_has_gone),
        cmocka_unit_test(there_is_room_for_so_many),
    };
    return cmocka_run_group_tests_name("agenda", tests, NULL, NULL);
}
