/* test_journal_turns: connections of stamp-journal with much to do, and one with little, in one loop.  What
 * is counted is what the others get done between a message and its answer. */
#include "records/records_private.h" /* before the fixture, which has a variable of this name */

#include "records_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "journal/journal_connection.h"
#include "records/records_state.h"

enum { RECORDS_BYTES = 8 << 20, BUSY = 8, KEYS = 1000, ROUNDS_MOST = 200000, PINGS = 50 };

#define KEY_LINE              "lab write 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n" /* "key" */
#define HEAD(function, flags) "FJ\0\1\0" function "\0\1" flags "\0\0\0\0\0\0\0\0"
#define SLOW                  "^(a|a|a|aa)*(a|aa)*$" /* the cost grows exponentially with the key */
#define PING                  HEAD("\x40", "\0\0") "\0"
#define ANSWER_BYTES          18 /* without an error and records */

struct world {
    struct settings settings;
    struct journal_keys *keys;
    struct journal_caller caller;
    struct events *events;
    struct events_timer *timer;
    struct journal_turns *turns;
    struct journal_connection *connections[BUSY + 1]; /* the last one has little to do */
    int clients[BUSY + 1];
    struct bytes message; /* of the busy ones */
    size_t answer;        /* bytes of the answer to it */
    size_t sent[BUSY], got[BUSY];
    size_t at_ping, most; /* answers of the busy ones: when a PING was sent; the most until its answer */
    int pings, rounds;
    bool is_pinging;
};

static void on_end(void *context, struct journal_connection *connection)
{
    struct world *world = context;
    for (size_t i = 0; i <= BUSY; i++)
        if (world->connections[i] == connection)
            world->connections[i] = NULL;
    journal_connection_destroy(connection);
}

static void on_nothing(void *context UNUSED)
{
}

