/* fcgi: peers that fall silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child.h"
#include "edge/fcgi.h"
#include "fastcgi_client.h"

enum { LONG_MS = 10000 };

static struct fcgi *open_server(const char *path)
{
    int listener;
    char problem[256] = "";
    if (!fcgi_listen(path, FCGI_NO_GROUP, &listener, problem, sizeof problem))
        fail_msg("%s", problem);
    return fcgi_open(&(struct fcgi_options){.listener = listener, .wake = -1, .io_timeout_ms = 200});
}

/* Another client is served. */
static void serve_another(struct fcgi *fcgi, const char *path)
{
    static const struct client_pair pairs[] = {{"REQUEST_URI", "/other"}, {0}};
    struct builder out = {0}, answer = {0};
    struct fcgi_request *request;
    int fd = client_connect(path);
    client_add_request(&out, false, pairs, NO_BYTES);
    assert_true(client_write(fd, builder_bytes(&out)));
    assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_REQUEST);
    assert_true(bytes_equal(fcgi_parameter(request, BYTES("REQUEST_URI")), BYTES("/other")));
    assert_true(fcgi_answer(request, BYTES("h\r\n\r\n"), NO_BYTES));
    assert_true(client_read_answer(fd, &answer));
    assert_true(bytes_equal(builder_bytes(&answer), BYTES("h\r\n\r\n")));
    close(fd);
    builder_free(&out);
    builder_free(&answer);
}

enum part { HEAD, BODY };

/* A client falls silent in the middle of it: it is dropped when one read has lasted too long. */
static void fall_silent(struct fcgi *fcgi, const char *path, enum part part)
{
    const struct client_pair pairs[] = {{"REQUEST_URI", "/silent"}, {"CONTENT_LENGTH", "12"}, {0}};
    struct builder head = {0}, out = {0}, body = {0};
    struct fcgi_request *request = NULL;
    int64_t size;
    int fd = client_connect(path);
    client_add_head(&head, true, pairs);
    client_add_request(&out, true, pairs, BYTES("some silence"));
    size_t sent = part == HEAD ? head.size / 2 : (head.size + out.size) / 2;
    assert_true(client_write(fd, (struct bytes){out.data, sent}));
    if (part == BODY) {
        assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_REQUEST);
        assert_int_equal(fcgi_read_body(request, 1000, &body, &size), FAULT_XTIME);
        assert_int_equal(body.size, 0);
        fcgi_abandon(request);
    }
    int64_t end_ms = clock_monotonic_ms() + LONG_MS;
    do
        assert_int_equal(fcgi_wait(fcgi, 1, &request), FCGI_EVENT_IDLE); /* a head is dropped in it */
    while (fcgi_connections(fcgi) && clock_monotonic_ms() < end_ms);
    assert_int_equal(fcgi_connections(fcgi), 0);
    close(fd);
    builder_free(&head);
    builder_free(&out);
    builder_free(&body);
}

static void silent_requests_are_ended(void **state UNUSED)
{
    const char *path = folder_path("worker.sock");
    struct fcgi *fcgi = open_server(path);
    for (int turn = 0; turn < 2; turn++) {
        fall_silent(fcgi, path, HEAD);
        serve_another(fcgi, path);
        fall_silent(fcgi, path, BODY);
        serve_another(fcgi, path);
    }
    fcgi_close(fcgi);
    unlink(path);
}

static int start(void **state UNUSED)
{
    log_open("test_fcgi_silent", LOG_LEVEL_ERROR, false, LOG_FORMAT_TEXT);
    signal(SIGPIPE, SIG_IGN);
    folder_make();
    return 0;
}

static int end(void **state UNUSED)
{
    folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(silent_requests_are_ended)};
    return cmocka_run_group_tests(tests, start, end);
}
