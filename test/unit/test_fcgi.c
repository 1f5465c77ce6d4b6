/* fcgi: kept connections, bodies cut off, clients that go away, the end of listening. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/fcgi.h"
#include "fastcgi_client.h"

enum { LONG_MS = 60000, STALL_MS = 200 };

static char folder[] = "/tmp/test_fcgi.XXXXXX";
static char path[64];

static int make_folder(void **state UNUSED)
{
    log_open("test_fcgi", LOG_LEVEL_ERROR, false, LOG_FORMAT_TEXT);
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/worker.sock", folder);
    return 0;
}

static int remove_folder(void **state UNUSED)
{
    unlink(path);
    return rmdir(folder);
}

static struct fcgi *open_patient(int wake, int64_t io_timeout_ms)
{
    int listener;
    char problem[256] = "";
    if (!fcgi_listen(path, FCGI_NO_GROUP, &listener, problem, sizeof problem))
        fail_msg("%s", problem);
    return fcgi_open(
        &(struct fcgi_options){.listener = listener, .wake = wake, .io_timeout_ms = io_timeout_ms});
}

static struct fcgi *open_server(int wake)
{
    return open_patient(wake, STALL_MS);
}

static void close_server(struct fcgi *fcgi)
{
    fcgi_close(fcgi);
    unlink(path);
}

/* A client's request on its way; small enough for the socket's buffer. */
static void send_request(int fd, bool keep, const char *uri, struct bytes body)
{
    char length[24];
    struct builder out = {0};
    snprintf(length, sizeof length, "%zu", body.size);
    const struct client_pair pairs[] = {
        {"REQUEST_METHOD", "POST"}, {"REQUEST_URI", uri}, {"CONTENT_LENGTH", length}, {"EMPTY", ""}, {0}};
    client_add_request(&out, keep, pairs, body);
    assert_true(client_write(fd, builder_bytes(&out)));
    builder_free(&out);
}

static struct fcgi_request *next_request(struct fcgi *fcgi)
{
    struct fcgi_request *request = NULL;
    assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_REQUEST);
    return request;
}

static void assert_uri(const struct fcgi_request *request, const char *uri)
{
    assert_true(bytes_equal(fcgi_parameter(request, BYTES("REQUEST_URI")), bytes_of(uri)));
}

static void assert_answer(int fd, const char *text)
{
    struct builder answer = {0};
    assert_true(client_read_answer(fd, &answer));
    assert_int_equal(answer.size, strlen(text));
    assert_memory_equal(answer.data, text, answer.size);
    builder_free(&answer);
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

/* --- requests --- */

static void request_brings_parameters_and_body(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    struct builder body = {0};
    int64_t size = 0;
    int client = client_connect(path);
    send_request(client, true, "/n/op/get", BYTES("{\"docs\":[]}"));
    struct fcgi_request *request = next_request(fcgi);
    assert_uri(request, "/n/op/get");
    assert_non_null(fcgi_parameter(request, BYTES("EMPTY")).data);
    assert_int_equal(fcgi_parameter(request, BYTES("EMPTY")).size, 0);
    assert_null(fcgi_parameter(request, BYTES("ABSENT")).data);
    assert_int_equal(fcgi_read_body(request, 100, &body, &size), FAULT_NONE);
    assert_int_equal(size, 11);
    assert_true(bytes_equal(builder_bytes(&body), BYTES("{\"docs\":[]}")));
    assert_true(fcgi_answer(request, BYTES("Status: 200\r\n\r\n"), BYTES("body")));
    assert_answer(client, "Status: 200\r\n\r\nbody");
    close(client);
    builder_free(&body);
    close_server(fcgi);
}

static void purge_connections_are_served_in_any_order(void **state UNUSED)
{
    enum { CLIENTS = 200, ROUNDS = 3 };
    struct fcgi *fcgi = open_server(-1);
    int clients[CLIENTS];
    struct fcgi_request *request;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(path);
        assert_true(clients[i] >= 0);
    }
    /* Nobody says anything: all are held, nobody waits for them. */
    while (fcgi_connections(fcgi) < CLIENTS)
        assert_int_equal(fcgi_wait(fcgi, 10, &request), FCGI_EVENT_IDLE);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = CLIENTS - 1; i >= 0; i -= 7) {
            char uri[32];
            snprintf(uri, sizeof uri, "/%d/%d", round, i);
            send_request(clients[i], true, uri, BYTES(""));
            request = next_request(fcgi);
            assert_uri(request, uri);
            assert_true(fcgi_answer(request, BYTES("\r\n"), bytes_of(uri)));
            char text[40];
            snprintf(text, sizeof text, "\r\n%s", uri);
            assert_answer(clients[i], text);
        }
    assert_int_equal(fcgi_connections(fcgi), CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    while (fcgi_connections(fcgi))
        fcgi_wait(fcgi, 10, &request);
    close_server(fcgi);
}

