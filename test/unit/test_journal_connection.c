/* test_journal_connection: connections of stamp-journal and a client in one loop, which sends and reads as it
 * likes. */
#include "records/records_private.h" /* before the fixture, which has a variable of this name */

#include "records_fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal/journal_connection.h"
#include "journal/journal_tasks.h"
#include "records/records_save.h"
#include "records/records_state.h"

enum { RECORDS_BYTES = 8 << 20, VALUE_BYTES = 256 << 10, ROUNDS_MOST = 20000 };

#define KEY_LINE "lab write 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n" /* "key" */

struct world {
    struct settings settings;
    struct journal_keys *keys;
    struct journal_caller caller;
    struct journal_tasks *tasks;
    struct events *events;
    struct journal_turns *turns;
    struct journal_connection *connection; /* NULL: it has ended */
    struct events_timer *timer;            /* of the rounds of the client */
    int saves;                             /* how often answers had to wait for the disk */
    int client, server, rounds;            /* server: listens and never answers */
    void (*round)(struct world *world);
    size_t memory, received, sent; /* memory: the most that was seen */
};

static void on_end(void *context, struct journal_connection *connection)
{
    struct world *world = context;
    assert_ptr_equal(world->connection, connection);
    journal_connection_destroy(connection);
    world->connection = NULL;
}

static void on_saves(void *context)
{
    struct world *world = context;
    world->saves++;
}

static void on_listens(void *context UNUSED)
{
}

static void on_round(void *context)
{
    struct world *world = context;
    world->round(world);
    size_t memory = world->connection ? journal_connection_memory(world->connection) : 0;
    world->memory = memory > world->memory ? memory : world->memory;
    if (++world->rounds == ROUNDS_MOST)
        events_stop(world->events);
    else
        events_timer_start(world->timer, 0);
}

static void load_keys(struct world *world)
{
    char problem[300] = "";
    FILE *file = fopen(folder_path("keys"), "w");
    assert_true(file && fputs(KEY_LINE, file) >= 0 && fclose(file) == 0);
    assert_true(journal_keys_load(&world->keys, folder_path("keys"), problem, sizeof problem));
}

/* `most`: requests at once; 0: any number. */
static void serve_lab(int64_t most)
{
    const struct records_state states[] = {
        {.ns = BYTES("lab"),
         .state = NS_ON,
         .rates = {[RECORDS_REQUESTS] = {.count = most, .period_ms = 3600000, .burst = most}}}};
    struct records_reading reading;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, states, COUNT_OF(states));
}

