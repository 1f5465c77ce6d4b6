/* fcgi: connections, polled together, and answers.
 *
 * An answer is not copied: one writev sends head, body and the end of the request. */
#include "edge/fcgi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/fcgi_private.h"
#include "edge/write_parts.h"

enum {
    WAITING_MOST = 1024,
    EVENTS_AT_ONCE = 64,
    ACCEPTS_AT_ONCE = 64,
    PAUSE_MS = 100,       /* no accept for this long after descriptors ran out */
    RECORD_BYTES = 65528, /* content of the largest record, a multiple of 8 */
    RECORDS_AT_ONCE = 32,
};

/* A connection and its current request. */
struct fcgi_request {
    int fd;
    int64_t
        input_left; /* bytes of the announced body that fcgi_read_piece has not read; -1: it was not called */
    bool is_hurried; /* its connection has a shorter write timeout */
    struct fcgi *fcgi;
    struct fcgi_request *previous, *next; /* in `living`; `next` alone in `spare` */
};

struct fcgi {
    struct fcgi_options options;
    int epoll;
    bool is_listening;
    struct fcgi_input input; /* of `current` */
    bool has_left;           /* the peer of the last request, before its answer was sent */
    int64_t pause_until_ms;  /* accepting is paused until then; 0: not paused */
    size_t connections;
    struct fcgi_request *living, *spare, *current;
    int event_next, event_count;
    struct epoll_event events[EVENTS_AT_ONCE];
};

/* --- connections --- */

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        log_fatal("out of memory fcgi bytes=%zu", size);
    return memory;
}

static void watch(struct fcgi *fcgi, int fd, void *whose, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = whose};
    if (epoll_ctl(fcgi->epoll, how, fd, &event))
        log_fatal("cannot watch a descriptor: %m");
}

struct fcgi *fcgi_open(const struct fcgi_options *options)
{
    struct fcgi *fcgi = allocate(sizeof *fcgi);
    fcgi->options = *options;
    fcgi->input.timeout_ms = options->io_timeout_ms;
    fcgi->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (fcgi->epoll < 0)
        log_fatal("cannot make an epoll descriptor: %m");
    fcgi->is_listening = true;
    watch(fcgi, options->listener, &fcgi->options.listener, EPOLLIN, EPOLL_CTL_ADD);
    if (options->wake >= 0)
        watch(fcgi, options->wake, &fcgi->options.wake, EPOLLIN, EPOLL_CTL_ADD);
    return fcgi;
}

/* Of a write; a read never waits longer than is left of the time of a request. */
static void set_timeout(int fd, int64_t ms)
{
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit))
        log_fatal("cannot limit the time of a connection: %m");
}

static void add_connection(struct fcgi *fcgi, int fd)
{
    struct fcgi_request *request = fcgi->spare;
    if (request)
        fcgi->spare = request->next;
    else
        request = allocate(sizeof *request);
    request->previous = NULL;
    request->next = fcgi->living;
    request->fcgi = fcgi;
    request->fd = fd;
    request->is_hurried = false;
    if (fcgi->living)
        fcgi->living->previous = request;
    fcgi->living = request;
    fcgi->connections++;
    set_timeout(fd, fcgi->options.io_timeout_ms);
    watch(fcgi, fd, request, EPOLLIN, EPOLL_CTL_ADD);
}

static void drop_connection(struct fcgi_request *request)
{
    struct fcgi *fcgi = request->fcgi;
    close(request->fd);
    if (request->previous)
        request->previous->next = request->next;
    else
        fcgi->living = request->next;
    if (request->next)
        request->next->previous = request->previous;
    request->next = fcgi->spare;
    fcgi->spare = request;
    fcgi->connections--;
}

static void pause_accepting(struct fcgi *fcgi)
{
    log_often(LOG_LEVEL_WARNING, "", "accept paused: out of file descriptors or memory connections=%zu: %m",
              fcgi->connections);
    fcgi->pause_until_ms = clock_monotonic_ms() + PAUSE_MS;
    watch(fcgi, fcgi->options.listener, &fcgi->options.listener, 0, EPOLL_CTL_MOD);
}

