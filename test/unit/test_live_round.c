/* test_live_round: when a horizon may be claimed, and what makes sure that nothing is missed without being
 * noted. No database: the tests pass what it would answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child.h"
#include "live/live_audience_private.h"
#include "live/live_catch_up.h"
#include "live/live_round.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024, NS = 0, WORKER = 5, MANY = 3000, NEXT = 300 };
static const struct live_horizon before = {.life = 1, .horizon = 100}, after = {.life = 1, .horizon = 200};

static struct segment *segment;
static struct settings settings;
static struct arena *arena;
static struct subscriber *subscriber;
static struct live_audiences *audiences;
static struct live_access *access_of_lab;
static struct live_ruled *ruled;
static struct live_audience *audience;
static struct live_news *news;
static struct live_catch_up *catch_up;
static struct live_round *live_round;

/* What came from the feed: the tests note it themselves. */
static void drain(void *context UNUSED)
{
}

static int start(void **state UNUSED)
{
    char problem[256];
    int indexes[WORKER + 1];
    folder_make();
    assert_true(segment_open(&segment, folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_int_equal(namespaces_find(segment, BYTES("stampd_lab")), NS);
    assert_int_equal(processes_take(segment, 1, 1, WORKER + 1, indexes), WORKER + 1);
    segment_join(segment, indexes[WORKER]);
    arena = arena_create("test");
    subscriber = feed_subscriber_open(segment, folder_path(""), problem, sizeof problem);
    assert_non_null(subscriber);
    audiences = live_audiences_create(&settings, subscriber, NULL, NULL);
    access_of_lab = live_access_create();
    audience = live_audience_create(audiences, "lab", "stampd_lab", access_of_lab);
    assert_true(live_audience_enter(audience, segment));
    namespaces_set_clean(segment, NS);
    live_audience_set_known(audience, &before);
    news = live_news_create(live_audience_index(audience));
    ruled = live_ruled_create(audience, drain, NULL);
    catch_up = live_catch_up_create(segment, subscriber, audience, ruled, "stampd_lab", NULL, NULL);
    live_round = live_round_create(&(struct live_round_parts){.segment = segment,
                                                              .audience = audience,
                                                              .news = news,
                                                              .ruled = ruled,
                                                              .catch_up = catch_up,
                                                              .nonce = 1,
                                                              .drain = drain});
    return 0;
}

static int end(void **state UNUSED)
{
    live_round_destroy(live_round);
    live_catch_up_destroy(catch_up);
    live_ruled_destroy(ruled);
    live_news_destroy(news);
    live_audience_destroy(audience);
    live_access_destroy(access_of_lab);
    live_audiences_destroy(audiences);
    arena_destroy(arena);
    feed_subscriber_close(subscriber);
    segment_close(segment);
    folder_remove();
    return 0;
}

/* Asks, and takes the horizon `after`; returns the notification that comes back. */
static struct bytes ask(void)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    live_round_query(live_round, &params);
    live_round_take(live_round, &after, NEXT);
    return (struct bytes){params.values[0], (size_t)params.lengths[0]};
}

/* Its own notification comes back. */
static void echo(void)
{
    assert_true(live_round_receive(live_round, ask()));
}

static int64_t known(void)
{
    return live_audience_known(audience)->horizon;
}

static void a_horizon_is_claimed_behind_the_echo(void **state UNUSED)
{
    live_round_begin(live_round);
    struct bytes former = ask();
    live_round_rest(live_round);
    struct bytes own = ask();
    assert_false(live_round_receive(live_round, former));
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    assert_true(live_round_receive(live_round, own));
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), after.horizon);
    assert_false(live_catch_up_has_gap(catch_up));
    assert_false(live_round_receive(live_round, own)); /* it rests */
}

static void a_round_waits_for_workers_that_have_not_told(void **state UNUSED)
{
    live_round_begin(live_round);
    slots_begin(segment, NS);
    echo();
    assert_true(live_round_go_on(live_round));
    assert_true(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    slots_end(segment);
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), after.horizon);
}

static void a_commit_elsewhere_is_not_waited_for(void **state UNUSED)
{
    live_round_begin(live_round);
    slots_begin(segment, NS + 1);
    echo();
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), after.horizon);
    slots_end(segment);
}

