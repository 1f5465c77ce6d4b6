/* test_journal_client: libstampd-journal against a server that is a socket in the test: bytes, pipelines,
 * ends. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "journal_client/stampd_journal.h"

struct world {
    int server;
    size_t most; /* bytes that go at once, to the client and from it */
    struct stampd_journal *journal;
};

static int client_fd;
static int timeout_ms = 60000;

static ssize_t send_some(void *context, const void *data, size_t size)
{
    struct world *world = context;
    return send(client_fd, data, size < world->most ? size : world->most, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t receive_some(void *context, void *data, size_t most)
{
    struct world *world = context;
    return recv(client_fd, data, most < world->most ? most : world->most, MSG_DONTWAIT);
}

static void close_it(void *context)
{
    (void)context;
    close(client_fd);
}

static void open_world(struct world *world, size_t most)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    client_fd = fds[0];
    *world = (struct world){.server = fds[1], .most = most};
    const struct stampd_journal_transport transport = {world, client_fd, send_some, receive_some, close_it};
    assert_int_equal(stampd_journal_open_transport(&transport, timeout_ms, &world->journal), 0);
}

static void close_world(struct world *world)
{
    stampd_journal_close(world->journal);
    if (world->server >= 0)
        close(world->server);
}

#define TEXT(literal) ((struct stampd_journal_text){literal, sizeof(literal) - 1})

static struct stampd_journal_request get_of(const char *key)
{
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    request.function = STAMPD_JOURNAL_GET;
    request.flags = STAMPD_JOURNAL_DATA;
    request.key = (struct stampd_journal_text){key, strlen(key)};
    return request;
}

static void expect_text(struct stampd_journal_text text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

static void expect_sent(struct world *world, const void *bytes, size_t size)
{
    unsigned char found[256];
    assert_int_equal(recv(world->server, found, sizeof found, MSG_DONTWAIT), (ssize_t)size);
    assert_memory_equal(found, bytes, size);
}

static void give(struct world *world, const void *bytes, size_t size)
{
    assert_int_equal(send(world->server, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* An answer to request 0 with a record k = "hi". */
static const unsigned char one_record[] = "JR\0\1\0\0\4\7\0\0\0\0\0\0\0\5\0\0\0\1k\0\0\0\3\2hi";
/* To request 1: no record, an error, an end in 9 ms. */
static const unsigned char refusal[] = "JR\0\1\0\1\0\x0f\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\x09\0\4NONE";

static void test_requests_are_the_bytes_of_the_page(void **state)
{
    (void)state;
    struct world world;
    struct stampd_journal_answer answer;
    timeout_ms = 1; /* nothing answers */
    open_world(&world, 1 << 20);
    struct stampd_journal_request request = get_of("k");
    assert_int_equal(stampd_journal_run(world.journal, &request, &answer), ETIMEDOUT);
    expect_sent(&world, "FJ\0\1\0\3\0\0\4\1\0\0\0\0\0\0\0\0\0\1k", 21);
    assert_int_equal(stampd_journal_run(world.journal, &request, &answer), ETIMEDOUT);
    close_world(&world);

    open_world(&world, 1 << 20);
    request = (struct stampd_journal_request){.function = STAMPD_JOURNAL_GET,
                                              .query = STAMPD_JOURNAL_RANGE,
                                              .key = TEXT("a"),
                                              .other = TEXT("b"),
                                              .type = STAMPD_JOURNAL_NO_VALUE,
                                              .timeout_ms = 258,
                                              .timestamp_us = 1,
                                              .count = 3};
    assert_int_equal(stampd_journal_run(world.journal, &request, &answer), ETIMEDOUT);
    expect_sent(&world, "FJ\0\1\0\3\0\0\0\x89\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1\2\0\3\0\1a\0\1b", 34);
    close_world(&world);

    open_world(&world, 1 << 20);
    request = (struct stampd_journal_request){
        .function = STAMPD_JOURNAL_SET, .key = TEXT("k"), .type = STAMPD_JOURNAL_STRING, .value = TEXT("hi")};
    assert_int_equal(stampd_journal_run(world.journal, &request, &answer), ETIMEDOUT);
    expect_sent(&world, "FJ\0\1\0\2\0\0\0\7\0\0\0\0\0\0\0\0\0\1k\0\0\0\3\2hi", 28);
    close_world(&world);
    timeout_ms = 60000;
}

static void test_answers_byte_by_byte(void **state)
{
    (void)state;
    for (size_t most = 1; most < 60; most += 6) {
        struct world world;
        struct stampd_journal_answer answer;
        struct stampd_journal_record record;
        struct stampd_journal_request request = get_of("k");
        unsigned first, second;
        open_world(&world, most);
        assert_int_equal(stampd_journal_receive(world.journal, &answer), ENOENT);
        assert_int_equal(stampd_journal_send(world.journal, &request, &first), 0);
        assert_int_equal(stampd_journal_send(world.journal, &request, &second), 0);
        assert_int_equal(stampd_journal_run(world.journal, &request, &answer), EBUSY);
        give(&world, one_record, sizeof one_record - 1);
        give(&world, refusal, sizeof refusal - 1);
        assert_int_equal(stampd_journal_receive(world.journal, &answer), 0);
        assert_int_equal(answer.identifier, first);
        assert_int_equal(answer.timestamp_us, 5);
        assert_int_equal(answer.error.size, 0);
        assert_int_equal(stampd_journal_next_record(&answer, &record), 0);
        expect_text(record.key, "k");
        expect_text(record.value, "hi");
        assert_int_equal(record.type, STAMPD_JOURNAL_STRING);
        assert_int_equal(stampd_journal_next_record(&answer, &record), ENOENT);
        assert_int_equal(stampd_journal_receive(world.journal, &answer), 0);
        assert_int_equal(answer.identifier, second);
        assert_int_equal(answer.timeout_ms, 9);
        expect_text(answer.error, "NONE");
        assert_int_equal(stampd_journal_receive(world.journal, &answer), ENOENT);
        close_world(&world);
    }
}

static void test_what_is_no_answer(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {{"HTTP", 4},
                 {"JR\0\2", 4},
                 {"JR\0\1\0\7\0\7\0\0\0\0\0\0\0\5\0\0", 18},                /* another identifier */
                 {"JR\0\1\0\0\4\7\0\0\0\0\0\0\0\5\0\0\0\1k\0\0\0\0\2", 26}, /* a value without a type */
                 {"JR\0\1\0\0\4\7\0\0\0\0\0\0\0\5\0\0\0\1k\xff\xff\xff\xff\2", 26}}; /* a value too large */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct world world;
        struct stampd_journal_answer answer;
        struct stampd_journal_request request = get_of("k");
        open_world(&world, 1 << 20);
        give(&world, wrong[i].bytes, wrong[i].size);
        assert_int_equal(stampd_journal_run(world.journal, &request, &answer), EPROTO);
        assert_int_equal(stampd_journal_run(world.journal, &request, &answer), EPROTO);
        close_world(&world);
    }
}

static void test_an_end_comes_after_the_answers(void **state)
{
    (void)state;
    struct world world;
    struct stampd_journal_answer answer;
    struct stampd_journal_request request = get_of("k");
    open_world(&world, 7);
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), 0);
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), 0);
    give(&world, one_record, sizeof one_record - 1);
    close(world.server);
    world.server = -1;
    assert_int_equal(stampd_journal_receive(world.journal, &answer), 0);
    assert_int_equal(answer.count, 1);
    assert_true(stampd_journal_receive(world.journal, &answer) != 0);
    assert_true(stampd_journal_send(world.journal, &request, NULL) != 0);
    close_world(&world);
}

