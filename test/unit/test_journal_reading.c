/* test_journal_reading: contents that the disk alone has: which a message waits for, and a stamp-journal
 * whose readers wait at a gate. */
#include "journal_far_fixture.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "journal/journal_reader.h"
#include "journal/journal_run.h"
#include "records/records_save.h"

enum { MANY = 100 };

static bool is_away(const char *key)
{
    assert_true(records_enter(records));
    uint32_t piece = records_find(records, records_find_space(records, NS, false), bytes_of(key));
    bool is = piece && records_is_away(records_value(records, records_key(records, piece)->value));
    records_leave(records);
    return is;
}

/* --- messages --- */

static struct journal_session session;
static struct settings settings = {.limit_content_bytes = 1 << 20, .record_state_s = 300};
static struct builder out;

static void serve_lab_with(int64_t requests)
{
    const struct records_state lab = {
        .ns = NS,
        .state = NS_ON,
        .rates = {[RECORDS_REQUESTS] = {.count = requests, .period_ms = 3600000, .burst = requests}}};
    struct records_reading reading;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &lab, 1);
}

/* Records far 000 … that are away. */
static int open_session(void **state UNUSED)
{
    char problem[600];
    struct journal_keys *keys;
    folder_make();
    records = open_at(MEGABYTES << 20);
    assert_true(records_save_into(records, folder_path("disk"), 64 << 20, problem, sizeof problem));
    write_file(folder_path("keys"), KEY_LINE);
    assert_true(journal_keys_load(&keys, folder_path("keys"), problem, sizeof problem));
    session = (struct journal_session){.settings = &settings, .records = records, .keys = keys};
    assert_true(journal_keys_enter(keys, NS, BYTES("key"), &session.caller));
    serve_lab_with(0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(RUN(.deed = RECORDS_SET, .key = bytes_of(far_key(i)), .type = RECORDS_STRING,
                             .content = bytes_of(content_of(far_key(i))), .is_persisted = true),
                         RECORDS_OK);
        assert_true(records_save(records, found.saving));
        evict(far_key(i));
    }
    records_fetch_elsewhere(records);
    return 0;
}

static int close_session(void **state)
{
    journal_contents_forget(&session.reading);
    journal_keys_free((struct journal_keys *)(uintptr_t)session.keys);
    builder_free(&out);
    out = (struct builder){0};
    return tear_down(state);
}

/* As a child does. */
static void read_all(void)
{
    for (size_t i = 0; i < session.reading.count; i++) {
        struct records_fetched *one = &session.reading.list[i];
        const char *problem;
        struct bytes content = records_fetch(records, &one->wanted, &problem);
        assert_non_null(content.data);
        builder_add_bytes(&one->content, content);
        one->has_ended = one->is_read = true;
    }
    session.reading.tries++;
}

static enum journal_next run_message(const struct journal_request *request)
{
    size_t before = out.size;
    enum journal_next next = journal_run(&session, request, &out);
    assert_true(next != JOURNAL_READ || (out.size == before && session.reading.count > 0));
    if (next != JOURNAL_READ)
        journal_contents_forget(&session.reading);
    return next;
}

static const struct journal_request get_one = {
    .function = JOURNAL_GET, .flags = JOURNAL_DATA, .key = {"far 000", 7}};

static bool out_has(const char *text)
{
    return memmem(out.data, out.size, text, strlen(text)) != NULL;
}

/* The request is counted once, whether it waits or not. */
static void a_message_that_waits_is_one_request(void **state UNUSED)
{
    serve_lab_with(2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_message(&get_one), JOURNAL_READ);
        assert_int_equal(session.reading.count, 1);
        read_all();
        out.size = 0;
        assert_int_equal(run_message(&get_one), JOURNAL_GO_ON);
        assert_true(out_has(content_of("far 000")));
        assert_false(is_away("far 000"));
        evict("far 000");
    }
    out.size = 0;
    assert_int_equal(run_message(&get_one), JOURNAL_GO_ON);
    assert_true(out_has("XBUSY"));
}

/* Meanwhile the record has another value, and is away again; then it is gone; then the namespace is closed.
 */
