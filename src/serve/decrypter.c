/* decrypter: a loop, and a position in a file for each download. */
#include "serve/decrypter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process/reaper.h"
#include "base/stop.h"
#include "blob/blob_reseal.h"
#include "blob/blob_sealed.h"
#include "edge/events.h"
#include "edge/exchange.h"
#include "blob/file_ticket.h"
#include "serve/object_pipe.h"

enum {
    TICK_MS = 250,
    STALL_MS = 3600000, /* nginx ends a connection whose client is gone or takes nothing */
    DOWNLOADS_MOST = 8192,
    DESCRIPTORS = 64, /* for other than downloads */
    HEAD_ROOM = 256,
    OBJECTS_MOST = 64, /* each has a process */
    OBJECTS_OF_CLIENT = 16,
    CLIENT_BYTES = 64, /* an address or a network, as nginx has it */
    IDLE_MS = 5000,    /* so long the process of a client that takes nothing is kept */
};

struct decrypter {
    const struct settings *settings;
    struct events *events;
    struct watch *signal_watch;
    struct events_timer *tick;
    struct exchange_endpoint *endpoint;
    struct blob_store *blobs;
    struct sealed_file_reader *reader; /* one chunk at a time, of whichever download */
    struct arena *arena;               /* of a request */
    size_t downloads, most;
    struct download *fetching[OBJECTS_MOST]; /* the downloads that have a process */
    bool is_leaving;
};

struct download {
    struct decrypter *decrypter;
    struct exchange *exchange;
    int fd;                     /* -1: an object store has the file */
    struct object_pipe *object; /* NULL: nothing of it is requested at present */
    struct download **place;    /* of `object`, among those that have a process */
    struct events_timer *idle;  /* NULL: the directory has the file */
    struct file_ticket ticket;  /* its texts are those below */
    char database[FILE_TICKET_DATABASE + 1], store[FILE_TICKET_STORE + 1], name[FILE_TICKET_OBJECT + 1];
    char client[CLIENT_BYTES]; /* empty: not limited */
    int64_t at, end;           /* what is sent */
    bool is_part, is_begun;
};

/* --- downloads --- */

/* A place for its process, or NULL: there is none, or its client has its share. */
static struct download **decrypter_find_place(const struct download *download)
{
    struct download **places = download->decrypter->fetching, **free_place = NULL;
    size_t own = 0, all = 0;
    for (size_t i = 0; i < OBJECTS_MOST; i++) {
        all += places[i] != NULL;
        if (!places[i])
            free_place = &places[i];
        else if (*download->client && strcmp(places[i]->client, download->client) == 0)
            own++;
    }
    if (free_place && own < OBJECTS_OF_CLIENT)
        return free_place;
    log_often(LOG_LEVEL_WARNING, "downloads from stores",
              "too many downloads of encrypted files from object stores all=%zu of_client=%zu", all, own);
    return NULL;
}

static void close_sources(struct download *download)
{
    if (download->fd >= 0)
        close(download->fd);
    if (download->object)
        *download->place = NULL;
    object_pipe_close(download->object);
    download->fd = -1;
    download->object = NULL;
}

static void decrypter_end(struct download *download)
{
    struct decrypter *decrypter = download->decrypter;
    close_sources(download);
    events_timer_destroy(download->idle);
    explicit_bzero(download, sizeof *download);
    free(download);
    decrypter->downloads--;
    if (decrypter->is_leaving && !decrypter->downloads)
        events_stop(decrypter->events);
}

static void on_gone(void *context)
{
    decrypter_end(context);
}

static void on_arrived(void *context);

/* From the chunk that has the first byte to the end of that which has the last one. */
static bool open_object(struct download *download, struct download **place)
{
    struct decrypter *decrypter = download->decrypter;
    const struct sealed_file_head *head = &download->ticket.head;
    int64_t last = download->end > download->at ? download->end - 1 : download->at, from;
    size_t size;
    struct object_part part = {.store = download->store, .object = download->name};
    sealed_file_find_chunk(head, download->at, &part.from, &size);
    sealed_file_find_chunk(head, last, &from, &size);
    part.size = from + (int64_t)size - part.from;
    download->object = object_pipe_open(decrypter->events, decrypter->settings, &part, on_arrived, download);
    if (!download->object)
        return false;
    download->place = place;
    *place = download;
    return true;
}