static int open_server(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static int open_world(void **state)
{
    static struct world world;
    static char url[64], none[] = "";
    int fds[2];
    world = (struct world){.settings = {.limit_content_bytes = VALUE_BYTES,
                                        .record_state_s = 300,
                                        .queue_url = url,
                                        .queue_ca_file = none,
                                        .task_wait_s = 20,
                                        .limit_name_bytes = 255,
                                        .limit_task_param_bytes = 65536}};
    world.server = open_server(url, sizeof url);
    folder_make();
    records = open_at(RECORDS_BYTES);
    load_keys(&world);
    serve_lab(0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    world.client = fds[0];
    world.events = events_create();
    world.timer = events_timer_create(world.events, on_round, &world);
    const struct journal_arrival arrival = {.fd = fds[1]};
    world.tasks = journal_tasks_create(world.events, &world.settings);
    assert_true(journal_keys_enter(world.keys, NS, BYTES("key"), &world.caller));
    const struct journal_session session = {.settings = &world.settings,
                                            .records = records,
                                            .keys = world.keys,
                                            .tasks = world.tasks,
                                            .caller = world.caller,
                                            .key = "key"};
    world.turns = journal_turns_create(world.events);
    const struct journal_owner owner = {
        .ended = on_end, .saves = on_saves, .listens = on_listens, .context = &world, .turns = world.turns};
    world.connection = journal_connection_create(world.events, &arrival, &session, &owner);
    *state = &world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    if (world->connection)
        journal_connection_destroy(world->connection);
    journal_tasks_destroy(world->tasks);
    journal_turns_destroy(world->turns);
    events_timer_destroy(world->timer);
    events_destroy(world->events);
    close(world->server);
    if (world->client >= 0)
        close(world->client);
    journal_keys_free(world->keys);
    return tear_down(state);
}

static void run_rounds(struct world *world, void (*round)(struct world *world))
{
    world->round = round;
    events_timer_start(world->timer, 0);
    events_run(world->events);
    assert_true(world->rounds < ROUNDS_MOST);
}

/* Sends such messages, one after the other, as long as some of their bytes go. */
static void send_messages(struct world *world, const char *message, size_t size)
{
    static char many[64 << 10];
    size_t whole = sizeof many / size * size;
    for (size_t i = 0; i < whole; i += size)
        memcpy(many + i, message, size);
    for (ssize_t sent; world->connection; world->sent += (size_t)sent) {
        size_t from = world->sent % whole;
        sent = send(world->client, many + from, whole - from, MSG_NOSIGNAL);
        if (sent < 0)
            break;
    }
}

static void receive_some(struct world *world)
{
    static char bytes[64 << 10];
    ssize_t size = recv(world->client, bytes, sizeof bytes, 0);
    if (size > 0)
        world->received += (size_t)size;
}

#define HEAD(function, flags) "FJ\0\1\0" function "\0\1" flags "\0\0\0\0\0\0\0\0"
#define SEND(world, text)     send_messages(world, "" text, sizeof(text) - 1)

/* --- a client that reads slowly --- */

static void read_slowly(struct world *world)
{
    SEND(world, HEAD("\3", "\4\0") "\1k");
    receive_some(world);
    if (world->received >= (size_t)200 * VALUE_BYTES)
        events_stop(world->events);
}

static void slow_readers_are_bounded(void **state)
{
    struct world *world = *state;
    char *value = calloc(1, VALUE_BYTES);
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("k"), .type = RECORDS_BUFFER,
                         .content = {value, VALUE_BYTES - 1}),
                     RECORDS_OK);
    free(value);
    run_rounds(world, read_slowly);
    assert_true(world->memory > VALUE_BYTES && world->memory < 8 << 20);
}

/* --- a client that sends more than is run --- */

static void send_ranges(struct world *world)
{
    SEND(world, HEAD("\3", "\0\x80") "\0\0\0\0");
    receive_some(world);
    if (world->rounds == 300)
        events_stop(world->events);
}

static void requests_that_wait_are_bounded(void **state)
{
    struct world *world = *state;
    run_rounds(world, send_ranges);
    assert_true(world->received && world->memory < 1 << 20);
}

/* --- listeners --- */

/* Each of these would have been a request of the namespace. */
static void notices_that_are_not_sent_use_up_no_quota(void **state)
{
    struct world *world = *state;
    struct journal_session session = {
        .settings = &world->settings, .records = records, .caller = world->caller};
    struct builder out = {0};
    enum { MOST = 100 };
    serve_lab(2);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_NOT_FOUND);
    journal_listener_add(&session.listener, BYTES("k"), 1, false, &found);
    assert_true(journal_run_report(&session, MOST, &out));
    assert_int_equal(set("k", "new"), RECORDS_OK);
    memset(builder_reserve(&out, MOST), 'x', MOST);
    out.size = MOST;
    for (int i = 0; i < 10; i++)
        assert_false(journal_run_report(&session, MOST, &out));
    assert_int_equal(out.size, MOST);
    out.size = 0;
    assert_true(journal_run_report(&session, MOST, &out));
    assert_true(out.size > 0 && session.listener.count == 0);
    journal_listener_free(&session.listener);
    builder_free(&out);
}

static void hold_records(void *argument UNUSED)
{
    DEMAND(records_enter(records));
    raise(SIGSTOP);
    records_leave(records);
}