static void what_has_changed_is_read_again(void **state UNUSED)
{
    const char *other = content_of("x");
    assert_int_equal(run_message(&get_one), JOURNAL_READ);
    read_all();
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = get_one.key, .type = RECORDS_STRING,
                         .content = bytes_of(other), .may_overwrite = true, .is_persisted = true),
                     RECORDS_OK);
    assert_true(records_save(records, found.saving));
    evict("far 000");
    assert_int_equal(run_message(&get_one), JOURNAL_READ);
    assert_int_equal(session.reading.count, 1);
    read_all();
    assert_int_equal(run_message(&get_one), JOURNAL_GO_ON);
    assert_true(out_has(content_of("x")));
    evict("far 000");
    assert_int_equal(run_message(&get_one), JOURNAL_READ);
    read_all();
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = get_one.key), RECORDS_OK);
    out.size = 0;
    assert_int_equal(run_message(&get_one), JOURNAL_GO_ON);
    assert_true(out_has("NOT_FOUND"));
    const struct journal_request next = {
        .function = JOURNAL_GET, .flags = JOURNAL_DATA, .key = BYTES("far 001")};
    assert_int_equal(run_message(&next), JOURNAL_READ);
    read_all();
    const struct records_state off = {.ns = NS, .state = NS_OFF};
    struct records_reading reading;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &off, 1);
    out.size = 0;
    assert_int_equal(run_message(&next), JOURNAL_GO_ON);
    assert_true(out_has("OOFF"));
}

/* What never stands still is given up in the end. */
static void a_record_that_never_stands_still_is_busy(void **state UNUSED)
{
    session.reading.tries = JOURNAL_READ_TRIES - 1;
    assert_int_equal(run_message(&get_one), JOURNAL_READ);
    session.reading.tries++; /* it was read for nothing */
    assert_int_equal(run_message(&get_one), JOURNAL_GO_ON);
    assert_true(out_has("BUSY"));
}

/* A change needs the content as well; it is made once. */
static void a_change_waits_for_the_content(void **state UNUSED)
{
    char size[8];
    struct journal_request cut = {.function = JOURNAL_TRUNCATE,
                                  .key = BYTES("far 000"),
                                  .has_value = true,
                                  .type = RECORDS_INTEGER,
                                  .value = {size, sizeof size}};
    records_write_integer(size, CONTENT - 10);
    assert_int_equal(run_message(&cut), JOURNAL_READ);
    read_all();
    assert_int_equal(run_message(&cut), JOURNAL_GO_ON);
    assert_true(session.saving != 0);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("far 000")), RECORDS_OK);
    assert_int_equal(found.content.size, CONTENT - 10);
}

/* A value that is in the way and cannot be read is not shown as an empty one. */
static void what_cannot_be_read_is_not_shown(void **state UNUSED)
{
    enum { FLAGS_AT = 6 };
    const struct journal_request set = {.function = JOURNAL_SET,
                                        .flags = JOURNAL_DATA | JOURNAL_STAMP,
                                        .key = BYTES("far 000"),
                                        .has_value = true,
                                        .type = RECORDS_STRING,
                                        .value = BYTES("x")};
    assert_int_equal(run_message(&set), JOURNAL_READ);
    session.reading.list[0].has_ended = true;
    session.reading.tries++;
    assert_int_equal(run_message(&set), JOURNAL_GO_ON);
    assert_true(out_has("NOT_FREE") && !out_has("far 000"));
    assert_int_equal((uint8_t)out.data[FLAGS_AT] << 8 & (JOURNAL_DATA | JOURNAL_STAMP), JOURNAL_STAMP);
}

/* Of the only answer, whether it has a cursor. */
static int count_records(bool *is_more_r)
{
    enum { FLAGS_AT = 6, COUNT_AT = 16 };
    const unsigned char *answer = (const unsigned char *)out.data;
    *is_more_r = answer[FLAGS_AT] << 8 & JOURNAL_MORE;
    return answer[COUNT_AT] << 8 | answer[COUNT_AT + 1];
}

static void hold_lock_often(void *argument)
{
    struct gate *is_held = argument;
    DEMAND(records_enter(records));
    gate_pass(is_held);
    for (;;) {
        usleep(2000);
        records_leave(records);
        while (!records_enter(records))
            ;
    }
}

/* Another process holds the lock for longer than is waited, now and then, also behind the admission of the
 * request: an empty page without an error would mean that there is nothing. */
static void a_page_that_cannot_begin_is_refused(void **state UNUSED)
{
    enum { TRIES = 500, ERROR_AT = 7 };
    const struct journal_request page = {.function = JOURNAL_GET,
                                         .flags = JOURNAL_RANGE << JOURNAL_QUERY_SHIFT,
                                         .count = 10,
                                         .key = BYTES("far"),
                                         .other = BYTES("far~")};
    struct gate is_held;
    gate_open(&is_held);
    pid_t holder = child_start(hold_lock_often, &is_held);
    gate_await(&is_held);
    records_limit_wait(records, 1);
    size_t empty = 0, full = 0, refused = 0;
    for (int i = 0; i < TRIES; i++) {
        bool is_more;
        out.size = 0;
        assert_int_equal(run_message(&page), JOURNAL_GO_ON);
        if (out_has("BUSY") || out_has("STATE"))
            refused++;
        else if (count_records(&is_more))
            full++;
        else
            empty++;
    }
    child_kill(holder);
    gate_close(&is_held);
    records_limit_wait(records, 1000);
    printf("pages %zu, refusals %zu, empty %zu\n", full, refused, empty);
    assert_int_equal(empty, 0);
}