static void connection_is_closed_when_it_is_not_to_be_kept(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    int client = client_connect(path);
    send_request(client, false, "/once", BYTES(""));
    assert_true(fcgi_answer(next_request(fcgi), BYTES("\r\n"), BYTES("")));
    assert_answer(client, "\r\n");
    assert_true(is_closed(client));
    assert_int_equal(fcgi_connections(fcgi), 0);
    close(client);
    close_server(fcgi);
}

struct reading {
    int fd;
    bool is_whole;
    struct builder answer;
};

static void *read_answer(void *argument)
{
    struct reading *reading = argument;
    reading->is_whole = client_read_answer(reading->fd, &reading->answer);
    return NULL;
}

static void answers_of_all_sizes_come_whole(void **state UNUSED)
{
    static const size_t sizes[] = {
        0, 1, 8191, 65505, 65506, 65507, 65528, 200000, 32 * 65528 - 22, 32 * 65528, 5000001};
    struct fcgi *fcgi = open_patient(-1, LONG_MS); /* the thread that reads may come late */
    struct bytes head = BYTES("Content-Type: x\r\n\r\n\r\n");
    int client = client_connect(path);
    char *text = malloc(5000001);
    assert_non_null(text);
    for (size_t i = 0; i < 5000001; i++)
        text[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct reading reading = {.fd = client};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, read_answer, &reading), 0);
        send_request(client, true, "/", BYTES(""));
        assert_true(fcgi_answer(next_request(fcgi), head, (struct bytes){text, sizes[i]}));
        pthread_join(thread, NULL);
        assert_true(reading.is_whole);
        assert_int_equal(reading.answer.size, head.size + sizes[i]);
        assert_memory_equal(reading.answer.data + head.size, text, sizes[i]);
        builder_free(&reading.answer);
    }
    free(text);
    close(client);
    close_server(fcgi);
}

/* --- what the world may do --- */

static void body_over_the_limit_leaves_the_connection_usable(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    struct builder body = {0};
    int64_t size = 0;
    int client = client_connect(path);
    char large[60000];
    memset(large, 'x', sizeof large);
    send_request(client, true, "/large", (struct bytes){large, sizeof large});
    struct fcgi_request *request = next_request(fcgi);
    assert_int_equal(fcgi_read_body(request, 59999, &body, &size), FAULT_ALIMIT);
    assert_int_equal(size, 60000);
    assert_int_equal(body.size, 0);
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("no")));
    assert_answer(client, "\r\nno");
    send_request(client, true, "/exact", (struct bytes){large, sizeof large});
    request = next_request(fcgi);
    assert_uri(request, "/exact");
    assert_int_equal(fcgi_read_body(request, 60000, &body, &size), FAULT_NONE);
    assert_int_equal(body.size, 60000);
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    /* And one whose body nobody asks for. */
    send_request(client, true, "/unread", (struct bytes){large, sizeof large});
    assert_true(fcgi_answer(next_request(fcgi), BYTES("\r\n"), BYTES("")));
    send_request(client, true, "/after", BYTES(""));
    request = next_request(fcgi);
    assert_uri(request, "/after");
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    close(client);
    builder_free(&body);
    close_server(fcgi);
}