static void a_change_that_could_not_be_read_is_not_forgotten(void **state)
{
    struct world *world = *state;
    struct journal_session session = {
        .settings = &world->settings, .records = records, .caller = world->caller};
    struct builder out = {0};
    int status;
    serve_lab(1000);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_NOT_FOUND);
    journal_listener_add(&session.listener, BYTES("k"), 1, false, &found);
    assert_int_equal(set("k", "new"), RECORDS_OK);
    pid_t pid = child_start(hold_records, NULL);
    assert_true(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    assert_false(journal_run_report(&session, SIZE_MAX, &out));
    assert_int_equal(out.size, 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    child_expect(pid);
    assert_true(journal_run_report(&session, SIZE_MAX, &out));
    assert_true(out.size > 0 && session.listener.count == 0);
    journal_listener_free(&session.listener);
    builder_free(&out);
}

/* What changes in its records is none of the namespace that has its code now; that it is another one, is. */
static void a_listener_is_shown_nothing_of_a_former_namespace(void **state)
{
    struct world *world = *state;
    struct journal_session session = {
        .settings = &world->settings, .records = records, .caller = world->caller};
    struct builder out = {0};
    struct records_state lab = {.ns = BYTES("lab"), .state = NS_ON};
    struct records_reading reading;
    serve_lab(0);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_NOT_FOUND);
    uint32_t former = records->head->spaces - 1;
    records->head->space[former].kind = SPACE_CLEAR; /* something of it was on disk */
    is_encrypted = true;
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_NOT_FOUND);
    journal_listener_add(&session.listener, BYTES("k"), 1, true, &found);
    lab.is_encrypted = true;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &lab, 1);
    assert_true(journal_run_report(&session, SIZE_MAX, &out));
    assert_true(records_enter(records));
    records_note_change(records, (int)former, &(struct value_piece){0}, BYTES("k"));
    records_commit(records);
    records_leave(records);
    session.listener.list[0].mark ^= 1; /* as if a key of its own had the same mark */
    assert_true(journal_run_report(&session, SIZE_MAX, &out));
    assert_int_equal(out.size, 0);
    lab.is_encrypted = is_encrypted = false;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &lab, 1);
    session.listener.list[0].mark ^= 1;
    assert_true(journal_run_report(&session, SIZE_MAX, &out));
    assert_true(out.size > 0 && session.listener.count == 0);
    journal_listener_free(&session.listener);
    builder_free(&out);
}

/* Another key than `key` that has the same mark. */
static void find_companion(const char *key, char name_r[16])
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key), .is_listened = true), RECORDS_NOT_FOUND);
    uint64_t place = found.mark >> 32;
    for (unsigned i = 0;; i++) {
        snprintf(name_r, 16, "%u", i);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(name_r), .is_listened = true),
                         RECORDS_NOT_FOUND);
        if (found.mark >> 32 == place)
            return;
    }
}

static void a_key_with_the_same_mark_is_not_reported(void **state)
{
    struct world *world = *state;
    struct journal_session session = {
        .settings = &world->settings, .records = records, .caller = world->caller};
    struct journal_listener *listener = &session.listener;
    struct builder out = {0};
    char companion[16];
    enum { MOST = 100, OVERTAKEN = 20000 };
    serve_lab(1000000);
    find_companion("k", companion);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_NOT_FOUND);
    journal_listener_add(listener, BYTES("k"), 1, false, &found);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(set(companion, "new"), RECORDS_OK);
        assert_true(journal_run_report(&session, MOST, &out));
        assert_int_equal(out.size, 0);
    }
    /* Only to look, while others change much, does not lose the place. */
    for (int i = 0; i < OVERTAKEN; i++) {
        assert_int_equal(set("other", ""), RECORDS_OK);
        if (i % 100 == 0)
            assert_true(journal_run_report(&session, MOST, &out));
    }
    assert_int_equal(set(companion, "new"), RECORDS_OK);
    assert_true(journal_run_report(&session, MOST, &out));
    assert_int_equal(out.size, 0);
    assert_int_equal(set("k", "new"), RECORDS_OK);
    assert_true(journal_run_report(&session, MOST, &out));
    assert_true(out.size > 0 && listener->count == 0);
    /* Overtaken, the mark alone decides. */
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("k"), .is_listened = true), RECORDS_OK);
    journal_listener_add(listener, BYTES("k"), 1, false, &found);
    out.size = 0;
    for (int i = 0; i < OVERTAKEN; i++)
        assert_int_equal(set(i ? "other" : "k", ""), RECORDS_OK);
    assert_true(journal_run_report(&session, MOST, &out));
    assert_true(out.size > 0 && listener->count == 0);
    journal_listener_free(listener);
    builder_free(&out);
}

/* --- a client that goes while it waits for a task --- */

static void on_task(void *context UNUSED, const char *error UNUSED, struct bytes text UNUSED)
{
    fail_msg("the server does not answer");
}