static const struct journal_request get_many = {.function = JOURNAL_GET,
                                                .flags = JOURNAL_RANGE << JOURNAL_QUERY_SHIFT | JOURNAL_DATA,
                                                .count = 1000,
                                                .key = {"far", 3},
                                                .other = {"far~", 4}};

/* All that a page needs is read together, so pages do not become short. */
static void a_page_waits_once(void **state UNUSED)
{
    bool is_more;
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("far 000"), .is_probe = true), RECORDS_OK);
    assert_int_equal(run_message(&get_many), JOURNAL_READ);
    assert_int_equal(session.reading.count, JOURNAL_CONTENTS_MOST);
    read_all();
    assert_int_equal(run_message(&get_many), JOURNAL_GO_ON);
    assert_int_equal(count_records(&is_more), JOURNAL_CONTENTS_MOST);
    assert_true(is_more);
    for (int i = 0; i < JOURNAL_CONTENTS_MOST; i++)
        assert_true(out_has(far_key(i)) && out_has(content_of(far_key(i))));
    /* now these are in memory, and the others are not */
    assert_int_equal(run_message(&get_many), JOURNAL_READ);
    assert_int_equal(session.reading.count, MANY - JOURNAL_CONTENTS_MOST);
    read_all();
    out.size = 0;
    assert_int_equal(run_message(&get_many), JOURNAL_GO_ON);
    assert_int_equal(count_records(&is_more), MANY);
    assert_false(is_more);
}

/* No more is read than fits into an answer. */
static void a_page_reads_what_it_returns(void **state UNUSED)
{
    struct journal_request few = get_many;
    bool is_more;
    few.count = 5;
    assert_int_equal(run_message(&few), JOURNAL_READ);
    assert_int_equal(session.reading.count, 5);
    read_all();
    assert_int_equal(run_message(&few), JOURNAL_GO_ON);
    assert_int_equal(count_records(&is_more), 5);
    assert_true(is_more);
}

/* A page that marks ends before what is to be read: no record is marked and not returned. */
static void a_page_that_marks_passes_nothing(void **state UNUSED)
{
    struct journal_request take = get_many;
    bool is_more;
    take.flags |= JOURNAL_HAS_TIMEOUT | JOURNAL_WORKED_ON;
    take.timeout = 600000;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_message(&take), JOURNAL_READ);
        assert_int_equal(session.reading.count, 1);
        read_all();
        out.size = 0;
        assert_int_equal(run_message(&take), JOURNAL_GO_ON);
        assert_int_equal(count_records(&is_more), 1);
        assert_true(is_more && out_has(far_key(i)) && out_has(content_of(far_key(i))));
    }
}

/* --- a daemon --- */

/* The daemon has received all that was sent. */
static void await_taken(int client)
{
    for (int left = 1; left;)
        assert_int_equal(ioctl(client, SIOCOUTQ, &left), 0);
}

static void others_are_served_while_a_content_is_read(void **state UNUSED)
{
    struct builder text = {0};
    prepare(1);
    int client = peer_enter(socket_path), other = peer_enter(socket_path);
    unsigned before = peer_add_get(&text, "near");
    peer_add_get(&text, far_key(0));
    unsigned after = peer_add_set(&text, "later", "2", 0);
    peer_send(client, &text);
    await_writer();
    assert_int_not_equal(atomic_load(&shared->writer), daemon_pid);
    peer_get(other, "near", "1");
    peer_set(other, "more", "3", 0);
    peer_set(other, "kept", "4", JOURNAL_PERSIST); /* not behind what is read */
    peer_expect_answer(client, before, "1");
    unsigned last = peer_send_get(client, "later");
    await_taken(client);
    peer_get(other, "near", "1");
    peer_expect_nothing(client);
    peer_send_get(other, "later");
    peer_expect_error(other, "NOT_FOUND"); /* the messages behind it wait */
    let_read(1);
    expect_content(client, far_key(0));
    peer_expect_answer(client, after, "");
    peer_expect_answer(client, last, "2");
    peer_get(client, far_key(0), content_of(far_key(0)));
    close(client);
    close(other);
}