static void test_a_wrong_key(void **state)
{
    (void)state;
    struct world world;
    struct stampd_journal_answer answer;
    struct stampd_journal_request request = get_of("k");
    open_world(&world, 1 << 20);
    give(&world, "JR\0\1\0\0\0\1\0\0\0\0\0\0\0\5\0\3KEY", 21);
    assert_int_equal(stampd_journal_enter(world.journal, "lab", "wrong"), EACCES);
    expect_sent(&world, "FJ\0\1\0\x41\0\0\0\7\0\0\0\0\0\0\0\0\0\3lab\0\0\0\6\2wrong", 33);
    assert_int_equal(stampd_journal_run(world.journal, &request, &answer), EACCES);
    close_world(&world);
}

/* The server stops reading when its answers are not read: sending reads them. */
static void test_a_long_pipeline(void **state)
{
    (void)state;
    enum { REQUESTS = 20000 };
    struct world world;
    struct stampd_journal_request request = get_of("k");
    struct stampd_journal_answer answer;
    open_world(&world, 1 << 20);
    pid_t child = fork();
    if (child == 0) {
        unsigned char found[21], bytes[sizeof one_record];
        memcpy(bytes, one_record, sizeof bytes);
        close(client_fd);
        for (int i = 0; i < REQUESTS; i++) {
            if (recv(world.server, found, sizeof found, MSG_WAITALL) != sizeof found)
                _exit(1);
            memcpy(bytes + 4, found + 6, 2);
            if (send(world.server, bytes, sizeof bytes - 1, MSG_NOSIGNAL) != sizeof bytes - 1)
                _exit(1);
        }
        _exit(0);
    }
    close(world.server);
    world.server = -1;
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(stampd_journal_send(world.journal, &request, NULL), 0);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(stampd_journal_receive(world.journal, &answer), 0);
    assert_int_equal(stampd_journal_receive(world.journal, &answer), ENOENT);
    close_world(&world);
}