/* NULL: there is no place. */
static struct journal_pending *wait_for_task(struct world *world)
{
    const char *error;
    return journal_tasks_send(world->tasks, &world->caller, "key", "take", BYTES("{}"), on_task, NULL,
                              &error);
}

static void wait_and_go(struct world *world)
{
    static const char next[] = HEAD("B", "\0\2") "\0\3\2{}";
    if (world->rounds == 0)
        assert_int_equal(send(world->client, next, sizeof next - 1, 0), sizeof next - 1);
    if (world->rounds == 100) { /* it is under way: there was one place left */
        assert_null(wait_for_task(world));
        close(world->client);
        world->client = -1;
    }
    if (!world->connection)
        events_stop(world->events);
}

static void a_client_that_goes_gives_up_its_place(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < JOURNAL_TASKS_NEXT_OF_KEY - 1; i++)
        assert_non_null(wait_for_task(world));
    run_rounds(world, wait_and_go);
    assert_non_null(wait_for_task(world));
    assert_null(wait_for_task(world));
}

/* --- a message that waits for the state of its namespace --- */

static char stored[JOURNAL_FIXED_BYTES + 2 + 5 + VALUE_BYTES - 1];

static void wait_for_state(struct world *world)
{
    if (world->sent < sizeof stored) {
        ssize_t sent = send(world->client, stored + world->sent, sizeof stored - world->sent, MSG_NOSIGNAL);
        world->sent += sent > 0 ? (size_t)sent : 0;
    }
    receive_some(world);
    usleep(1000);
    if (world->received)
        events_stop(world->events);
}

/* 2 s: refused with STATE, since nobody reads it. */
static void a_large_message_waits_for_the_state_no_longer_than_a_small_one(void **state)
{
    static const char head[] = HEAD("\2", "\0\6") "\1k\0\4\0\0\1";
    struct world *world = *state;
    memcpy(stored, head, sizeof head - 1);
    records_state_move(records, NS);
    run_rounds(world, wait_for_state);
    assert_true(world->received);
}

/* --- answers that wait for the disk --- */

#define PERSISTED HEAD("\2", "\2\x22") "\1k\2\1x"

static bool the_disk_refuses;

/* Three changes in one piece: one wait.  Nothing is answered before its end. */
static void wait_for_disk(struct world *world)
{
    if (world->rounds == 0)
        assert_int_equal(send(world->client, PERSISTED PERSISTED PERSISTED, 3 * (sizeof PERSISTED - 1), 0),
                         3 * (sizeof PERSISTED - 1));
    receive_some(world);
    if (world->rounds < 100) {
        assert_int_equal(world->received, 0);
        return;
    }
    if (world->connection && journal_connection_saving(world->connection)) {
        uint64_t number = journal_connection_saving(world->connection);
        assert_true(the_disk_refuses || records_save(records, number));
        journal_connection_saved(world->connection, !the_disk_refuses);
    }
    if (world->rounds == 200)
        events_stop(world->events);
}

static void answers_wait_for_the_disk(void **state)
{
    char problem[600], disk[200];
    struct world *world = *state;
    snprintf(disk, sizeof disk, "%s", folder_path("disk"));
    assert_true(records_save_into(records, disk, 1 << 20, problem, sizeof problem));
    the_disk_refuses = false;
    run_rounds(world, wait_for_disk);
    assert_int_equal(world->saves, 1);
    assert_non_null(world->connection);
    assert_true(world->received > 0 && world->received % 3 == 0);
    records_close(records);
    records = open_at(RECORDS_BYTES);
    assert_true(records_save_into(records, disk, 1 << 20, problem, sizeof problem));
    expect("k", "x");
}

static void a_connection_whose_changes_are_not_saved_ends(void **state)
{
    char problem[600], disk[200];
    struct world *world = *state;
    snprintf(disk, sizeof disk, "%s", folder_path("disk"));
    assert_true(records_save_into(records, disk, 1 << 20, problem, sizeof problem));
    the_disk_refuses = true;
    run_rounds(world, wait_for_disk);
    assert_null(world->connection);
    assert_int_equal(world->received, 0);
}

/* --- without room --- */

enum { LARGE_BYTES = 100000, SMALL_MOST = 100000, KEY_BYTES = 6, DELETED = 5 };