static void resume_accepting(struct fcgi *fcgi)
{
    fcgi->pause_until_ms = 0;
    if (fcgi->is_listening)
        watch(fcgi, fcgi->options.listener, &fcgi->options.listener, EPOLLIN, EPOLL_CTL_MOD);
}

/* Accepts up to `most` pending connections; another worker may accept from the same listener first. */
static void accept_waiting(struct fcgi *fcgi, int most)
{
    while (fcgi->is_listening && !fcgi->pause_until_ms && most-- > 0) {
        int fd = accept4(fcgi->options.listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            add_connection(fcgi, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(fcgi);
        else if (errno != EINTR && errno != ECONNABORTED)
            return; /* EAGAIN: no connection is pending */
    }
}

void fcgi_stop_listening(struct fcgi *fcgi)
{
    if (!fcgi->is_listening)
        return;
    accept_waiting(fcgi, WAITING_MOST);
    fcgi->is_listening = false;
    /* The master holds the same socket, so closing alone would not remove it from our epoll set. */
    epoll_ctl(fcgi->epoll, EPOLL_CTL_DEL, fcgi->options.listener, NULL);
    close(fcgi->options.listener);
}

int fcgi_descriptor(const struct fcgi *fcgi)
{
    return fcgi->epoll;
}

bool fcgi_is_listening(const struct fcgi *fcgi)
{
    return fcgi->is_listening;
}

size_t fcgi_connections(const struct fcgi *fcgi)
{
    return fcgi->connections;
}

void fcgi_close(struct fcgi *fcgi)
{
    assert(!fcgi->current);
    if (fcgi->is_listening)
        close(fcgi->options.listener);
    while (fcgi->living)
        drop_connection(fcgi->living);
    while (fcgi->spare) {
        struct fcgi_request *request = fcgi->spare;
        fcgi->spare = request->next;
        free(request);
    }
    close(fcgi->epoll);
    fcgi_input_free(&fcgi->input);
    free(fcgi);
}

/* --- waiting --- */

/* Reads the head of a request; drops the connection when it is closed, too slow, or not FastCGI. */
static bool begin_request(struct fcgi_request *request)
{
    struct fcgi *fcgi = request->fcgi;
    if (!fcgi_input_begin(&fcgi->input, request->fd)) {
        drop_connection(request);
        return false;
    }
    request->input_left = -1;
    fcgi->current = request;
    return true;
}

enum fcgi_event fcgi_wait(struct fcgi *fcgi, int64_t timeout_ms, struct fcgi_request **request_r)
{
    assert(!fcgi->current);
    int64_t until = clock_monotonic_ms() + timeout_ms;
    for (;;) {
        while (fcgi->event_next < fcgi->event_count) {
            void *whose = fcgi->events[fcgi->event_next++].data.ptr;
            if (whose == &fcgi->options.wake)
                return FCGI_EVENT_WAKE;
            if (whose == &fcgi->options.listener) {
                accept_waiting(fcgi, ACCEPTS_AT_ONCE);
            } else if (begin_request(whose)) {
                *request_r = whose;
                return FCGI_EVENT_REQUEST;
            }
        }
        if (!fcgi->is_listening && !fcgi->connections)
            return FCGI_EVENT_END;
        int64_t now = clock_monotonic_ms(), end = until;
        if (fcgi->pause_until_ms) {
            if (now >= fcgi->pause_until_ms)
                resume_accepting(fcgi);
            else if (fcgi->pause_until_ms < end)
                end = fcgi->pause_until_ms;
        }
        int count = epoll_wait(fcgi->epoll, fcgi->events, EVENTS_AT_ONCE, end > now ? (int)(end - now) : 0);
        if (count < 0 && errno != EINTR)
            log_fatal("cannot wait for requests: %m");
        fcgi->event_next = 0;
        fcgi->event_count = count > 0 ? count : 0;
        if (count == 0 && clock_monotonic_ms() >= until)
            return FCGI_EVENT_IDLE;
    }
}

/* --- one request: in --- */

struct bytes fcgi_parameter(const struct fcgi_request *request, const char *name)
{
    return fcgi_input_parameter(&request->fcgi->input, name);
}

/* Another part of the body, with a time of its own. */
static struct fcgi_input *begin_input(struct fcgi_request *request)
{
    struct fcgi_input *input = &request->fcgi->input;
    assert(request->fcgi->current == request);
    input->until_ms = 0;
    return input;
}

/* After the last expected byte: the body must end here. */
static enum fault end_input(struct fcgi_input *input)
{
    char more;
    if (fcgi_input_read(input, &more, 1))
        return FAULT_ABODY; /* longer than announced; the rest is discarded with the answer */
    return input->state == INPUT_WHOLE ? FAULT_NONE : FAULT_ABODY;
}

/* A keep-alive connection is reusable only after the body was read to its end. */
static void discard_input(struct fcgi_request *request)
{
    static char waste[65536];
    struct fcgi_input *input;
    do
        input = begin_input(request);
    while (fcgi_input_read(input, waste, sizeof waste) == sizeof waste);
}

/* Appends the whole body. */
static enum fault read_whole(struct fcgi_input *input, size_t length, struct builder *body)
{
    for (size_t left = length; left;) {
        size_t want = left < 1 << 20 ? left : 1 << 20;
        size_t got = fcgi_input_read(input, builder_reserve(body, want), want);
        body->size += got;
        left -= got;
        if (got < want) /* the client has aborted, or nginx has closed the connection */
            return FAULT_ABODY;
    }
    return end_input(input);
}

enum fault fcgi_measure_body(const struct fcgi_request *request, int64_t *size_r)
{
    struct bytes announced = fcgi_parameter(request, "CONTENT_LENGTH");
    *size_r = 0;
    return announced.size && (!bytes_to_i64(announced, size_r) || *size_r < 0) ? FAULT_ABODY : FAULT_NONE;
}

enum fault fcgi_read_body(struct fcgi_request *request, size_t limit, struct builder *body, int64_t *size_r)
{
    enum fault fault = fcgi_measure_body(request, size_r);
    if (!fault && (uint64_t)*size_r > limit)
        fault = FAULT_ALIMIT;
    if (fault)
        return fault;
    size_t start = body->size;
    fault = read_whole(begin_input(request), (size_t)*size_r, body);
    if (fault)
        body->size = start;
    return fault;
}

enum fault fcgi_read_piece(struct fcgi_request *request, char *room, size_t room_size, size_t *size_r)
{
    struct fcgi_input *input = begin_input(request);
    *size_r = 0;
    enum fault fault =
        request->input_left < 0 ? fcgi_measure_body(request, &request->input_left) : FAULT_NONE;
    if (fault || (!request->input_left && input->state == INPUT_WHOLE))
        return fault;
    size_t want = (uint64_t)request->input_left < room_size ? (size_t)request->input_left : room_size;
    if (fcgi_input_read(input, room, want) < want || input->state == INPUT_BROKEN)
        return FAULT_ABODY;
    request->input_left -= (int64_t)want;
    *size_r = want;
    return request->input_left ? FAULT_NONE : end_input(input);
}

/* --- one request: out --- */

static struct fcgi_header record_header(enum fcgi_type type, int id, size_t size)
{
    return (struct fcgi_header){.version = FCGI_VERSION,
                                .type = (unsigned char)type,
                                .id = {(unsigned char)(id >> 8), (unsigned char)id},
                                .size = {(unsigned char)(size >> 8), (unsigned char)size}};
}

/* Records to be sent, with pointers to their contents. */
struct sheet {
    struct fcgi_header headers[RECORDS_AT_ONCE];
    struct iovec parts[RECORDS_AT_ONCE * 3 + 1];
    int header_count, part_count;
};

static void add_part(struct sheet *sheet, const void *data, size_t size)
{
    sheet->parts[sheet->part_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
}

static void take_slice(struct sheet *sheet, struct bytes *from, size_t *room)
{
    size_t size = from->size < *room ? from->size : *room;
    if (!size)
        return;
    add_part(sheet, from->data, size);
    *from = (struct bytes){from->data + size, from->size - size};
    *room -= size;
}

/* Adds one output record, as large as possible. */
static void add_record(struct sheet *sheet, int request_id, struct bytes *head, struct bytes *body)
{
    struct fcgi_header *header = &sheet->headers[sheet->header_count++];
    size_t room = RECORD_BYTES;
    add_part(sheet, header, sizeof *header);
    take_slice(sheet, head, &room);
    take_slice(sheet, body, &room);
    *header = record_header(FCGI_STDOUT, request_id, RECORD_BYTES - room);
}

/* Adds as many records as fit into one write. */
static void fill_sheet(struct sheet *sheet, int request_id, struct bytes *head, struct bytes *body)
{
    sheet->header_count = sheet->part_count = 0;
    while ((head->size || body->size) && sheet->header_count < RECORDS_AT_ONCE)
        add_record(sheet, request_id, head, body);
}

static bool write_sheet(const struct fcgi_request *request, struct sheet *sheet)
{
    enum write_result result = write_parts(request->fd, sheet->parts, sheet->part_count);
    request->fcgi->has_left = result == WRITE_CLOSED;
    return result == WRITE_DONE;
}

/* The end of an answer.  A draining worker appends an unsolicited record: nginx keeps a connection alive only
 * when no data follows the end of the request, so it closes this one by itself, and never sends a request on
 * a connection that the worker is closing. */
struct ending {
    struct fcgi_header no_more, end;
    unsigned char status[8];   /* 0: FCGI_REQUEST_COMPLETE */
    struct fcgi_header let_go; /* an empty list of values */
};

static bool write_answer(const struct fcgi_request *request, struct bytes head, struct bytes body)
{
    int id = request->fcgi->input.id;
    struct ending ending = {.no_more = record_header(FCGI_STDOUT, id, 0),
                            .end = record_header(FCGI_END_REQUEST, id, sizeof ending.status),
                            .let_go = record_header(FCGI_GET_VALUES_RESULT, 0, 0)};
    bool lets_go = request->fcgi->input.keeps_connection && !request->fcgi->is_listening;
    for (;;) {
        struct sheet sheet;
        fill_sheet(&sheet, id, &head, &body);
        bool is_last = !head.size && !body.size;
        if (is_last)
            add_part(&sheet, &ending, lets_go ? sizeof ending : offsetof(struct ending, let_go));
        if (!write_sheet(request, &sheet))
            return false;
        if (is_last)
            return true;
    }
}

bool fcgi_send(struct fcgi_request *request, int64_t deadline_ms, struct bytes head, struct bytes body)
{
    int64_t most_ms = request->fcgi->options.io_timeout_ms;
    assert(request->fcgi->current == request);
    discard_input(request);
    request->is_hurried = true;
    while (head.size || body.size) {
        struct sheet sheet;
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            return false;
        set_timeout(request->fd, left_ms < most_ms ? left_ms : most_ms);
        fill_sheet(&sheet, request->fcgi->input.id, &head, &body);
        if (!write_sheet(request, &sheet))
            return false;
    }
    return true;
}

void fcgi_abandon(struct fcgi_request *request)
{
    assert(request->fcgi->current == request);
    request->fcgi->current = NULL;
    drop_connection(request);
}

bool fcgi_has_left(const struct fcgi *fcgi)
{
    return fcgi->has_left;
}

bool fcgi_answer(struct fcgi_request *request, struct bytes head, struct bytes body)
{
    struct fcgi *fcgi = request->fcgi;
    assert(fcgi->current == request);
    discard_input(request);
    bool was_sent = write_answer(request, head, body);
    const struct fcgi_input *input = &fcgi->input;
    bool is_kept = was_sent && input->keeps_connection && input->state == INPUT_WHOLE &&
                   input->next == input->end; /* nginx sends nothing before it has the answer */
    if (is_kept && request->is_hurried)
        set_timeout(request->fd, fcgi->options.io_timeout_ms);
    request->is_hurried = false;
    if (!is_kept)
        drop_connection(request);
    fcgi->current = NULL;
    return was_sent;
}