/* One more waits than there are readers. */
static void what_waits_for_a_reader_is_read_in_turn(void **state UNUSED)
{
    enum { ALL = JOURNAL_READERS + 2 };
    int clients[ALL];
    prepare(ALL);
    int other = peer_enter(socket_path);
    for (int i = 0; i < ALL; i++) {
        clients[i] = reading_client(far_key(i));
        if (i < JOURNAL_READERS)
            await_writer();
        peer_get(other, "near", "1");
    }
    for (int i = 0; i < ALL; i++)
        peer_expect_nothing(clients[i]);
    let_read(JOURNAL_READERS);
    for (int i = 0; i < ALL; i++) {
        expect_content(clients[i], far_key(i));
        close(clients[i]);
    }
    close(other);
}

static void a_reader_that_is_killed_is_replaced(void **state UNUSED)
{
    prepare(1);
    int client = reading_client(far_key(0)), other = peer_enter(socket_path);
    await_writer();
    assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    await_writer();
    peer_get(other, "near", "1");
    let_read(1);
    expect_content(client, far_key(0));
    close(client);
    close(other);
}

/* Each that reads this content dies: the message is refused, and the record stays. */
static void readers_that_are_killed_again_refuse(void **state UNUSED)
{
    prepare(1);
    int client = reading_client(far_key(0));
    for (int i = 0; i < 2; i++) {
        await_writer();
        assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    }
    peer_expect_error(client, "NOT_READ");
    let_read(0);
    peer_get(client, "near", "1");
    peer_get(client, far_key(0), content_of(far_key(0)));
    close(client);
}

static void a_client_that_goes_leaves_nothing(void **state UNUSED)
{
    enum { ALL = JOURNAL_READERS + 1 };
    int clients[ALL];
    prepare(ALL);
    int other = peer_enter(socket_path);
    for (int i = 0; i < ALL; i++) {
        clients[i] = reading_client(far_key(i));
        if (i < JOURNAL_READERS)
            await_writer();
    }
    peer_get(other, "near", "1");
    for (int i = 0; i < ALL; i++) /* with a reader, and in the queue */
        close(clients[i]);
    peer_get(other, "near", "1");
    let_read(JOURNAL_READERS);
    for (int i = 0; i < ALL; i++)
        peer_get(other, far_key(i), content_of(far_key(i)));
    close(other);
}

static void a_client_that_sends_no_more_has_its_answers(void **state UNUSED)
{
    struct builder text = {0};
    prepare(1);
    int client = peer_enter(socket_path), other = peer_enter(socket_path);
    peer_add_get(&text, far_key(0));
    unsigned after = peer_add_get(&text, "near");
    peer_send(client, &text);
    await_writer();
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    peer_get(other, "near", "1");
    let_read(1);
    expect_content(client, far_key(0));
    peer_expect_answer(client, after, "1");
    peer_expect_end(client);
    close(other);
}

static void stopping_waits_for_no_reader(void **state UNUSED)
{
    prepare(1);
    int client = reading_client(far_key(0));
    await_writer();
    assert_int_equal(kill(daemon_pid, SIGHUP), 0);
    peer_expect_end(client);
    client = reading_client(far_key(0));
    await_writer();
    pid_t reader = atomic_load(&shared->writer);
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    peer_expect_end(client);
    child_expect(daemon_pid);
    assert_true(waitpid(reader, NULL, 0) == reader || errno == ECHILD); /* the daemon may have reaped it */
    let_read(0);
    begin_again();
    client = peer_enter(socket_path);
    peer_get(client, far_key(0), content_of(far_key(0)));
    close(client);
}

int main(void)
{
    give_up_root();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#define TEST(name)        cmocka_unit_test_setup_teardown(name, open_session, close_session)
#define TEST_DAEMON(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_message_that_waits_is_one_request),
        TEST(what_has_changed_is_read_again),
        TEST(a_record_that_never_stands_still_is_busy),
        TEST(a_page_that_cannot_begin_is_refused),
        TEST(a_change_waits_for_the_content),
        TEST(what_cannot_be_read_is_not_shown),
        TEST(a_page_waits_once),
        TEST(a_page_reads_what_it_returns),
        TEST(a_page_that_marks_passes_nothing),
        TEST_DAEMON(others_are_served_while_a_content_is_read),
        TEST_DAEMON(what_waits_for_a_reader_is_read_in_turn),
        TEST_DAEMON(a_reader_that_is_killed_is_replaced),
        TEST_DAEMON(readers_that_are_killed_again_refuse),
        TEST_DAEMON(a_client_that_goes_leaves_nothing),
        TEST_DAEMON(a_client_that_sends_no_more_has_its_answers),
        TEST_DAEMON(stopping_waits_for_no_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
