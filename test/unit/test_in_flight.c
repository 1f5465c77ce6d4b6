/* test_in_flight: what is handed in once more is done when it is certain that nobody had begun it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "serve/in_flight.h"

enum { PLACES = 3, BORN_MS = 10000, NOW_MS = 60000, RETIRED = 8 };

static struct in_flight *in_flight;
static const struct fate fate = {.cause = LOSS_CRASH, .in_application = true};

static int start(void **state UNUSED)
{
    in_flight = in_flight_create(PLACES, BORN_MS);
    return 0;
}

static const char *token(int number)
{
    static char text[33];
    snprintf(text, sizeof text, "%032x", (unsigned)number);
    return text;
}

/* `age` NULL: for the first time. */
static bool hand(int place, int number, const char *age, int64_t now_ms)
{
    struct redelivery redelivery = {.token = bytes_of(token(number))};
    if (age) {
        redelivery.answered = BYTES("0");
        redelivery.age = bytes_of(age);
    }
    return in_flight_start(in_flight, place, &redelivery, now_ms);
}

static bool is_done_again(int place, int number)
{
    bool is_done = hand(place, number, "5.000", NOW_MS);
    if (is_done)
        in_flight_end(in_flight, place);
    return is_done;
}

static void what_nobody_began_is_done(void **state UNUSED)
{
    assert_true(is_done_again(0, 1));
    assert_true(hand(1, 2, NULL, NOW_MS));
    in_flight_end(in_flight, 1);
    assert_true(is_done_again(0, 3));
}

/* What a server hands to the next: the next knows what was begun, and that it will not be answered. */
static void what_a_former_server_began_is_not(void **state UNUSED)
{
    int memory = -1;
    struct in_flight *former = in_flight_open(PLACES, BORN_MS, &memory, true);
    assert_true(memory >= 0);
    in_flight = former;
    assert_true(hand(1, 70, NULL, NOW_MS));
    in_flight = in_flight_open(PLACES, NOW_MS, &memory, false); /* both serve */
    assert_non_null(in_flight);
    assert_false(is_done_again(0, 70));
    assert_true(is_done_again(0, 71));
    in_flight =
        in_flight_open(PLACES, NOW_MS, &memory, true); /* the former is gone: place 1 is another worker's */
    assert_true(hand(1, 72, NULL, NOW_MS));
    in_flight_end(in_flight, 1);
    assert_false(is_done_again(0, 70));
    assert_null(in_flight_open(PLACES + 1, NOW_MS, &memory, true)); /* of another release */
}

static void what_somebody_began_is_not(void **state UNUSED)
{
    assert_true(hand(1, 7, NULL, NOW_MS));
    assert_false(is_done_again(0, 7)); /* it is under way, or its worker has just died */
    struct fate found;
    assert_int_equal(in_flight_find(in_flight, bytes_of(token(7)), &found), FATE_LATER);
    in_flight_retire(in_flight, 1, &fate, NOW_MS);
    assert_int_equal(in_flight_find(in_flight, bytes_of(token(7)), &found), FATE_FOUND);
    assert_int_equal(found.cause, LOSS_CRASH);
    assert_true(found.in_application);
    assert_false(found.is_unchanged);
    assert_int_equal(in_flight_find(in_flight, bytes_of(token(8)), &found), FATE_NONE);
    assert_int_equal(in_flight_find(in_flight, BYTES(""), &found), FATE_NONE);
    assert_false(is_done_again(0, 7));
    assert_false(is_done_again(1, 7));
    assert_true(is_done_again(0, 8));
}

/* Else one client that aborts many requests would make every request unknown that waits behind a crash. */
static void whose_client_left_is_known_and_hides_no_other(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_true(hand(1, i, NULL, NOW_MS));
        in_flight_leave(in_flight, 1);
        assert_false(is_done_again(0, i));
    }
    assert_true(is_done_again(0, 100));
}

static const char *id_of(int place)
{
    static char text[80];
    struct arena *arena = arena_create("test");
    const char *id = in_flight_request_id(in_flight, place, arena);
    snprintf(text, sizeof text, "%s", id ? id : "none");
    arena_destroy(arena);
    return text;
}

