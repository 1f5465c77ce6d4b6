/* fcgi_ask: the records of FastCGI 1.0: BEGIN_REQUEST, PARAMS and STDIN, which end with an empty record each,
 * are written; STDOUT is gathered until END_REQUEST. */
#include "edge/fcgi_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/memory.h"

enum { RECORD_HEAD = 8, CONTENT_MOST = 65528, VERSION = 1, RESPONDER = 1, REQUEST_ID = 1 };
enum record_type { RECORD_BEGIN = 1, RECORD_END = 3, RECORD_PARAMS = 4, RECORD_STDIN = 5, RECORD_STDOUT = 6 };
enum { PIECE_BYTES = 16 * 1024 };

struct fcgi_ask {
    int fd;
    struct watch *watch;
    struct events_timer *timer;
    size_t answer_most;
    void (*answered)(void *context, struct bytes answer);
    void *context;
    struct builder request, input, answer;
    size_t written;
};

/* --- the request --- */

static void add_record_head(struct builder *request, enum record_type type, size_t size)
{
    const unsigned char head[RECORD_HEAD] = {VERSION,    (unsigned char)type,        0,
                                             REQUEST_ID, (unsigned char)(size >> 8), (unsigned char)size};
    builder_add(request, head, sizeof head);
}

/* A stream: its records, then the empty one that ends it. */
static void add_stream(struct builder *request, enum record_type type, struct bytes text)
{
    while (text.size) {
        size_t size = text.size < CONTENT_MOST ? text.size : CONTENT_MOST;
        add_record_head(request, type, size);
        builder_add(request, text.data, size);
        text.data += size;
        text.size -= size;
    }
    add_record_head(request, type, 0);
}

static void add_length(struct builder *text, size_t size)
{
    const unsigned char length[] = {(unsigned char)(size >> 24 | 0x80), (unsigned char)(size >> 16),
                                    (unsigned char)(size >> 8), (unsigned char)size};
    if (size < 0x80)
        builder_add(text, &length[3], 1);
    else
        builder_add(text, length, sizeof length);
}

static void write_request(struct builder *request, const struct fcgi_ask_options *options)
{
    static const unsigned char begin[8] = {0, RESPONDER}; /* the connection is closed behind the answer */
    struct builder parameters = {0};
    for (size_t i = 0; i < options->count; i++) {
        struct bytes name = bytes_of(options->parameters[i].name), value = options->parameters[i].value;
        if (!value.data)
            continue;
        add_length(&parameters, name.size);
        add_length(&parameters, value.size);
        builder_add_bytes(&parameters, name);
        builder_add_bytes(&parameters, value);
    }
    add_record_head(request, RECORD_BEGIN, sizeof begin);
    builder_add(request, begin, sizeof begin);
    add_stream(request, RECORD_PARAMS, builder_bytes(&parameters));
    add_stream(request, RECORD_STDIN, options->body);
    builder_free(&parameters);
}

/* --- the answer --- */

void fcgi_ask_cancel(struct fcgi_ask *ask)
{
    events_watch_destroy(ask->watch);
    events_timer_destroy(ask->timer);
    close(ask->fd);
    builder_free(&ask->request);
    builder_free(&ask->input);
    builder_free(&ask->answer);
    free(ask);
}

static void fcgi_ask_end(struct fcgi_ask *ask, bool is_whole)
{
    ask->answered(ask->context, is_whole ? builder_bytes(&ask->answer) : NO_BYTES);
    fcgi_ask_cancel(ask);
}

/* Takes the records that have come whole.  True: the answer has ended, one way or the other. */
static bool take_records(struct fcgi_ask *ask, bool *is_whole_r)
{
    struct builder *input = &ask->input;
    size_t taken = 0;
    while (input->size - taken >= RECORD_HEAD) {
        const unsigned char *head = (const unsigned char *)input->data + taken;
        size_t size = (size_t)head[4] << 8 | head[5], whole = RECORD_HEAD + size + head[6];
        if (input->size - taken < whole)
            break;
        if (head[1] == RECORD_STDOUT)
            builder_add(&ask->answer, head + RECORD_HEAD, size);
        taken += whole;
        *is_whole_r = head[1] == RECORD_END && ask->answer.size && ask->answer.size <= ask->answer_most;
        if (head[1] == RECORD_END || ask->answer.size > ask->answer_most)
            return true;
    }
    if (taken) {
        memmove(input->data, input->data + taken, input->size - taken);
        input->size -= taken;
    }
    return false;
}

static void read_some(struct fcgi_ask *ask)
{
    bool is_whole = false;
    ssize_t size = read(ask->fd, builder_reserve(&ask->input, PIECE_BYTES), PIECE_BYTES);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size > 0)
        ask->input.size += (size_t)size;
    if (size <= 0 || take_records(ask, &is_whole))
        fcgi_ask_end(ask, is_whole);
}

static void write_some(struct fcgi_ask *ask)
{
    size_t left = ask->request.size - ask->written;
    ssize_t size = send(ask->fd, ask->request.data + ask->written, left, MSG_NOSIGNAL);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size < 0) {
        fcgi_ask_end(ask, false);
        return;
    }
    ask->written += (size_t)size;
    if (ask->written == ask->request.size)
        events_watch_set(ask->watch, ask->fd, false);
}

static void on_ask_ready(void *context)
{
    struct fcgi_ask *ask = context;
    if (ask->written < ask->request.size)
        write_some(ask);
    else
        read_some(ask);
}

static void on_ask_late(void *context)
{
    fcgi_ask_end(context, false);
}

/* --- the beginning --- */

/* A Unix socket is connected at once, or not at all. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (size > 0 && (size_t)size < sizeof address.sun_path &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

struct fcgi_ask *fcgi_ask_begin(struct events *events, const struct fcgi_ask_options *options)
{
    int fd = connect_to(options->path);
    if (fd < 0)
        return NULL;
    struct fcgi_ask *ask = memory_zeroed(1, sizeof *ask, "request to a worker");
    *ask = (struct fcgi_ask){.fd = fd,
                             .answer_most = options->answer_most,
                             .answered = options->answered,
                             .context = options->context};
    ask->watch = events_watch_create(events, on_ask_ready, ask);
    ask->timer = events_timer_create(events, on_ask_late, ask);
    write_request(&ask->request, options);
    events_watch_set(ask->watch, fd, true);
    events_timer_start(ask->timer, options->patience_ms);
    return ask;
}