enum piece_state { PIECE_READ, PIECE_LATER, PIECE_FAILED };

static void decrypter_send_piece(struct download *download);

/* The client takes nothing: what is missing is requested again when it does.  Or it takes, and there was no
 * process for it: again. */
static void on_idle(void *context)
{
    struct download *download = context;
    if (download->object)
        close_sources(download);
    else
        decrypter_send_piece(download);
}

static enum piece_state decrypter_read_file(struct download *download, struct bytes *piece_r)
{
    struct sealed_file_reader *reader = download->decrypter->reader;
    enum sealed_file_state state = sealed_file_read(reader, download->at, piece_r);
    if (state == SEALED_FILE_FINE)
        return PIECE_READ;
    (void)blob_sealed_report(state, download->ticket.database, &download->ticket.name);
    return PIECE_FAILED;
}

/* A file that has just been moved from the store is in the directory, with the same bytes. */
static enum piece_state turn_to_directory(struct download *download, struct bytes *piece_r)
{
    struct decrypter *decrypter = download->decrypter;
    const struct file_ticket *ticket = &download->ticket;
    close_sources(download);
    if (blob_reseal_open(decrypter->blobs, ticket->database, &ticket->name, &ticket->head, &download->fd))
        return PIECE_FAILED;
    sealed_file_turn(decrypter->reader, download->fd, &ticket->head);
    return decrypter_read_file(download, piece_r);
}

static enum piece_state decrypter_read_object(struct download *download, struct bytes *piece_r)
{
    int64_t from;
    size_t size;
    struct bytes sealed;
    const struct file_ticket *ticket = &download->ticket;
    sealed_file_find_chunk(&ticket->head, download->at, &from, &size);
    switch (object_pipe_read(download->object, size, &sealed)) {
    case OBJECT_PIPE_LATER:
        return PIECE_LATER;
    case OBJECT_PIPE_ENDED:
        return turn_to_directory(download, piece_r);
    case OBJECT_PIPE_READ:
        break;
    }
    enum sealed_file_state state =
        sealed_file_open_chunk(download->decrypter->reader, download->at, sealed, piece_r);
    if (state == SEALED_FILE_FINE)
        return PIECE_READ;
    (void)blob_sealed_report(state, ticket->database, &ticket->name);
    return PIECE_FAILED;
}

static enum piece_state read_piece(struct download *download, struct bytes *piece_r)
{
    if (download->fd < 0 && !download->object) { /* it was idle */
        struct download **place = decrypter_find_place(download);
        if (!place) {
            events_timer_start(download->idle, TICK_MS);
            return PIECE_LATER;
        }
        if (!open_object(download, place))
            return PIECE_FAILED;
    }
    sealed_file_turn(download->decrypter->reader, download->fd, &download->ticket.head);
    enum piece_state state =
        download->object ? decrypter_read_object(download, piece_r) : decrypter_read_file(download, piece_r);
    if (state == PIECE_READ && (int64_t)piece_r->size > download->end - download->at)
        piece_r->size = (size_t)(download->end - download->at);
    return state;
}

static void decrypter_refuse(struct exchange *exchange, const char *status)
{
    char head[HEAD_ROOM];
    int size = snprintf(head, sizeof head, "Status: %s\r\n\r\n", status);
    exchange_answer(exchange, (struct bytes){head, (size_t)size}, BYTES(""));
}

static void decrypter_begin(struct download *download)
{
    char head[HEAD_ROOM];
    int64_t size = download->ticket.head.size;
    int used = snprintf(head, sizeof head, "Status: %s\r\nContent-Length: %" PRId64 "\r\n",
                        download->is_part ? "206 Partial Content" : "200 OK", download->end - download->at);
    if (download->is_part)
        used += snprintf(head + used, sizeof head - (size_t)used,
                         "Content-Range: bytes %" PRId64 "-%" PRId64 "/%" PRId64 "\r\n", download->at,
                         download->end - 1, size);
    used += snprintf(head + used, sizeof head - (size_t)used, "\r\n");
    exchange_begin(download->exchange, (struct bytes){head, (size_t)used}, true);
    download->is_begun = true;
}