static void a_request_has_the_id_of_the_client_or_one_of_its_token(void **state)
{
    (void)state;
    char drawn[80];
    assert_string_equal(id_of(1), "none");
    assert_true(hand(1, 7, NULL, NOW_MS));
    in_flight_name(in_flight, 1, NO_BYTES);
    snprintf(drawn, sizeof drawn, "%s", id_of(1));
    assert_int_equal(strlen(drawn), 32);
    assert_string_not_equal(drawn, token(7));
    in_flight_name(in_flight, 1, BYTES("mine"));
    assert_string_equal(id_of(1), "mine");
    in_flight_name(in_flight, 1, BYTES("")); /* the next request has none */
    assert_string_equal(id_of(1), drawn);
    in_flight_end(in_flight, 1);
    assert_string_equal(id_of(1), "none");
}

enum { BURIALS = 3000 };

static void *bury(void *place)
{
    in_flight_retire(in_flight, *(const int *)place, &fate, NOW_MS);
    return NULL;
}

/* Between its place and its grave a request is never out of sight. */
static void what_is_being_buried_is_found(void **state UNUSED)
{
    int last = PLACES - 1;
    for (int i = 0; i < BURIALS; i++) {
        assert_true(hand(last, i, NULL, NOW_MS));
        pthread_t master;
        assert_int_equal(pthread_create(&master, NULL, bury, &last), 0);
        struct fate found;
        enum found_fate answer;
        while ((answer = in_flight_find(in_flight, bytes_of(token(i)), &found)) == FATE_LATER) {
        }
        assert_int_equal(answer, FATE_FOUND);
        assert_int_equal(pthread_join(master, NULL), 0);
    }
}

/* It was begun by the second worker: there is no third. */
static void what_is_handed_in_once_more_is_begun(void **state UNUSED)
{
    assert_true(hand(0, 5, "1.000", NOW_MS));
    in_flight_retire(in_flight, 0, &fate, NOW_MS);
    assert_false(is_done_again(1, 5));
}

static void a_worker_that_rested_had_begun_nothing(void **state UNUSED)
{
    assert_true(hand(1, 7, NULL, NOW_MS));
    in_flight_end(in_flight, 1);
    for (int i = 0; i < 2 * RETIRED; i++)
        in_flight_retire(in_flight, 1, &fate, NOW_MS);
    assert_true(is_done_again(0, 9));
}

static void what_is_forgotten_proves_nothing(void **state UNUSED)
{
    for (int i = 0; i < RETIRED; i++) {
        assert_true(hand(2, 100 + i, NULL, NOW_MS));
        in_flight_retire(in_flight, 2, &fate, NOW_MS - 3000);
    }
    for (int i = 0; i < RETIRED; i++)
        assert_false(is_done_again(0, 100 + i));
    assert_true(is_done_again(0, 1));
    assert_true(hand(2, 200, NULL, NOW_MS));
    in_flight_retire(in_flight, 2, &fate, NOW_MS); /* the oldest is overwritten */
    assert_false(is_done_again(0, 100));
    assert_false(is_done_again(0, 1)); /* came five seconds ago: could be one of those */
    assert_true(hand(0, 1, "1.999", NOW_MS));
    assert_false(hand(0, 2, "2.000", NOW_MS));
}

static void what_came_before_the_start_proves_nothing(void **state UNUSED)
{
    assert_true(hand(0, 1, "48.999", NOW_MS)); /* a second is left for nginx's clock */
    assert_false(hand(0, 2, "49.000", NOW_MS));
    assert_false(hand(0, 3, "999999.000", NOW_MS));
}