/* Sends a head that announces `length`, then the given records, and perhaps closes. */
static enum fault body_fault(struct fcgi *fcgi, const char *length, const struct builder *records,
                             bool hangs_up)
{
    const struct client_pair pairs[] = {{"CONTENT_LENGTH", length}, {0}};
    struct builder out = {0}, body = {0};
    int64_t size;
    int client = client_connect(path);
    client_add_head(&out, true, pairs);
    builder_add_bytes(&out, builder_bytes(records));
    assert_true(client_write(client, builder_bytes(&out)));
    if (hangs_up)
        close(client);
    struct fcgi_request *request = next_request(fcgi);
    enum fault fault = fcgi_read_body(request, 1000, &body, &size);
    assert_int_equal(body.size, fault ? 0 : (size_t)size);
    fcgi_answer(request, BYTES("\r\n"), BYTES(""));
    if (!hangs_up)
        close(client);
    builder_free(&out);
    builder_free(&body);
    return fault;
}

static void body_must_be_whole(void **state UNUSED)
{
    enum { ABORT = 2, STDIN = 5 };
    struct fcgi *fcgi = open_server(-1);
    struct builder whole = {0}, partial = {0}, aborted = {0}, none = {0};
    client_add_record(&whole, STDIN, BYTES("12345"));
    client_add_record(&whole, STDIN, BYTES(""));
    client_add_record(&partial, STDIN, BYTES("123"));
    client_add_record(&aborted, STDIN, BYTES("123"));
    client_add_record(&aborted, ABORT, BYTES(""));

    assert_int_equal(body_fault(fcgi, "5", &whole, false), FAULT_NONE);
    assert_int_equal(body_fault(fcgi, "6", &whole, false), FAULT_ABODY); /* ends too early */
    assert_int_equal(body_fault(fcgi, "4", &whole, false), FAULT_ABODY); /* longer than announced */
    assert_int_equal(body_fault(fcgi, "", &whole, false), FAULT_ABODY);  /* not announced */
    assert_int_equal(body_fault(fcgi, "-5", &whole, false), FAULT_ABODY);
    assert_int_equal(body_fault(fcgi, "5x", &whole, false), FAULT_ABODY);
    assert_int_equal(body_fault(fcgi, "5", &partial, true), FAULT_ABODY);  /* the client has gone */
    assert_int_equal(body_fault(fcgi, "5", &aborted, false), FAULT_ABODY); /* it says that it gives up */
    assert_int_equal(body_fault(fcgi, "5", &partial, false), FAULT_XTIME); /* it stalls */
    assert_int_equal(body_fault(fcgi, "3", &partial, true), FAULT_ABODY);  /* all there, but no end */
    assert_int_equal(body_fault(fcgi, "0", &none, true), FAULT_ABODY);
    /* And the server goes on. */
    assert_int_equal(body_fault(fcgi, "5", &whole, false), FAULT_NONE);
    builder_free(&whole);
    builder_free(&partial);
    builder_free(&aborted);
    close_server(fcgi);
}

static void strangers_are_dropped(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    struct fcgi_request *request;
    struct builder role = {0};
    client_add_record(&role, 1, (struct bytes){"\0\2\1\0\0\0\0\0", 8}); /* an authorizer's request */
    client_add_record(&role, 4, BYTES(""));
    client_add_record(&role, 5, BYTES(""));
    const struct bytes said[] = {BYTES("GET / HTTP/1.1\r\n\r\n"), BYTES("\1\1\0\1\0\10\0"),
                                 builder_bytes(&role), BYTES("\1\4\0\1\0\4\0\0\377\377\377\377")};
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        int client = client_connect(path);
        assert_true(client_write(client, said[i]));
        char byte;
        for (int tries = 0; tries < 500 && recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
             tries++)
            assert_int_equal(fcgi_wait(fcgi, 10, &request), FCGI_EVENT_IDLE);
        assert_int_equal(fcgi_connections(fcgi), 0);
        assert_true(is_closed(client));
        close(client);
    }
    builder_free(&role);
    close_server(fcgi);
}

