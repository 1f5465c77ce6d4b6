/* fcgi: epoll in front of libfcgi.
 *
 * libfcgi reads records, parameters and the body.  Three things are done here instead.  Accepting, because
 * FCGX_Accept_r would wait for a silent client, return connections while the worker drains, and leave
 * descriptors open across exec: its requests get a connected descriptor, and no listener to fall back to.
 * Closing, because libfcgi lingers up to two seconds: requests are detached.  Writing, because libfcgi copies
 * an answer into records of 8 KB with a write for each: here one writev sends head, body and the end of the
 * request without copying. */
#include "edge/fcgi.h"

#include <errno.h>
#include <fastcgi.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"

/* Writes pieces of memory to a connection, all of them. */

enum write_result {
    WRITE_DONE,
    WRITE_CLOSED, /* the peer has closed the connection */
    WRITE_STUCK,  /* it accepts no data for longer than the timeout of the connection */
};

/* Changes `parts`. */
MUST_USE static enum write_result write_parts(int fd, struct iovec *parts, int count)
{
    while (count) {
        ssize_t wrote = writev(fd, parts, count);
        if (wrote < 0) {
            if (errno == EINTR)
                continue;
            return errno == EPIPE || errno == ECONNRESET ? WRITE_CLOSED : WRITE_STUCK;
        }
        size_t left = (size_t)wrote;
        for (; count && left >= parts->iov_len; parts++, count--)
            left -= parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return WRITE_DONE;
}

enum {
    WAITING_MOST = 1024,
    EVENTS_AT_ONCE = 64,
    ACCEPTS_AT_ONCE = 64,
    PAUSE_MS = 100,       /* no accept for this long after descriptors ran out */
    RECORD_BYTES = 65528, /* content of the largest record, a multiple of 8 */
    RECORDS_AT_ONCE = 32,
    PARAMETERS = 32, /* indexed here; our nginx sends fewer */
};

/* State of the body. */
enum input { INPUT_OPEN, INPUT_WHOLE, INPUT_BROKEN };

struct parameter {
    struct bytes name, value;
};

/* A tag of a name, its length and last byte, so that few names are compared in full. */
static inline uint16_t tag_of(struct bytes name)
{
    return (uint16_t)(name.size << 8 | (name.size ? (unsigned char)name.data[name.size - 1] : 0));
}

/* One of 64 bits.  Most parameters that are looked for are absent, and most of those have a bit that no
 * parameter of the request has. */
static inline uint64_t bit_of(uint16_t tag)
{
    return UINT64_C(1) << ((tag ^ tag >> 8) & 63);
}

/* A connection and its current request. */
struct fcgi_request {
    FCGX_Request fcgx;
    struct parameter parameters[PARAMETERS];
    uint16_t tags[PARAMETERS]; /* of their names */
    uint64_t bits;             /* of their tags */
    int parameter_count;
    int fd;
    enum input input;
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
    bool has_left;          /* the peer of the last request, before its answer was sent */
    int64_t pause_until_ms; /* accepting is paused until then; 0: not paused */
    size_t connections;
    struct fcgi_request *living, *spare, *current;
    int event_next, event_count;
    struct epoll_event events[EVENTS_AT_ONCE];
};

/* --- connections --- */

static void *fcgi_allocate(size_t size)
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

/* Removes libfcgi's signal handlers: SIGPIPE is ignored, base/stop handles the others. */
static void start_library(void)
{
    static const int handled[] = {SIGTERM, SIGUSR1, SIGPIPE};
    struct sigaction before[COUNT_OF(handled)];
    for (size_t i = 0; i < COUNT_OF(handled); i++)
        sigaction(handled[i], NULL, &before[i]);
    if (FCGX_Init())
        log_fatal("cannot start libfcgi");
    for (size_t i = 0; i < COUNT_OF(handled); i++)
        sigaction(handled[i], &before[i], NULL);
}

struct fcgi *fcgi_open(const struct fcgi_options *options)
{
    struct fcgi *fcgi = fcgi_allocate(sizeof *fcgi);
    start_library();
    fcgi->options = *options;
    fcgi->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (fcgi->epoll < 0)
        log_fatal("cannot make an epoll descriptor: %m");
    fcgi->is_listening = true;
    watch(fcgi, options->listener, &fcgi->options.listener, EPOLLIN, EPOLL_CTL_ADD);
    if (options->wake >= 0)
        watch(fcgi, options->wake, &fcgi->options.wake, EPOLLIN, EPOLL_CTL_ADD);
    return fcgi;
}

/* Of one read and of one write.  nginx sends a head at once, and a body that it has; whose request takes too
 * long nevertheless is ended by the supervisor. */
static void set_timeouts(int fd, int64_t ms)
{
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit))
        log_fatal("cannot limit the time of a connection: %m");
}

