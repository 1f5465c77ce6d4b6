/* fcgi, the records of a request: cut anywhere, in any number, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "child.h"
#include "edge/fcgi.h"
#include "fastcgi_client.h"

enum { LONG_MS = 5000, PARAMS = 4, STDIN = 5, BODY = 150000, VALUES = 8 };

static uint32_t seed = 1;

static size_t draw(size_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

static struct fcgi *open_server(const char *path)
{
    int listener;
    char problem[256] = "";
    if (!fcgi_listen(path, FCGI_NO_GROUP, &listener, problem, sizeof problem))
        fail_msg("%s", problem);
    return fcgi_open(&(struct fcgi_options){.listener = listener, .wake = -1, .io_timeout_ms = LONG_MS});
}

/* In records of any sizes up to `most`. */
static void add_records(struct builder *out, int type, struct bytes content, size_t most)
{
    while (content.size) {
        size_t size = 1 + draw(most);
        size = size < content.size ? size : content.size;
        client_add_record(out, type, (struct bytes){content.data, size});
        content = (struct bytes){content.data + size, content.size - size};
    }
    client_add_record(out, type, BYTES(""));
}

static void add_pair(struct builder *out, const char *name, size_t value_size, char fill)
{
    unsigned char sizes[5] = {(unsigned char)strlen(name), (unsigned char)(value_size >> 24 | 0x80),
                              (unsigned char)(value_size >> 16), (unsigned char)(value_size >> 8),
                              (unsigned char)value_size};
    builder_add(out, sizes, sizeof sizes);
    builder_add_bytes(out, bytes_of(name));
    memset(builder_reserve(out, value_size), fill, value_size);
    out->size += value_size;
}

static void begin(struct builder *out)
{
    client_add_record(out, 1, (struct bytes){"\0\1\1\0\0\0\0\0", 8});
}

struct writing {
    int fd;
    struct bytes data;
    bool is_whole; /* the end is shown by closing otherwise */
};

static void *write_pieces(void *argument)
{
    struct writing *writing = argument;
    struct bytes data = writing->data;
    uint32_t state = (uint32_t)data.size;
    while (data.size) {
        state = state * 1664525 + 1013904223;
        size_t size = 1 + (state >> 8) % (state & 64 ? 30000 : 20);
        size = size < data.size ? size : data.size;
        if (!client_write(writing->fd, (struct bytes){data.data, size}))
            break;
        data = (struct bytes){data.data + size, data.size - size};
    }
    if (!writing->is_whole)
        shutdown(writing->fd, SHUT_WR);
    return NULL;
}

static void requests_come_in_any_pieces(void **state UNUSED)
{
    static const size_t sizes[VALUES] = {0, 1, 127, 128, 300, 5000, 70000, 3};
    const char *path = folder_path("worker.sock");
    struct fcgi *fcgi = open_server(path);
    struct fcgi_request *request;
    char *sent = malloc(BODY);
    int fd = client_connect(path);
    assert_non_null(sent);
    for (int i = 0; i < BODY; i++)
        sent[i] = (char)draw(256);
    for (int round = 0; round < 60; round++) {
        static const size_t most[] = {40, 4000, 65535};
        struct builder out = {0}, pairs = {0}, body = {0}, answer = {0};
        char length[16], name[] = "NAME_0";
        int64_t announced;
        for (int i = 0; i < VALUES; i++) {
            name[5] = (char)('0' + i);
            add_pair(&pairs, name, sizes[i], (char)('a' + i));
        }
        size_t size = draw(BODY);
        snprintf(length, sizeof length, "%zu", size);
        add_pair(&pairs, "CONTENT_LENGTH", strlen(length), '0');
        memcpy(pairs.data + pairs.size - strlen(length), length, strlen(length));
        begin(&out);
        add_records(&out, PARAMS, builder_bytes(&pairs), most[round % 3]);
        add_records(&out, STDIN, (struct bytes){sent, size}, most[round / 3 % 3]);
        struct writing writing = {fd, builder_bytes(&out), true};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_pieces, &writing), 0);
        assert_int_equal(fcgi_wait(fcgi, LONG_MS, &request), FCGI_EVENT_REQUEST);
        assert_int_equal(fcgi_read_body(request, BODY, &body, &announced), FAULT_NONE);
        assert_true(bytes_equal(builder_bytes(&body), (struct bytes){sent, size}));
        for (int i = 0; i < VALUES; i++) {
            name[5] = (char)('0' + i);
            struct bytes value = fcgi_parameter(request, name);
            assert_int_equal(value.size, sizes[i]);
            for (size_t k = 0; k < value.size; k++)
                assert_int_equal(value.data[k], 'a' + i);
            assert_int_equal(value.data[value.size], '\0');
        }
        assert_true(fcgi_answer(request, BYTES("\r\n"), BYTES("")));
        pthread_join(thread, NULL);
        assert_true(client_read_answer(fd, &answer));
        builder_free(&out);
        builder_free(&pairs);
        builder_free(&body);
        builder_free(&answer);
    }
    assert_int_equal(fcgi_connections(fcgi), 1);
    free(sent);
    close(fd);
    fcgi_close(fcgi);
    unlink(path);
}