static void test_requests_that_are_not_well_formed(void **state)
{
    (void)state;
    static char large[5000];
    struct world world;
    struct stampd_journal_request request = get_of("k");
    open_world(&world, 1 << 20);
    request.key = (struct stampd_journal_text){large, sizeof large};
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), EINVAL);
    request = get_of("k");
    request.flags = STAMPD_JOURNAL_LOCKED;
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), EINVAL);
    request.function = STAMPD_JOURNAL_PING;
    request.flags = STAMPD_JOURNAL_STAMP;
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), EINVAL);
    request = get_of("k");
    request.count = 70000;
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), EINVAL);
    struct stampd_journal *none;
    assert_int_equal(stampd_journal_open("/nonexistent/socket", 1, &none), ENOENT);
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(stampd_journal_open(large, 1, &none), ENAMETOOLONG);
    assert_null(none);
    close_world(&world);
}

/* A message to a listener: the key k. */
static const unsigned char notice[] = "JR\0\1\0\0\x0c\7\0\0\0\0\0\0\0\5\0\0\0\1k\0\0\0\1\0";

static void test_notices_come_at_any_time(void **state)
{
    (void)state;
    for (size_t most = 1; most < 60; most += 13) {
        struct world world;
        struct stampd_journal_answer answer;
        struct stampd_journal_text key;
        struct stampd_journal_request request = get_of("k");
        request.flags |= STAMPD_JOURNAL_LISTEN;
        open_world(&world, most);
        assert_int_equal(stampd_journal_next_notice(world.journal, 1, &key), ETIMEDOUT);
        assert_int_equal(stampd_journal_send(world.journal, &request, NULL), 0);
        assert_int_equal(stampd_journal_next_notice(world.journal, 1, &key), EBUSY);
        give(&world, notice, sizeof notice - 1);
        give(&world, one_record, sizeof one_record - 1);
        give(&world, notice, sizeof notice - 1);
        assert_int_equal(stampd_journal_receive(world.journal, &answer), 0);
        assert_int_equal(answer.count, 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(stampd_journal_next_notice(world.journal, 1000, &key), 0);
            expect_text(key, "k");
        }
        assert_int_equal(stampd_journal_next_notice(world.journal, 1, &key), ETIMEDOUT);
        give(&world, one_record, sizeof one_record - 1); /* an answer to nothing */
        assert_int_equal(stampd_journal_next_notice(world.journal, 1000, &key), EPROTO);
        close_world(&world);
    }
}

/* Its requests will never be answered: their number is no reason to come again. */
static void test_notices_of_a_connection_that_has_ended(void **state)
{
    (void)state;
    struct world world;
    struct stampd_journal_answer answer;
    struct stampd_journal_text key;
    struct stampd_journal_request request = get_of("k");
    open_world(&world, 60);
    assert_int_equal(stampd_journal_send(world.journal, &request, NULL), 0);
    close(world.server);
    world.server = -1;
    int error = stampd_journal_receive(world.journal, &answer);
    assert_true(error == ECONNRESET || error == EPIPE);
    assert_int_equal(stampd_journal_next_notice(world.journal, 1, &key), error);
    close_world(&world);
}

static void test_numbers(void **state)
{
    (void)state;
    unsigned char bytes[8];
    static const int64_t integers[] = {0, -1, INT64_MIN, INT64_MAX, 258};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        stampd_journal_write_integer(integers[i], bytes);
        assert_true(stampd_journal_read_integer((struct stampd_journal_text){bytes, 8}) == integers[i]);
    }
    assert_memory_equal(bytes, "\0\0\0\0\0\0\1\2", 8);
    stampd_journal_write_float(-1.5, bytes);
    assert_memory_equal(bytes, "\xbf\xf8\0\0\0\0\0\0", 8);
    assert_true(stampd_journal_read_float((struct stampd_journal_text){bytes, 8}) == -1.5);
    assert_true(stampd_journal_read_integer((struct stampd_journal_text){bytes, 7}) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_the_bytes_of_the_page),
        cmocka_unit_test(test_answers_byte_by_byte),
        cmocka_unit_test(test_what_is_no_answer),
        cmocka_unit_test(test_an_end_comes_after_the_answers),
        cmocka_unit_test(test_a_wrong_key),
        cmocka_unit_test(test_a_long_pipeline),
        cmocka_unit_test(test_requests_that_are_not_well_formed),
        cmocka_unit_test(test_notices_come_at_any_time),
        cmocka_unit_test(test_notices_of_a_connection_that_has_ended),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