static void add_connection(struct fcgi *fcgi, int fd)
{
    struct fcgi_request *request = fcgi->spare;
    if (request)
        fcgi->spare = request->next;
    else
        request = fcgi_allocate(sizeof *request);
    request->previous = NULL;
    request->next = fcgi->living;
    request->fcgi = fcgi;
    request->fd = fd;
    request->is_hurried = false;
    FCGX_InitRequest(&request->fcgx, -1, FCGI_FAIL_ACCEPT_ON_INTR);
    if (fcgi->living)
        fcgi->living->previous = request;
    fcgi->living = request;
    fcgi->connections++;
    set_timeouts(fd, fcgi->options.io_timeout_ms);
    watch(fcgi, fd, request, EPOLLIN, EPOLL_CTL_ADD);
}

/* The descriptor is closed here unless it is -1, which means that it is closed already. */
static void drop_connection(struct fcgi_request *request, int fd)
{
    struct fcgi *fcgi = request->fcgi;
    if (fd >= 0)
        close(fd);
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
        drop_connection(fcgi->living, fcgi->living->fd);
    while (fcgi->spare) {
        struct fcgi_request *request = fcgi->spare;
        fcgi->spare = request->next;
        free(request);
    }
    close(fcgi->epoll);
    free(fcgi);
}

/* --- waiting --- */

/* libfcgi compares every parameter at each lookup, and a request makes a dozen: each is measured once. */
static void list_parameters(struct fcgi_request *request)
{
    int count = 0;
    request->bits = 0;
    for (char **text = request->fcgx.envp; *text && count < PARAMETERS; text++) {
        const char *equals = strchr(*text, '=');
        assert(equals); /* libfcgi joined name and value */
        struct bytes name = {*text, (size_t)(equals - *text)};
        request->tags[count] = tag_of(name);
        request->bits |= bit_of(request->tags[count]);
        request->parameters[count++] = (struct parameter){.name = name, .value = bytes_of(equals + 1)};
    }
    request->parameter_count = count;
}