static void decrypter_complete(struct download *download)
{
    exchange_end(download->exchange);
    decrypter_end(download);
}

/* `gone` ends one whose head was sent. */
static void decrypter_fail(struct download *download)
{
    if (download->is_begun) {
        exchange_break(download->exchange);
        return;
    }
    decrypter_refuse(download->exchange, "500 Internal Server Error");
    decrypter_end(download);
}

/* The next chunk.  The first one is read before the head is sent, so that its faults have a status. */
static void decrypter_send_piece(struct download *download)
{
    struct bytes piece;
    switch (read_piece(download, &piece)) {
    case PIECE_READ:
        break;
    case PIECE_LATER: /* on_arrived */
        return;
    case PIECE_FAILED:
        decrypter_fail(download);
        return;
    }
    if (!download->is_begun)
        decrypter_begin(download);
    download->at += (int64_t)piece.size;
    if (!piece.size) {
        decrypter_complete(download);
        return;
    }
    exchange_write(download->exchange, piece);
    if (download->object)
        events_timer_start(download->idle, IDLE_MS);
}

static void on_arrived(void *context)
{
    decrypter_send_piece(context);
}

/* Everything was sent: the next chunk, or the end. */
static void on_drained(void *context)
{
    struct download *download = context;
    if (download->idle)
        events_timer_stop(download->idle);
    if (download->at == download->end)
        decrypter_complete(download);
    else
        decrypter_send_piece(download);
}

/* --- requests --- */

/* FROM-, FROM-TO or -COUNT, as workers pass it on; false: the file has no such bytes. */
static bool read_range(struct bytes range, int64_t size, int64_t *from_r, int64_t *end_r)
{
    int64_t from = 0, to = size - 1, count;
    (void)bytes_cut(&range, '=');
    struct bytes first = bytes_cut(&range, '-');
    if (!first.size) {
        if (!bytes_to_i64(range, &count))
            count = INT64_MAX; /* too many digits */
        from = count < size ? size - count : 0;
        if (!count)
            return false;
    } else {
        if (!bytes_to_i64(first, &from))
            return false;
        if (range.size && bytes_to_i64(range, &count) && count < to)
            to = count;
    }
    *from_r = from;
    *end_r = to + 1;
    return from < size && from <= to;
}

static struct download *make_download(struct decrypter *decrypter, struct exchange *exchange,
                                      const struct file_ticket *ticket)
{
    struct bytes client = exchange_header(exchange, "X-Stampd-Client");
    struct download *download = memory_zeroed(1, sizeof *download, "download");
    *download = (struct download){
        .decrypter = decrypter, .exchange = exchange, .fd = -1, .ticket = *ticket, .end = ticket->head.size};
    snprintf(download->client, sizeof download->client, "%.*s", (int)client.size,
             client.data ? client.data : "");
    memcpy(download->database, ticket->database.data, ticket->database.size);
    memcpy(download->store, ticket->store, strlen(ticket->store));
    memcpy(download->name, ticket->object, strlen(ticket->object));
    download->ticket.database = bytes_of(download->database);
    download->ticket.store = download->store;
    download->ticket.object = download->name;
    if (*ticket->store)
        download->idle = events_timer_create(decrypter->events, on_idle, download);
    decrypter->downloads++;
    return download;
}

static bool open_source(struct download *download)
{
    const struct file_ticket *ticket = &download->ticket;
    if (!*ticket->store)
        return !blob_reseal_open(download->decrypter->blobs, ticket->database, &ticket->name, &ticket->head,
                                 &download->fd);
    struct download **place = decrypter_find_place(download);
    return place && open_object(download, place);
}

static void send_file(struct download *download, struct bytes range, bool is_head)
{
    struct exchange *exchange = download->exchange;
    download->is_part = range.size > 0;
    if (download->is_part && !read_range(range, download->end, &download->at, &download->end)) {
        decrypter_refuse(exchange, "416 Range Not Satisfiable");
        decrypter_end(download);
    } else if (is_head) {
        decrypter_begin(download);
        decrypter_complete(download);
    } else if (!open_source(download)) {
        decrypter_refuse(exchange, "503 Service Unavailable");
        decrypter_end(download);
    } else {
        exchange_own(exchange,
                     &(struct exchange_owner){.gone = on_gone, .drained = on_drained, .context = download});
        decrypter_send_piece(download);
    }
}