static void client_that_left_harms_nobody(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    int gone = client_connect(path), stays = client_connect(path);
    send_request(gone, true, "/gone", BYTES(""));
    struct fcgi_request *request = next_request(fcgi);
    close(gone);
    assert_false(fcgi_answer(request, BYTES("\r\n"), BYTES("text")));
    assert_true(fcgi_has_left(fcgi));
    /* One that stays connected but reads nothing: the write has its limit. */
    int deaf = client_connect(path);
    char *large = calloc(1, 4 << 20);
    assert_non_null(large);
    send_request(deaf, true, "/deaf", BYTES(""));
    assert_false(fcgi_answer(next_request(fcgi), BYTES("\r\n"), (struct bytes){large, 4 << 20}));
    free(large);
    send_request(stays, true, "/stays", BYTES(""));
    request = next_request(fcgi);
    assert_uri(request, "/stays");
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    assert_answer(stays, "\r\n");
    assert_int_equal(fcgi_connections(fcgi), 1);
    close(deaf);
    close(stays);
    close_server(fcgi);
}

static void answers_leave_in_pieces(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    int64_t later = clock_monotonic_ms() + 60000;
    int client = client_connect(path), deaf = client_connect(path);
    for (int again = 0; again < 2; again++) {
        send_request(client, true, "/pieces", BYTES("unread"));
        struct fcgi_request *request = next_request(fcgi);
        assert_true(fcgi_send(request, later, BYTES("A: b\r\n\r\n"), BYTES("")));
        assert_true(fcgi_send(request, later, NO_BYTES, BYTES("one ")));
        assert_true(fcgi_send(request, later, NO_BYTES, NO_BYTES));
        assert_true(fcgi_answer(request, NO_BYTES, BYTES("two")));
        assert_answer(client, "A: b\r\n\r\none two");
    }
    /* What breaks off has no end. */
    struct builder answer = {0};
    send_request(client, true, "/breaks", BYTES(""));
    struct fcgi_request *request = next_request(fcgi);
    assert_true(fcgi_send(request, later, BYTES("\r\n"), BYTES("one ")));
    fcgi_abandon(request);
    assert_false(client_read_answer(client, &answer));
    assert_true(bytes_equal(builder_bytes(&answer), BYTES("\r\none ")));
    builder_free(&answer);
    /* Who reads nothing has no more time than there is. */
    char *large = calloc(1, 4 << 20);
    assert_non_null(large);
    send_request(deaf, true, "/deaf", BYTES(""));
    request = next_request(fcgi);
    assert_false(fcgi_send(request, clock_monotonic_ms() + 20, NO_BYTES, (struct bytes){large, 4 << 20}));
    assert_false(fcgi_send(request, clock_monotonic_ms(), NO_BYTES, BYTES("more")));
    fcgi_abandon(request);
    assert_int_equal(fcgi_connections(fcgi), 0);
    free(large);
    close(client);
    close(deaf);
    close_server(fcgi);
}

static void missing_descriptors_make_a_pause_and_no_loss(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    struct fcgi_request *request = NULL;
    struct rlimit before, tight;
    int client = client_connect(path);
    assert_true(client >= 0);
    send_request(client, true, "/late", BYTES(""));
    int lowest = dup(client);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)lowest;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    assert_int_equal(fcgi_wait(fcgi, 20, &request), FCGI_EVENT_IDLE); /* within the pause, in sleep */
    assert_int_equal(fcgi_connections(fcgi), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    request = next_request(fcgi);
    assert_uri(request, "/late");
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    close(client);
    close_server(fcgi);
}

/* --- the end --- */

