/* empty: the best empty FastCGI responder that we know, the anchor of what a worker may reach: epoll, kept
 * connections, a reader of its own that looks at no parameter, one writev an answer.  A measuring tool: it
 * expects that nobody multiplexes, and that a request's records are well formed. */
#include "test/bench/responder.h"

#include <errno.h>
#include <fastcgi.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { INPUT_BYTES = 65536 + FCGI_HEADER_LEN + 255, EVENTS = 64, RECORD_BYTES = 65528, RECORDS = 17 };

struct connection {
    int fd;
    bool is_kept;
    unsigned char id[2];
    size_t size;
    unsigned char input[INPUT_BYTES];
};

static FCGI_Header record(const struct connection *connection, int type, size_t size)
{
    return (FCGI_Header){.version = FCGI_VERSION_1,
                         .type = (unsigned char)type,
                         .requestIdB1 = connection->id[0],
                         .requestIdB0 = connection->id[1],
                         .contentLengthB1 = (unsigned char)(size >> 8),
                         .contentLengthB0 = (unsigned char)size};
}

static void add(struct iovec *parts, int *count, const void *data, size_t size)
{
    parts[(*count)++] = (struct iovec){(void *)(uintptr_t)data, size};
}

/* The buffer of the socket holds every answer that is measured. */
static bool send_answer(const struct connection *connection, const struct responder_answer *answer)
{
    FCGI_Header headers[RECORDS];
    struct iovec parts[RECORDS * 2 + 2];
    int count = 0, used = 0;
    size_t whole = answer->head.size + answer->body.size, at = 0;
    struct {
        FCGI_Header no_more;
        FCGI_EndRequestRecord end;
    } ending = {record(connection, FCGI_STDOUT, 0),
                {record(connection, FCGI_END_REQUEST, sizeof(FCGI_EndRequestBody)), {0}}};
    for (size_t left = whole; left; used++) {
        size_t size = left < RECORD_BYTES ? left : RECORD_BYTES, taken = used ? 0 : answer->head.size;
        headers[used] = record(connection, FCGI_STDOUT, size);
        add(parts, &count, &headers[used], sizeof headers[used]);
        if (taken)
            add(parts, &count, answer->head.data, taken);
        add(parts, &count, answer->body.data + at, size - taken);
        at += size - taken;
        left -= size;
    }
    add(parts, &count, &ending, sizeof ending);
    ssize_t wanted = (ssize_t)(whole + (size_t)used * FCGI_HEADER_LEN + sizeof ending);
    return writev(connection->fd, parts, count) == wanted;
}

/* False: the connection is to be closed. */
static bool take_records(struct connection *connection, const struct responder_answer *answer)
{
    size_t at = 0;
    bool is_open = true;
    while (is_open && connection->size - at >= FCGI_HEADER_LEN) {
        const unsigned char *header = connection->input + at;
        size_t size = (size_t)header[4] << 8 | header[5], whole = FCGI_HEADER_LEN + size + header[6];
        if (connection->size - at < whole)
            break;
        if (header[1] == FCGI_BEGIN_REQUEST) {
            memcpy(connection->id, header + 2, 2);
            connection->is_kept = header[FCGI_HEADER_LEN + 2] & FCGI_KEEP_CONN;
        } else if (header[1] == FCGI_STDIN && size == 0) {
            is_open = send_answer(connection, answer) && connection->is_kept;
        }
        at += whole;
    }
    connection->size -= at;
    if (connection->size)
        memmove(connection->input, connection->input + at, connection->size);
    return is_open;
}

static void feed(struct connection *connection, const struct responder_answer *answer)
{
    ssize_t got = read(connection->fd, connection->input + connection->size, INPUT_BYTES - connection->size);
    if (got < 0 && errno == EAGAIN)
        return;
    connection->size += got > 0 ? (size_t)got : 0;
    if (got > 0 && take_records(connection, answer))
        return;
    close(connection->fd);
    free(connection);
}

static void take_connection(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *connection = fd >= 0 ? malloc(sizeof *connection) : NULL;
    if (!connection)
        return;
    connection->fd = fd;
    connection->size = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void serve(int listener, const struct responder_answer *answer)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                feed(events[i].data.ptr, answer);
            else
                take_connection(epoll, listener);
        }
    }
}

int main(int argc, char **argv)
{
    return responder_main(argc, argv, false, serve);
}