static bool is_full(const struct decrypter *decrypter)
{
    bool is = decrypter->downloads >= decrypter->most;
    if (is)
        log_often(LOG_LEVEL_WARNING, "downloads", "too many downloads of encrypted files downloads=%zu",
                  decrypter->downloads);
    return is;
}

static void on_request(void *context, struct exchange *exchange)
{
    struct decrypter *decrypter = context;
    struct file_ticket ticket;
    arena_reset(decrypter->arena);
    struct bytes method = exchange_method(exchange);
    bool is_head = bytes_equal(method, BYTES("HEAD"));
    if (!is_head && !bytes_equal(method, BYTES("GET"))) {
        decrypter_refuse(exchange, "405 Method Not Allowed");
        return;
    }
    if (!file_ticket_read(decrypter->arena, exchange_header(exchange, "X-Stampd-File"), &ticket)) {
        decrypter_refuse(exchange, "403 Forbidden");
        return;
    }
    if (is_full(decrypter))
        decrypter_refuse(exchange, "503 Service Unavailable");
    else
        send_file(make_download(decrypter, exchange, &ticket), exchange_header(exchange, "Range"), is_head);
    explicit_bzero(&ticket, sizeof ticket);
}

/* --- the process --- */

static void on_tick(void *context)
{
    struct decrypter *decrypter = context;
    log_flush(clock_monotonic_ms());
    reaper_reap(); /* of objects */
    events_timer_start(decrypter->tick, TICK_MS);
}

/* Downloads that have begun are completed, for as long as the master waits. */
static void on_signal(void *context)
{
    struct decrypter *decrypter = context;
    enum stop stop = stop_requested();
    if (stop == STOP_NOT)
        return;
    if (!decrypter->is_leaving)
        exchange_endpoint_stop(decrypter->endpoint);
    decrypter->is_leaving = true;
    if (stop == STOP_NOW || !decrypter->downloads)
        events_stop(decrypter->events);
}

/* Each download has a file and a connection.  The master has raised the limit. */
static size_t most_downloads(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return DESCRIPTORS;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 2 * DOWNLOADS_MOST + DESCRIPTORS)
        return DOWNLOADS_MOST;
    return limit.rlim_cur > 4 * DESCRIPTORS ? (size_t)(limit.rlim_cur - DESCRIPTORS) / 2 : DESCRIPTORS;
}

int decrypter_run(const struct heritage *heritage)
{
    static const struct sealed_file_head none;
    struct decrypter decrypter = {
        .settings = heritage->settings,
        .blobs = blob_store_open(heritage->settings->blob_directory, BLOB_NO_GROUP),
        .reader = sealed_file_open(-1, &none),
        .arena = arena_create("downloads"),
        .most = most_downloads(),
    };
    (void)prctl(PR_SET_NAME, "stampd-decrypt"); /* for administrators */
    int signals = stop_open();
    decrypter.events = events_create();
    decrypter.signal_watch = events_watch_create(decrypter.events, on_signal, &decrypter);
    decrypter.tick = events_timer_create(decrypter.events, on_tick, &decrypter);
    decrypter.endpoint =
        exchange_endpoint_open(decrypter.events, &(struct endpoint_options){.listener = heritage->listener,
                                                                            .stall_ms = STALL_MS,
                                                                            .request = on_request,
                                                                            .context = &decrypter});
    events_watch_set(decrypter.signal_watch, signals, false);
    events_timer_start(decrypter.tick, TICK_MS);
    heritage_notify(heritage, MESSAGE_READY);
    events_run(decrypter.events);
    exchange_endpoint_close(decrypter.endpoint);
    events_watch_destroy(decrypter.signal_watch);
    events_timer_destroy(decrypter.tick);
    events_destroy(decrypter.events);
    sealed_file_close(decrypter.reader);
    arena_destroy(decrypter.arena);
    blob_store_close(decrypter.blobs);
    return 0;
}