static void send_more(struct world *world, size_t i)
{
    static char many[16 << 10];
    size_t size = world->message.size, whole = sizeof many / size * size;
    for (size_t at = 0; at < whole; at += size)
        memcpy(many + at, world->message.data, size);
    for (ssize_t sent = 0; sent >= 0; world->sent[i] += sent > 0 ? (size_t)sent : 0) {
        size_t from = world->sent[i] % whole;
        sent = send(world->clients[i], many + from, whole - from, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* All that has come; how many bytes. */
static size_t receive_all(int client)
{
    static char bytes[64 << 10];
    size_t all = 0;
    for (ssize_t size; (size = recv(client, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
        all += (size_t)size;
    return all;
}

/* The clients' part of each pass of the loop. */
static void on_round(void *context)
{
    struct world *world = context;
    size_t answers = 0;
    for (size_t i = 0; i < BUSY; i++) {
        world->got[i] += receive_all(world->clients[i]);
        answers += world->got[i] / world->answer;
        send_more(world, i);
    }
    if (world->is_pinging && receive_all(world->clients[BUSY])) {
        world->is_pinging = false;
        world->pings++;
        world->most = answers - world->at_ping > world->most ? answers - world->at_ping : world->most;
    }
    if (!world->is_pinging && answers) {
        assert_int_equal(send(world->clients[BUSY], PING, sizeof PING - 1, MSG_NOSIGNAL), sizeof PING - 1);
        world->is_pinging = true;
        world->at_ping = answers;
    }
    if (world->pings == PINGS || ++world->rounds == ROUNDS_MOST)
        events_stop(world->events);
    else
        events_timer_start(world->timer, 0);
}

static void serve_lab(void)
{
    const struct records_state states[] = {{.ns = BYTES("lab"), .state = NS_ON}};
    struct records_reading reading;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, states, COUNT_OF(states));
}

static void load_keys(struct world *world)
{
    char problem[300] = "";
    FILE *file = fopen(folder_path("keys"), "w");
    assert_true(file && fputs(KEY_LINE, file) >= 0 && fclose(file) == 0);
    assert_true(journal_keys_load(&world->keys, folder_path("keys"), problem, sizeof problem));
    assert_true(journal_keys_enter(world->keys, NS, BYTES("key"), &world->caller));
}

static struct journal_session session_of(struct world *world)
{
    return (struct journal_session){
        .settings = &world->settings, .records = records, .keys = world->keys, .caller = world->caller};
}

static int open_world(void **state)
{
    static struct world world;
    char key[64];
    world = (struct world){.settings = {.limit_content_bytes = 1 << 20, .record_state_s = 300}};
    folder_make();
    records = open_at(RECORDS_BYTES);
    load_keys(&world);
    serve_lab();
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%05d", i);
        assert_int_equal(set(key, "x"), RECORDS_OK);
    }
    world.events = events_create();
    world.timer = events_timer_create(world.events, on_round, &world);
    world.turns = journal_turns_create(world.events);
    const struct journal_session session = session_of(&world);
    const struct journal_owner owner = {
        .ended = on_end, .saves = on_nothing, .listens = on_nothing, .context = &world, .turns = world.turns};
    for (size_t i = 0; i <= BUSY; i++) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        const struct journal_arrival arrival = {.fd = fds[1]};
        world.clients[i] = fds[0];
        world.connections[i] = journal_connection_create(world.events, &arrival, &session, &owner);
    }
    *state = &world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i <= BUSY; i++) {
        if (world->connections[i])
            journal_connection_destroy(world->connections[i]);
        close(world->clients[i]);
    }
    journal_turns_destroy(world->turns);
    events_timer_destroy(world->timer);
    events_destroy(world->events);
    journal_keys_free(world->keys);
    return tear_down(state);
}

/* What the message costs, and the size of its answer. */
static int64_t cost_of(struct world *world, const struct journal_request *request)
{
    struct journal_session session = session_of(world);
    struct builder out = {0};
    assert_int_equal(journal_run(&session, request, &out), JOURNAL_GO_ON);
    world->answer = out.size;
    builder_free(&out);
    return session.cost;
}

/* In a pass of the loop one connection that has used its steps goes on.  A PING is sent in one pass, and
 * answered in the next one: what fits into two turns is done between them. */
static void expect_fair(struct world *world, size_t most)
{
    size_t least = SIZE_MAX, best = 0;
    events_timer_start(world->timer, 0);
    events_run(world->events);
    assert_int_equal(world->pings, PINGS);
    assert_in_range(world->most, 1, 2 * most);
    for (size_t i = 0; i < BUSY; i++) {
        least = world->got[i] / world->answer < least ? world->got[i] / world->answer : least;
        best = world->got[i] / world->answer > best ? world->got[i] / world->answer : best;
    }
    assert_true(least > 0 && best - least <= 3 * most); /* each has its first steps, and a turn in progress */
}

static void costly_patterns_wait_for_each_other(void **state)
{
    struct world *world = *state;
    static const char message[] = HEAD("\3", "\1\0") "\0\0\24" SLOW;
    const struct journal_request request = {
        .function = JOURNAL_GET, .flags = JOURNAL_PATTERN << JOURNAL_QUERY_SHIFT, .key = BYTES(SLOW)};
    int64_t cost = cost_of(world, &request);
    assert_in_range(cost, JOURNAL_TURN_STEPS, 3 * JOURNAL_TURN_STEPS);
    world->message = (struct bytes){message, sizeof message - 1};
    expect_fair(world, 1);
}

static void many_messages_wait_for_each_other(void **state)
{
    struct world *world = *state;
    int64_t cost = cost_of(world, &(struct journal_request){.function = JOURNAL_PING});
    assert_int_equal(world->answer, ANSWER_BYTES);
    world->message = (struct bytes){PING, sizeof PING - 1};
    expect_fair(world, (size_t)(JOURNAL_TURN_STEPS / cost + 1));
}

static void what_is_large_costs_more(void **state)
{
    struct world *world = *state;
    static char value[1 << 20];
    int64_t small = cost_of(world, &(struct journal_request){
                                       .function = JOURNAL_GET, .flags = JOURNAL_DATA, .key = BYTES("none")});
    const struct journal_request large = {.function = JOURNAL_SET,
                                          .flags = JOURNAL_OVERWRITE,
                                          .key = BYTES("large"),
                                          .type = RECORDS_BUFFER,
                                          .has_value = true,
                                          .value = {value, sizeof value - 1}};
    assert_true(small < JOURNAL_TURN_STEPS / 100);
    assert_true(cost_of(world, &large) > 2 * JOURNAL_TURN_STEPS);
    assert_true(cost_of(world, &(struct journal_request){.function = JOURNAL_GET,
                                                         .flags = JOURNAL_DATA,
                                                         .key = BYTES("large")}) > 2 * JOURNAL_TURN_STEPS);
    const struct journal_request page = {.function = JOURNAL_GET,
                                         .flags = JOURNAL_RANGE << JOURNAL_QUERY_SHIFT,
                                         .count = 1000,
                                         .key = BYTES("a")};
    assert_true(cost_of(world, &page) > JOURNAL_TURN_STEPS);
}

/* Each key has steps of its own, so a page that ends because much was passed hides no record. */
static void no_match_is_lost_where_a_page_ends(void **state)
{
    struct world *world = *state;
    struct journal_session session = session_of(world);
    struct journal_request request = {.function = JOURNAL_GET,
                                      .flags = JOURNAL_PATTERN << JOURNAL_QUERY_SHIFT,
                                      .count = 1000,
                                      .key = BYTES("^.*.*#|3$")};
    static char cursor[RECORDS_KEY_MOST];
    enum { FLAGS_AT = 6, COUNT_AT = 16 };
    int found_ones = 0, pages = 0;
    for (bool is_more = true; is_more; pages++) {
        struct builder out = {0};
        assert_int_equal(journal_run(&session, &request, &out), JOURNAL_GO_ON);
        const unsigned char *answer = (const unsigned char *)out.data;
        is_more = answer[FLAGS_AT] << 8 & JOURNAL_MORE;
        found_ones += answer[COUNT_AT] << 8 | answer[COUNT_AT + 1];
        size_t size = 1 + 2 + 35 + 2 + strlen("^.*.*#|3$");
        if (is_more)
            memcpy(cursor, out.data + out.size - size, size);
        request.flags = JOURNAL_CURSOR << JOURNAL_QUERY_SHIFT;
        request.key = (struct bytes){cursor, size};
        builder_free(&out);
    }
    assert_true(pages > 10);
    assert_int_equal(found_ones, KEYS / 10);
}

/* --- the line --- */

struct runner {
    struct journal_turn turn;
    struct world *world;
    struct journal_turns *turns;
    int64_t cost;
    int went;
};

static void on_go(void *context)
{
    struct runner *runner = context;
    assert_true(runner->turn.steps > 0 && !runner->turn.is_waiting);
    runner->turn.steps -= runner->cost;
    if (++runner->went == 100)
        events_stop(runner->world->events);
    journal_turns_wait(runner->turns, &runner->turn);
    journal_turns_wait(runner->turns, &runner->turn); /* once is enough */
}

static void debts_are_paid_in_turns(void **state)
{
    struct world *world = *state;
    struct runner runners[3] = {{.cost = JOURNAL_TURN_STEPS},
                                {.cost = (int64_t)4 * JOURNAL_TURN_STEPS},
                                {.cost = JOURNAL_TURN_STEPS / 2}};
    for (size_t i = 0; i < COUNT_OF(runners); i++) {
        runners[i].world = world;
        runners[i].turns = world->turns;
        runners[i].turn = (struct journal_turn){.go = on_go, .context = &runners[i]};
        journal_turns_wait(world->turns, &runners[i].turn);
    }
    events_run(world->events);
    assert_int_equal(runners[0].went, 100);
    assert_in_range(runners[1].went, 24, 26);
    assert_in_range(runners[2].went, 98, 100); /* steps are not saved */
    journal_turns_leave(world->turns, &runners[1].turn);
    journal_turns_leave(world->turns, &runners[0].turn);
    journal_turns_leave(world->turns, &runners[0].turn);
    journal_turns_wait(world->turns, &runners[1].turn);
    journal_turns_leave(world->turns, &runners[2].turn);
    journal_turns_leave(world->turns, &runners[1].turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(costly_patterns_wait_for_each_other, open_world, close_world),
        cmocka_unit_test_setup_teardown(many_messages_wait_for_each_other, open_world, close_world),
        cmocka_unit_test_setup_teardown(what_is_large_costs_more, open_world, close_world),
        cmocka_unit_test_setup_teardown(no_match_is_lost_where_a_page_ends, open_world, close_world),
        cmocka_unit_test_setup_teardown(debts_are_paid_in_turns, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