/* Reads the head of a request; drops the connection when it is closed, too slow, or not FastCGI. */
static bool begin_request(struct fcgi_request *request)
{
    FCGX_Request *fcgx = &request->fcgx;
    fcgx->ipcFd = request->fd;
    fcgx->keepConnection = 1; /* otherwise FCGX_Accept_r would close it first */
    FCGX_Detach(fcgx);
    bool has_failed = FCGX_Accept_r(fcgx) != 0;
    if (has_failed) {
        drop_connection(request, -1); /* closed by the library */
        return false;
    }
    if (fcgx->role != FCGI_RESPONDER) {
        FCGX_Free(fcgx, 0);
        drop_connection(request, request->fd);
        return false;
    }
    list_parameters(request);
    request->input = INPUT_OPEN;
    request->input_left = -1;
    request->fcgi->current = request;
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

struct bytes fcgi_parameter(const struct fcgi_request *request, struct bytes name)
{
    uint16_t tag = tag_of(name);
    for (int i = 0; request->bits & bit_of(tag) && i < request->parameter_count; i++)
        if (request->tags[i] == tag && bytes_equal(request->parameters[i].name, name))
            return request->parameters[i].value;
    return request->parameter_count < PARAMETERS ? NO_BYTES
                                                 : bytes_of(FCGX_GetParam(name.data, request->fcgx.envp));
}

/* No byte comes any more.  FAULT_XTIME: the client may have sent all of them: a read has waited too long, or
 * the process was stopped meanwhile, after which the system interrupts a read that has a timeout.  libfcgi
 * may have lost a part of a header then, so the read cannot go on. */
static enum fault note_end(struct fcgi_request *request)
{
    int error = FCGX_GetError(request->fcgx.in);
    request->input = error ? INPUT_BROKEN : INPUT_WHOLE;
    return error == EINTR || error == EAGAIN ? FAULT_XTIME : FAULT_ABODY;
}

/* After the last expected byte: the stream must end here. */
static enum fault end_input(struct fcgi_request *request)
{
    if (FCGX_GetChar(request->fcgx.in) != EOF)
        return FAULT_ABODY; /* longer than announced; the rest is discarded with the answer */
    enum fault fault = note_end(request);
    return request->input == INPUT_WHOLE ? FAULT_NONE : fault;
}

/* A keep-alive connection is reusable only after the body was read to its end. */
static void discard_input(struct fcgi_request *request)
{
    static char waste[65536];
    while (request->input == INPUT_OPEN) {
        if (FCGX_GetStr(waste, sizeof waste, request->fcgx.in) < (int)sizeof waste)
            request->input = FCGX_GetError(request->fcgx.in) ? INPUT_BROKEN : INPUT_WHOLE;
    }
}

/* Appends the whole body. */
static enum fault read_whole(struct fcgi_request *request, size_t length, struct builder *body)
{
    for (size_t left = length; left;) {
        int want = left < 1 << 20 ? (int)left : 1 << 20;
        int got = FCGX_GetStr(builder_reserve(body, (size_t)want), want, request->fcgx.in);
        if (got > 0)
            body->size += (size_t)got;
        if (got < want) /* the client has aborted, or nginx has closed the connection */
            return note_end(request);
        left -= (size_t)want;
    }
    return end_input(request);
}

/* The announced length of the body.  FAULT_ABODY: it is not a number. */
static enum fault fcgi_measure_body(const struct fcgi_request *request, int64_t *size_r)
{
    struct bytes announced = fcgi_parameter(request, BYTES("CONTENT_LENGTH"));
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
    fault = read_whole(request, (size_t)*size_r, body);
    if (fault)
        body->size = start;
    return fault;
}

enum fault fcgi_read_piece(struct fcgi_request *request, char *room, size_t room_size, size_t *size_r)
{
    *size_r = 0;
    enum fault fault =
        request->input_left < 0 ? fcgi_measure_body(request, &request->input_left) : FAULT_NONE;
    if (fault || (!request->input_left && request->input == INPUT_WHOLE))
        return fault;
    if (request->input != INPUT_OPEN)
        return FAULT_ABODY;
    size_t most = room_size < INT_MAX ? room_size : INT_MAX;
    int want = (int64_t)most < request->input_left ? (int)most : (int)request->input_left;
    int got = want ? FCGX_GetStr(room, want, request->fcgx.in) : 0;
    if (got < want) {
        fault = note_end(request);
    } else {
        request->input_left -= got;
        *size_r = (size_t)got;
        fault = request->input_left ? FAULT_NONE : end_input(request);
    }
    return fault;
}

/* --- one request: out --- */

static FCGI_Header record_header(int type, int request_id, size_t size)
{
    return (FCGI_Header){
        .version = FCGI_VERSION_1,
        .type = (unsigned char)type,
        .requestIdB1 = (unsigned char)(request_id >> 8),
        .requestIdB0 = (unsigned char)request_id,
        .contentLengthB1 = (unsigned char)(size >> 8),
        .contentLengthB0 = (unsigned char)size,
    };
}

/* Records to be sent, with pointers to their contents. */
struct sheet {
    FCGI_Header headers[RECORDS_AT_ONCE];
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
static void fcgi_add_record(struct sheet *sheet, int request_id, struct bytes *head, struct bytes *body)
{
    FCGI_Header *header = &sheet->headers[sheet->header_count++];
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
        fcgi_add_record(sheet, request_id, head, body);
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
    FCGI_Header no_more;
    FCGI_EndRequestRecord end; /* its status 0 is FCGI_REQUEST_COMPLETE */
    FCGI_Header let_go;        /* an empty list of values */
};

static bool write_answer(const struct fcgi_request *request, struct bytes head, struct bytes body)
{
    int id = request->fcgx.requestId;
    struct ending ending = {
        record_header(FCGI_STDOUT, id, 0),
        {record_header(FCGI_END_REQUEST, id, sizeof(FCGI_EndRequestBody)), {0}},
        record_header(FCGI_GET_VALUES_RESULT, FCGI_NULL_REQUEST_ID, 0),
    };
    bool lets_go = request->fcgx.keepConnection && !request->fcgi->is_listening;
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
    if (request->input == INPUT_OPEN)
        discard_input(request);
    request->is_hurried = true;
    while (head.size || body.size) {
        struct sheet sheet;
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            return false;
        set_timeouts(request->fd, left_ms < most_ms ? left_ms : most_ms);
        fill_sheet(&sheet, request->fcgx.requestId, &head, &body);
        if (!write_sheet(request, &sheet))
            return false;
    }
    return true;
}

void fcgi_abandon(struct fcgi_request *request)
{
    assert(request->fcgi->current == request);
    FCGX_Free(&request->fcgx, 0);
    request->fcgi->current = NULL;
    drop_connection(request, request->fd);
}

bool fcgi_has_left(const struct fcgi *fcgi)
{
    return fcgi->has_left;
}

bool fcgi_answer(struct fcgi_request *request, struct bytes head, struct bytes body)
{
    struct fcgi *fcgi = request->fcgi;
    assert(fcgi->current == request);
    if (request->input == INPUT_OPEN)
        discard_input(request);
    bool was_sent = write_answer(request, head, body);
    bool is_kept = was_sent && request->fcgx.keepConnection && request->input == INPUT_WHOLE;
    if (is_kept && request->is_hurried)
        set_timeouts(request->fd, fcgi->options.io_timeout_ms);
    request->is_hurried = false;
    FCGX_Free(&request->fcgx, 0);
    if (!is_kept)
        drop_connection(request, request->fd);
    fcgi->current = NULL;
    return was_sent;
}