/* Answers the request if there is one; the connection is closed by then. */
static void meet(struct fcgi *fcgi, const char *path, struct bytes said)
{
    struct fcgi_request *request;
    struct writing writing = {client_connect(path), said, false};
    pthread_t thread;
    enum fcgi_event event;
    assert_int_equal(pthread_create(&thread, NULL, write_pieces, &writing), 0);
    do {
        event = fcgi_wait(fcgi, 1, &request);
        if (event != FCGI_EVENT_REQUEST)
            continue;
        struct builder body = {0};
        int64_t size;
        struct bytes value = fcgi_parameter(request, "NAME");
        if (!fcgi_read_body(request, BODY, &body, &size))
            assert_int_equal(body.size, size);
        assert_true(!value.data || !value.data[value.size]);
        fcgi_answer(request, BYTES("\r\n"), builder_bytes(&body));
        builder_free(&body);
    } while (event == FCGI_EVENT_REQUEST || fcgi_connections(fcgi));
    pthread_join(thread, NULL);
    close(writing.fd);
}

static void damaged_requests_harm_nobody(void **state UNUSED)
{
    const char *path = folder_path("worker.sock");
    struct fcgi *fcgi = open_server(path);
    for (int round = 0; round < 600; round++) {
        struct builder out = {0}, pairs = {0};
        add_pair(&pairs, "NAME", draw(300), 'x');
        add_pair(&pairs, "CONTENT_LENGTH", 2, '1');
        begin(&out);
        add_records(&out, PARAMS, builder_bytes(&pairs), 100);
        add_records(&out, STDIN, BYTES("elevenbytes"), 11);
        for (size_t damages = draw(4); damages; damages--)
            out.data[draw(out.size)] = (char)draw(256);
        meet(fcgi, path, (struct bytes){out.data, draw(4) ? out.size : draw(out.size)});
        builder_free(&out);
        builder_free(&pairs);
    }
    fcgi_close(fcgi);
    unlink(path);
}

static void heads_have_limits(void **state UNUSED)
{
    const char *path = folder_path("worker.sock");
    struct fcgi *fcgi = open_server(path);
    struct builder out = {0}, pairs = {0};
    for (int i = 0; i < 65; i++) /* one more than there is room for */
        add_pair(&pairs, "N", 1, 'x');
    begin(&out);
    add_records(&out, PARAMS, builder_bytes(&pairs), 65535);
    add_records(&out, STDIN, NO_BYTES, 1);
    struct fcgi_request *request;
    int fd = client_connect(path);
    assert_true(client_write(fd, builder_bytes(&out)));
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0)
        assert_int_equal(fcgi_wait(fcgi, 10, &request), FCGI_EVENT_IDLE);
    assert_int_equal(fcgi_connections(fcgi), 0);
    close(fd);
    out.size = pairs.size = 0;
    add_pair(&pairs, "LONG", 600000, 'x');
    begin(&out);
    add_records(&out, PARAMS, builder_bytes(&pairs), 65535);
    meet(fcgi, path, builder_bytes(&out));
    assert_int_equal(fcgi_connections(fcgi), 0);
    builder_free(&out);
    builder_free(&pairs);
    fcgi_close(fcgi);
    unlink(path);
}

static int start(void **state UNUSED)
{
    log_open("test_fcgi_input", LOG_LEVEL_ERROR, false);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_in_any_pieces),
        cmocka_unit_test(damaged_requests_harm_nobody),
        cmocka_unit_test(heads_have_limits),
    };
    return cmocka_run_group_tests(tests, start, end);
}