static enum records_outcome fill(const char *key, size_t bytes, bool is_persisted)
{
    static const char content[LARGE_BYTES];
    return RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_BUFFER, .content = {content, bytes},
               .is_persisted = is_persisted, .patience = RECORDS_REFUSES);
}

/* What is above the fence waits for the disk, and below it there is no room: how many small records. */
static int fill_all(void)
{
    char key[24];
    int count = 0;
    enum records_outcome outcome = RECORDS_OK;
    for (int i = 0; outcome == RECORDS_OK; i++) {
        snprintf(key, sizeof key, "large %d", i);
        outcome = fill(key, LARGE_BYTES, true);
    }
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    for (outcome = RECORDS_OK; outcome == RECORDS_OK && count < SMALL_MOST; count++) {
        snprintf(key, sizeof key, "m%05d", count);
        outcome = fill(key, 20, false);
    }
    assert_int_equal(outcome, RECORDS_OUT_OF_MEMORY);
    return count - 1;
}

/* Marks the records of a page; how many.  `is_more_r`: a cursor follows, which has the last key. */
static int mark_page(struct journal_session *session, const struct journal_request *request,
                     struct builder *out, bool *is_more_r)
{
    enum { FLAGS_AT = 6, COUNT_AT = 16 };
    out->size = 0;
    assert_int_equal(journal_run(session, request, out), JOURNAL_GO_ON);
    const unsigned char *answer = (const unsigned char *)out->data;
    *is_more_r = answer[FLAGS_AT] << 8 & JOURNAL_MORE;
    return answer[COUNT_AT] << 8 | answer[COUNT_AT + 1];
}

/* A page that marks records as worked on: each mark takes room. */
static void a_page_ends_before_what_has_no_room(void **state)
{
    char problem[600], key[24], cursor[1 + 2 + KEY_BYTES + 2 + 2];
    struct world *world = *state;
    struct builder out = {0};
    struct journal_session session = {
        .settings = &world->settings, .records = records, .keys = world->keys, .caller = world->caller};
    struct journal_request request = {.function = JOURNAL_GET,
                                      .flags = JOURNAL_RANGE << JOURNAL_QUERY_SHIFT | JOURNAL_HAS_TIMEOUT,
                                      .count = 1000,
                                      .timeout = 600000,
                                      .key = BYTES("m"),
                                      .other = BYTES("m~")};
    bool is_more;
    assert_true(records_save_into(records, folder_path("disk"), 64 << 20, problem, sizeof problem));
    int count = fill_all();
    assert_int_equal(journal_run(&session, &request, &out), JOURNAL_SAVE);
    assert_true(session.room && !session.saving && !out.size);
    for (int i = 0; i < DELETED; i++) { /* which makes room for a few */
        snprintf(key, sizeof key, "m%05d", i);
        assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = true), RECORDS_OK);
    }
    int marked = mark_page(&session, &request, &out, &is_more);
    assert_true(marked > 0 && marked < DELETED && is_more);
    request.flags = JOURNAL_CURSOR << JOURNAL_QUERY_SHIFT | JOURNAL_HAS_TIMEOUT;
    request.key = (struct bytes){cursor, sizeof cursor};
    memcpy(cursor, out.data + out.size - sizeof cursor, sizeof cursor);
    assert_int_equal(journal_run(&session, &request, &out), JOURNAL_SAVE);
    assert_true(records_save(records, session.room));
    while (is_more) {
        marked += mark_page(&session, &request, &out, &is_more);
        memcpy(cursor, out.data + out.size - sizeof cursor, sizeof cursor);
    }
    assert_int_equal(marked, count - DELETED); /* each once */
    builder_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slow_readers_are_bounded, open_world, close_world),
        cmocka_unit_test_setup_teardown(requests_that_wait_are_bounded, open_world, close_world),
        cmocka_unit_test_setup_teardown(notices_that_are_not_sent_use_up_no_quota, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_change_that_could_not_be_read_is_not_forgotten, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_key_with_the_same_mark_is_not_reported, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_listener_is_shown_nothing_of_a_former_namespace, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_client_that_goes_gives_up_its_place, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_large_message_waits_for_the_state_no_longer_than_a_small_one,
                                        open_world, close_world),
        cmocka_unit_test_setup_teardown(answers_wait_for_the_disk, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_page_ends_before_what_has_no_room, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_connection_whose_changes_are_not_saved_ends, open_world,
                                        close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
