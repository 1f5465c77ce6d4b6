/* test_live_round: when a horizon may be claimed, and what makes sure that nothing is missed without being
 * noted. No database: what it answers is put into the namespace, and what is done then is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>

#include "child.h"
#include "serve/live_private.h"

enum { SLOTS = 1024, SPACE = 0, WORKER = 5, MANY = 3000 };
static const struct live_horizon before = {.life = 1, .horizon = 100}, after = {.life = 1, .horizon = 200};

static struct stamps *stamps;
static struct settings settings;
static struct live live;
static struct live_space space, z;

static int start(void **state)
{
    (void)state;
    char problem[256];
    int indexes[WORKER + 1];
    folder_make();
    assert_true(stamps_open(&stamps, folder_path("segment"), SLOTS, problem, sizeof problem));
    assert_int_equal(stamps_space(stamps, BYTES("stampd_lab")), SPACE);
    assert_int_equal(stamps_take_entries(stamps, 1, 1, WORKER + 1, indexes), WORKER + 1);
    stamps_become(stamps, indexes[WORKER]);
    live = (struct live){.settings = &settings, .stamps = stamps, .arena = arena_create("test"), .z = &z};
    live.ear = ear_open(stamps, folder_path(""), problem, sizeof problem);
    assert_non_null(live.ear);
    space = (struct live_space){.live = &live,
                                .code = "lab",
                                .database = "stampd_lab",
                                .space = SPACE,
                                .known = before,
                                .round_known = after,
                                .round_is_clean = true,
                                .round = ROUND_WAITS_FOR_ECHO,
                                .round_number = 7};
    live.spaces = &space;
    space.index = live_index_create();
    for (size_t i = 0; i < COUNT_OF(space.news); i++)
        space.news[i].arena = arena_create("news");
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(space.news); i++)
        arena_destroy(space.news[i].arena);
    live_index_destroy(space.index);
    arena_destroy(live.arena);
    ear_close(live.ear);
    stamps_close(stamps);
    folder_remove();
    return 0;
}

/* Its own notification comes back. */
static void echo(void)
{
    const char *text = arena_printf(live.arena, "%016" PRIx64 ".%" PRIu64, live.nonce, space.round_number);
    live_round_hear(&space, bytes_of(text));
}

static void a_horizon_is_claimed_behind_the_echo(void **state)
{
    (void)state;
    live_round_hear(&space, BYTES("0000000000000000.6")); /* of a former round */
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, before.horizon);
    echo();
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, after.horizon);
    assert_false(space.wants_gap);
    assert_int_equal(space.round, ROUND_RESTS);
}

static void a_round_waits_for_workers_that_have_not_told(void **state)
{
    (void)state;
    stamps_begin(stamps, SPACE);
    echo();
    assert_true(live_round_go_on(&space));
    assert_true(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, before.horizon);
    stamps_end(stamps);
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, after.horizon);
}

static void a_commit_elsewhere_is_not_waited_for(void **state)
{
    (void)state;
    stamps_begin(stamps, SPACE + 1);
    echo();
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, after.horizon);
    stamps_end(stamps);
}

/* Sessions of a former generation tell nobody. */
static void while_a_former_generation_lives_everything_is_asked_for(void **state)
{
    (void)state;
    space.round_is_clean = false;
    echo();
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, before.horizon);
    assert_true(space.wants_gap);
}

static void what_was_lost_on_the_way_is_asked_for(void **state)
{
    (void)state;
    struct mouth *mouth = mouth_create(stamps);
    ear_want(live.ear, SPACE, true);
    mouth_miss(mouth, SPACE);
    mouth_destroy(mouth);
    echo();
    assert_false(live_round_go_on(&space));
    assert_int_equal(space.known.horizon, before.horizon);
    assert_true(space.wants_gap);
}

static void news_that_have_no_room_are_noted_as_missed(void **state)
{
    (void)state;
    space.listener_count = 1;
    for (int i = 0; i < MANY && !space.wants_gap; i++)
        live_space_hear(&space, BYTES("A"), bytes_of(arena_printf(live.arena, "%d", i)), 0);
    assert_true(space.wants_gap);
    assert_true(space.news_heard < MANY);
}

/* Until then nobody has moved the stamps of what others change. */
static void who_begins_to_listen_believes_no_copy_of_before(void **state)
{
    (void)state;
    uint64_t first = stamps_see(stamps, 0).stamp, last = stamps_see(stamps, SLOTS - 1).stamp;
    live_asks_listen.take(&space);
    assert_true(space.is_listening && space.wants_gap);
    assert_int_equal(stamps_see(stamps, 0).stamp, first + 1);
    assert_int_equal(stamps_see(stamps, SLOTS - 1).stamp, last + 1);
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
