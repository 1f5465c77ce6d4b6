/* fcgi: peers that send a byte now and then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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

/* Sends a byte now and then, up to the end or until the server has had enough. */
struct dripping {
    int fd;
    struct bytes data;
    size_t sent;
    _Atomic bool is_over;
};

static void *drip(void *argument)
{
    struct dripping *dripping = argument;
    while (dripping->sent < dripping->data.size &&
           send(dripping->fd, dripping->data.data + dripping->sent, 1, MSG_NOSIGNAL) == 1) {
        dripping->sent++;
        clock_sleep_ms(20);
    }
    atomic_store(&dripping->is_over, true);
    return NULL;
}

enum part { HEAD, BODY };

static void drip_to(struct fcgi *fcgi, const char *path, enum part part)
{
    char long_text[600];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    const struct client_pair pairs[] = {{"REQUEST_URI", long_text}, {"CONTENT_LENGTH", "599"}, {0}};
    struct builder head = {0}, out = {0}, body = {0};
    struct fcgi_request *request = NULL;
    pthread_t thread;
    int64_t size;
    client_add_head(&head, true, pairs);
    client_add_request(&out, true, pairs, bytes_of(long_text));
    struct dripping dripping = {.fd = client_connect(path), .data = builder_bytes(&out)};
    if (part == BODY) {
        assert_true(client_write(dripping.fd, builder_bytes(&head)));
        dripping.data.data += head.size;
        dripping.data.size -= head.size;
    }
    assert_int_equal(pthread_create(&thread, NULL, drip, &dripping), 0);
    if (part == BODY) {
        assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_REQUEST);
        assert_int_equal(fcgi_read_body(request, 1000, &body, &size), FAULT_ABODY);
        assert_int_equal(body.size, 0);
        fcgi_abandon(request);
    }
    while (!atomic_load(&dripping.is_over)) /* a head: dropped inside the wait */
        assert_int_equal(fcgi_wait(fcgi, 1, &request), FCGI_EVENT_IDLE);
    assert_int_equal(fcgi_connections(fcgi), 0);
    pthread_join(thread, NULL);
    assert_true(dripping.sent < dripping.data.size);
    close(dripping.fd);
    builder_free(&head);
    builder_free(&out);
    builder_free(&body);
}

static void slow_requests_are_ended(void **state UNUSED)
{
    const char *path = folder_path("worker.sock");
    struct fcgi *fcgi = open_server(path);
    for (int turn = 0; turn < 2; turn++) {
        drip_to(fcgi, path, HEAD);
        serve_another(fcgi, path);
        drip_to(fcgi, path, BODY);
        serve_another(fcgi, path);
    }
    fcgi_close(fcgi);
    unlink(path);
}

static int start(void **state UNUSED)
{
    log_open("test_fcgi_slow", LOG_LEVEL_ERROR, false);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(slow_requests_are_ended)};
    return cmocka_run_group_tests(tests, start, end);
}
