/* test_live_round: when a horizon may be claimed, and what makes sure that nothing is missed without being
 * noted. No database: what it answers is put into the namespace, and what is done then is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>

#include "child.h"
#include "live/live_private.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"

enum { SLOTS = 1024, NS = 0, WORKER = 5, MANY = 3000 };
static const struct live_horizon before = {.life = 1, .horizon = 100}, after = {.life = 1, .horizon = 200};

static struct segment *segment;
static struct settings settings;
static struct live live;
static struct live_namespace ns, z;

static int start(void **state UNUSED)
{
    char problem[256];
    int indexes[WORKER + 1];
    folder_make();
    assert_true(segment_open(&segment, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_int_equal(namespaces_find(segment, BYTES("stampd_lab")), NS);
    assert_int_equal(processes_take(segment, 1, 1, WORKER + 1, indexes), WORKER + 1);
    segment_join(segment, indexes[WORKER]);
    live = (struct live){.settings = &settings, .segment = segment, .arena = arena_create("test"), .z = &z};
    live.subscriber = subscriber_open(segment, folder_path(""), problem, sizeof problem);
    assert_non_null(live.subscriber);
    ns = (struct live_namespace){.live = &live,
                                 .code = "lab",
                                 .database = "stampd_lab",
                                 .ns = NS,
                                 .known = before,
                                 .round_known = after,
                                 .round_is_clean = true,
                                 .round = ROUND_WAITS_FOR_ECHO,
                                 .round_number = 7};
    live.namespaces = &ns;
    ns.index = live_index_create();
    for (size_t i = 0; i < COUNT_OF(ns.news); i++)
        ns.news[i].arena = arena_create("news");
    return 0;
}

static int end(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(ns.news); i++)
        arena_destroy(ns.news[i].arena);
    live_index_destroy(ns.index);
    arena_destroy(live.arena);
    subscriber_close(live.subscriber);
    segment_close(segment);
    folder_remove();
    return 0;
}

/* Its own notification comes back. */
static void echo(void)
{
    const char *text = arena_printf(live.arena, "%016" PRIx64 ".%" PRIu64, live.nonce, ns.round_number);
    live_round_hear(&ns, bytes_of(text));
}

static void a_horizon_is_claimed_behind_the_echo(void **state UNUSED)
{
    live_round_hear(&ns, BYTES("0000000000000000.6")); /* of a former round */
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, before.horizon);
    echo();
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, after.horizon);
    assert_false(ns.wants_gap);
    assert_int_equal(ns.round, ROUND_RESTS);
}

static void a_round_waits_for_workers_that_have_not_told(void **state UNUSED)
{
    slots_begin(segment, NS);
    echo();
    assert_true(live_round_go_on(&ns));
    assert_true(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, before.horizon);
    slots_end(segment);
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, after.horizon);
}

static void a_commit_elsewhere_is_not_waited_for(void **state UNUSED)
{
    slots_begin(segment, NS + 1);
    echo();
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, after.horizon);
    slots_end(segment);
}

/* Sessions of a former generation tell nobody. */
static void while_a_former_generation_lives_everything_is_asked_for(void **state UNUSED)
{
    ns.round_is_clean = false;
    echo();
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, before.horizon);
    assert_true(ns.wants_gap);
}

static void what_was_lost_on_the_way_is_asked_for(void **state UNUSED)
{
    struct publisher *publisher = publisher_create(segment);
    subscriber_want(live.subscriber, NS, true);
    publisher_miss(publisher, NS);
    publisher_destroy(publisher);
    echo();
    assert_false(live_round_go_on(&ns));
    assert_int_equal(ns.known.horizon, before.horizon);
    assert_true(ns.wants_gap);
}

static void news_that_have_no_room_are_noted_as_missed(void **state UNUSED)
{
    ns.listener_count = 1;
    for (int i = 0; i < MANY && !ns.wants_gap; i++)
        live_namespace_hear(&ns, BYTES("A"), bytes_of(arena_printf(live.arena, "%d", i)), 0);
    assert_true(ns.wants_gap);
    assert_true(ns.news_heard < MANY);
}

/* Until then nobody has moved the stamps of what others change. */
static void who_begins_to_listen_believes_no_copy_of_before(void **state UNUSED)
{
    uint64_t first = slots_see(segment, 0).stamp, last = slots_see(segment, SLOTS - 1).stamp;
    live_asks_listen.take(&ns);
    assert_true(ns.is_listening && ns.wants_gap);
    assert_int_equal(slots_see(segment, 0).stamp, first + 1);
    assert_int_equal(slots_see(segment, SLOTS - 1).stamp, last + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_horizon_is_claimed_behind_the_echo),
        TEST(a_round_waits_for_workers_that_have_not_told),
        TEST(a_commit_elsewhere_is_not_waited_for),
        TEST(while_a_former_generation_lives_everything_is_asked_for),
        TEST(what_was_lost_on_the_way_is_asked_for),
        TEST(news_that_have_no_room_are_noted_as_missed),
        TEST(who_begins_to_listen_believes_no_copy_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