static void in_doubt_it_is_not_done(void **state UNUSED)
{
    static const struct redelivery wrong[] = {
        {.answered = BYTES("0")},
        {.age = BYTES("5.000")},
        {.answered = BYTES("1"), .age = BYTES("5.000")},
        {.answered = BYTES("00"), .age = BYTES("5.000")},
        {.answered = BYTES("-"), .age = BYTES("5.000")},
        {.answered = BYTES("0, 0"), .age = BYTES("1.000, 4.000")},
        {.answered = BYTES("0 : 0"), .age = BYTES("1.000 : 4.000")},
    };
    static const char *const ages[] = {
        "",
        "5",
        "5.",
        "5.00",
        "5.0000",
        "-5.000",
        "5.-00",
        "a.000",
        "5.x00",
        ".000",
        " 5.000",
        "5.000 ",
        "5,000",
        "-",
        "99999999999999999.000",
        "5.000, 5.000",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct redelivery redelivery = wrong[i];
        redelivery.token = bytes_of(token(1));
        assert_false(in_flight_start(in_flight, 0, &redelivery, NOW_MS));
    }
    for (size_t i = 0; i < COUNT_OF(ages); i++)
        assert_false(hand(0, 1, ages[i], NOW_MS));
    static const char digits[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
    const struct redelivery nameless = {BYTES(""), BYTES("0"), BYTES("5.000")},
                            long_name = {{digits, 65}, BYTES("0"), BYTES("5.000")};
    assert_false(in_flight_start(in_flight, 0, &nameless, NOW_MS));
    assert_false(in_flight_start(in_flight, 0, &long_name, NOW_MS));
    assert_true(in_flight_start(in_flight, 0, &(struct redelivery){.token = BYTES("")}, NOW_MS));
    in_flight_retire(in_flight, 0, &fate, NOW_MS); /* nothing to remember */
    assert_true(is_done_again(0, 1));
}

static void names_may_have_any_length(void **state UNUSED)
{
    static const char digits[] = "0123456789012345678901234567890123456789012345678901234567890123";
    for (size_t size = 1; size <= 64; size++) {
        const struct redelivery first = {.token = {digits, size}},
                                again = {{digits, size}, BYTES("0"), BYTES("5.000")};
        assert_true(in_flight_start(in_flight, 1, &first, NOW_MS));
        assert_false(in_flight_start(in_flight, 0, &again, NOW_MS));
        if (size < 64) { /* of which it is the beginning */
            const struct redelivery other = {{digits, size + 1}, BYTES("0"), BYTES("5.000")};
            assert_true(in_flight_start(in_flight, 0, &other, NOW_MS));
            in_flight_end(in_flight, 0);
        }
        in_flight_end(in_flight, 1);
    }
}

/* A worker that declined the request had not begun it: what nginx reports of that is no handing in again. */
static void a_worker_that_declined_does_not_count(void **state UNUSED)
{
    struct redelivery first = {.token = bytes_of(token(1)), .answered = BYTES("118"), .age = BYTES("0.001")};
    in_flight_forget_first(&first);
    assert_false(in_flight_is_again(&first));
    assert_true(in_flight_start(in_flight, 0, &first, NOW_MS));
    struct redelivery again = {
        .token = bytes_of(token(1)), .answered = BYTES("118 : 0"), .age = BYTES("0.001 : 5.000")};
    in_flight_forget_first(&again);
    assert_true(in_flight_is_again(&again));
    assert_false(in_flight_start(in_flight, 1, &again, NOW_MS));
    in_flight_end(in_flight, 0);
    assert_true(in_flight_start(in_flight, 1, &again, NOW_MS));
    in_flight_end(in_flight, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
    const struct CMUnitTest tests[] = {
        TEST(what_nobody_began_is_done),
        TEST(what_somebody_began_is_not),
        TEST(what_a_former_server_began_is_not),
        TEST(what_is_being_buried_is_found),
        TEST(whose_client_left_is_known_and_hides_no_other),
        TEST(a_request_has_the_id_of_the_client_or_one_of_its_token),
        TEST(what_is_handed_in_once_more_is_begun),
        TEST(a_worker_that_rested_had_begun_nothing),
        TEST(what_is_forgotten_proves_nothing),
        TEST(what_came_before_the_start_proves_nothing),
        TEST(in_doubt_it_is_not_done),
        TEST(names_may_have_any_length),
        TEST(a_worker_that_declined_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