static void draining_serves_what_waits_and_what_is_kept(void **state UNUSED)
{
    struct fcgi *fcgi = open_server(-1);
    struct fcgi_request *request = NULL;
    int kept = client_connect(path);
    send_request(kept, true, "/kept/1", BYTES(""));
    assert_true(fcgi_answer(next_request(fcgi), BYTES("\r\n"), BYTES("")));
    assert_answer(kept, "\r\n");
    char nothing;
    assert_int_equal(recv(kept, &nothing, 1, MSG_DONTWAIT), -1);
    int waits = client_connect(path); /* in the backlog when listening ends */
    send_request(waits, true, "/waits", BYTES(""));
    fcgi_stop_listening(fcgi);
    fcgi_stop_listening(fcgi);
    assert_false(fcgi_is_listening(fcgi));
    assert_int_equal(client_connect(path), -1);
    assert_int_equal(errno, ECONNREFUSED);
    request = next_request(fcgi);
    assert_uri(request, "/waits");
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    assert_answer(waits, "\r\n");
    /* A word behind the end, which makes nginx give the connection up. */
    char record[9];
    assert_int_equal(recv(waits, record, sizeof record, MSG_DONTWAIT), 8);
    assert_memory_equal(record, "\1\12\0\0\0\0\0\0", 8);
    send_request(kept, true, "/kept/2", BYTES(""));
    request = next_request(fcgi);
    assert_uri(request, "/kept/2");
    assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
    assert_int_equal(fcgi_wait(fcgi, 0, &request), FCGI_EVENT_IDLE);
    close(kept);
    close(waits);
    assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_END);
    close_server(fcgi);
}

static void successor_takes_over_the_same_socket(void **state UNUSED)
{
    int listener;
    char problem[256] = "";
    assert_true(fcgi_listen(path, FCGI_NO_GROUP, &listener, problem, sizeof problem));
    struct fcgi_options options = {.listener = dup(listener), .wake = -1, .io_timeout_ms = STALL_MS};
    struct fcgi *old = fcgi_open(&options);
    options.listener = dup(listener);
    fcgi_stop_listening(old);
    struct fcgi *new = fcgi_open(&options);
    struct fcgi_request *request = NULL;
    int client = client_connect(path);
    send_request(client, true, "/new", BYTES(""));
    assert_int_equal(fcgi_wait(old, 20, &request), FCGI_EVENT_END);
    request = next_request(new);
    assert_uri(request, "/new");
    fcgi_answer(request, BYTES("\r\n"), BYTES(""));
    close(client);
    fcgi_close(old);
    close(listener);
    close_server(new);
}

static void wake_descriptor_ends_a_wait(void **state UNUSED)
{
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct fcgi *fcgi = open_server(wake);
    struct fcgi_request *request = NULL;
    assert_int_equal(fcgi_wait(fcgi, 0, &request), FCGI_EVENT_IDLE);
    uint64_t count = 1;
    assert_int_equal(write(wake, &count, sizeof count), sizeof count);
    assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_WAKE);
    assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_WAKE);
    assert_int_equal(read(wake, &count, sizeof count), sizeof count);
    assert_int_equal(fcgi_wait(fcgi, 0, &request), FCGI_EVENT_IDLE);
    close_server(fcgi);
    close(wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_brings_parameters_and_body),
        cmocka_unit_test(purge_connections_are_served_in_any_order),
        cmocka_unit_test(connection_is_closed_when_it_is_not_to_be_kept),
        cmocka_unit_test(answers_of_all_sizes_come_whole),
        cmocka_unit_test(body_over_the_limit_leaves_the_connection_usable),
        cmocka_unit_test(body_must_be_whole),
        cmocka_unit_test(strangers_are_dropped),
        cmocka_unit_test(client_that_left_harms_nobody),
        cmocka_unit_test(answers_leave_in_pieces),
        cmocka_unit_test(missing_descriptors_make_a_pause_and_no_loss),
        cmocka_unit_test(draining_serves_what_waits_and_what_is_kept),
        cmocka_unit_test(successor_takes_over_the_same_socket),
        cmocka_unit_test(wake_descriptor_ends_a_wait),
    };
    return cmocka_run_group_tests_name("fcgi", tests, make_folder, remove_folder);
}