/* Sessions of a former generation tell nobody: none was seen to be gone before this round. */
static void while_a_former_generation_lives_everything_is_asked_for(void **state UNUSED)
{
    echo();
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    assert_true(live_catch_up_has_gap(catch_up));
}

static void what_was_lost_on_the_way_is_asked_for(void **state UNUSED)
{
    live_round_begin(live_round);
    struct publisher *publisher = feed_publisher_create(segment);
    feed_subscriber_want(subscriber, NS, true);
    feed_publisher_miss(publisher, NS);
    feed_publisher_destroy(publisher);
    echo();
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    assert_true(live_catch_up_has_gap(catch_up));
}

static void a_round_waits_for_the_news_that_were_received(void **state UNUSED)
{
    live_round_begin(live_round);
    assert_true(live_news_add(news, BYTES("A"), BYTES("1"), 0));
    echo();
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    live_news_clear(news);
    live_round_finish(live_round);
    assert_int_equal(known(), after.horizon);
}

static void a_round_waits_for_the_changes_that_are_to_be_judged(void **state UNUSED)
{
    struct live_feed feed = {0};
    const struct definition document = {.class = BYTES("A"), .id = BYTES("1"), .text = BYTES("A/1")};
    live_index_add(audience->ruled_index, &feed, &document, 1);
    audience->ruled_count = 1;
    live_round_begin(live_round);
    live_ruled_add(ruled, BYTES("A"), BYTES("2"), 7); /* nobody listens to it */
    assert_int_equal(live_ruled_received(ruled), 0);
    live_ruled_add(ruled, BYTES("A"), BYTES("1"), 7);
    assert_int_equal(live_ruled_received(ruled), 1);
    echo();
    assert_false(live_round_go_on(live_round));
    assert_int_equal(known(), before.horizon);
    live_ruled_drop(ruled);
    live_round_finish(live_round);
    assert_int_equal(known(), after.horizon);
    audience->ruled_count = 0;
    live_index_remove(audience->ruled_index, &feed);
}

/* The names of its query were freed with the changes: under the sanitizers, any use of them is an error. */
static void an_answer_that_comes_after_a_loss_is_not_judged(void **state UNUSED)
{
    struct live_feed feed = {0};
    struct pg_params params;
    const struct definition document = {.class = BYTES("A"), .id = BYTES("1"), .text = BYTES("A/1")};
    live_access_begin(access_of_lab);
    live_access_take(access_of_lab, &(struct live_access_texts){.code = BYTES("lab")});
    assert_true(live_access_is_certain(access_of_lab));
    live_index_add(audience->ruled_index, &feed, &document, 1);
    audience->ruled_count = 1;
    live_ruled_add(ruled, BYTES("A"), BYTES("1"), 7);
    pg_params_start(&params, arena);
    live_ruled_query(ruled, &params);
    live_ruled_drop(ruled);
    live_ruled_add(ruled, BYTES("A"), BYTES("1"), 8);
    live_ruled_take(ruled, NULL, NULL); /* neither is looked at */
    assert_int_equal(live_ruled_received(ruled), live_ruled_judged(ruled) + 1);
    live_ruled_drop(ruled);
    audience->ruled_count = 0;
    live_index_remove(audience->ruled_index, &feed);
}

static void news_that_have_no_room_are_noted_as_missed(void **state UNUSED)
{
    int queued = 0;
    while (queued < MANY && live_news_add(news, BYTES("A"), bytes_of(arena_printf(arena, "%d", queued)), 0))
        queued++;
    assert_true(queued < MANY);
    assert_int_equal(live_news_received(news), queued);
}

/* Until then nobody has moved the stamps of what others change. */
static void who_begins_to_listen_believes_no_copy_of_before(void **state UNUSED)
{
    uint64_t first = slots_see(segment, 0).stamp, last = slots_see(segment, SLOTS - 1).stamp;
    live_catch_up_begin(catch_up);
    assert_true(live_catch_up_has_gap(catch_up));
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
        TEST(a_round_waits_for_the_news_that_were_received),
        TEST(a_round_waits_for_the_changes_that_are_to_be_judged),
        TEST(an_answer_that_comes_after_a_loss_is_not_judged),
        TEST(news_that_have_no_room_are_noted_as_missed),
        TEST(who_begins_to_listen_believes_no_copy_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
