/* exchange: evhttp.
 *
 * evhttp frees a connection and calls its close callback when the peer has gone; the request in progress must
 * then be freed by its owner (evhttp_send_reply_end does it).  So an exchange lives from the request until
 * one of the two. */
#include "edge/exchange.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "edge/events_private.h"

enum {
    REQUEST_TIMEOUT_S = 30, /* to receive a request; the proxy has buffered it completely */
    HEAD_MOST = 64 * 1024,
    KERNEL_BYTES = 16 * 1024, /* data that the kernel buffers for one connection */
    STATUS_LEAST = 100,
    STATUS_MOST = 599,
    ACCEPT_PAUSE_MS = 200, /* when no descriptor is left for a connection */
};

struct exchange_endpoint {
    struct endpoint_options options;
    struct evhttp *http;
    struct evhttp_bound_socket *bound; /* NULL: stopped */
    struct events_timer *pause;
    bool is_closing;
};

struct exchange {
    struct exchange_endpoint *endpoint;
    struct evhttp_request *request;
    struct evhttp_connection *connection;
    struct exchange_owner owner; /* none before the answer has begun */
};

static void on_close(struct evhttp_connection *connection, void *context)
{
    (void)connection;
    struct exchange *exchange = context;
    struct exchange_owner owner = exchange->owner;
    if (!evhttp_request_get_connection(exchange->request)) /* evhttp does not free it then */
        evhttp_send_reply_end(exchange->request);
    if (!exchange->endpoint->is_closing && owner.gone)
        owner.gone(owner.context);
    free(exchange);
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct exchange_endpoint *endpoint = context;
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        events_end_without_memory();
    exchange->endpoint = endpoint;
    exchange->request = request;
    exchange->connection = evhttp_request_get_connection(request);
    evhttp_connection_set_closecb(exchange->connection, on_close, exchange);
    endpoint->options.request(endpoint->options.context, exchange);
}

/* The socket stays readable, so accepting pauses for a while; pending connections stay in the backlog. */
static void on_accept_failed(struct evconnlistener *listener, void *context)
{
    struct exchange_endpoint *endpoint = context;
    log_often(LOG_LEVEL_WARNING, "", "cannot accept a connection: %m");
    (void)evconnlistener_disable(listener);
    events_timer_start(endpoint->pause, ACCEPT_PAUSE_MS);
}

static void on_pause_over(void *context)
{
    struct exchange_endpoint *endpoint = context;
    if (endpoint->bound)
        (void)evconnlistener_enable(evhttp_bound_socket_get_listener(endpoint->bound));
}

static void note_failures(struct exchange_endpoint *endpoint, struct events *events)
{
    endpoint->pause = events_timer_create(events, on_pause_over, endpoint);
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(endpoint->bound);
    evconnlistener_set_error_cb(listener, on_accept_failed);
}

struct exchange_endpoint *exchange_endpoint_open(struct events *events,
                                                 const struct endpoint_options *options)
{
    struct exchange_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint || !(endpoint->http = evhttp_new(events->base)))
        events_end_without_memory();
    endpoint->options = *options;
    evhttp_set_gencb(endpoint->http, on_request, endpoint);
    evhttp_set_timeout(endpoint->http, REQUEST_TIMEOUT_S);
    evhttp_set_max_headers_size(endpoint->http, HEAD_MOST);
    evhttp_set_max_body_size(endpoint->http, (ev_ssize_t)options->body_most);
    evhttp_set_default_content_type(endpoint->http, NULL);
    evhttp_set_allowed_methods(endpoint->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_OPTIONS |
                                                   EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                   EVHTTP_REQ_PATCH);
    int flags = fcntl(options->listener, F_GETFL);
    if (flags < 0 || fcntl(options->listener, F_SETFL, flags | O_NONBLOCK) ||
        !(endpoint->bound = evhttp_accept_socket_with_handle(endpoint->http, options->listener)))
        log_fatal("cannot listen for requests: %m");
    note_failures(endpoint, events);
    return endpoint;
}

void exchange_endpoint_stop(struct exchange_endpoint *endpoint)
{
    if (endpoint->bound)
        evhttp_del_accept_socket(endpoint->http, endpoint->bound);
    endpoint->bound = NULL;
}

void exchange_endpoint_close(struct exchange_endpoint *endpoint)
{
    endpoint->is_closing = true;
    events_timer_destroy(endpoint->pause);
    evhttp_free(endpoint->http);
    free(endpoint);
}

void exchange_own(struct exchange *exchange, const struct exchange_owner *owner)
{
    exchange->owner = *owner;
}

struct bytes exchange_method(const struct exchange *exchange)
{
    switch (evhttp_request_get_command(exchange->request)) {
    case EVHTTP_REQ_GET:
        return BYTES("GET");
    case EVHTTP_REQ_POST:
        return BYTES("POST");
    case EVHTTP_REQ_OPTIONS:
        return BYTES("OPTIONS");
    case EVHTTP_REQ_HEAD:
        return BYTES("HEAD");
    case EVHTTP_REQ_PUT:
        return BYTES("PUT");
    case EVHTTP_REQ_DELETE:
        return BYTES("DELETE");
    default:
        return BYTES("PATCH");
    }
}

struct bytes exchange_uri(const struct exchange *exchange)
{
    return bytes_of(evhttp_request_get_uri(exchange->request));
}

struct bytes exchange_header(const struct exchange *exchange, const char *name)
{
    return bytes_of(evhttp_find_header(evhttp_request_get_input_headers(exchange->request), name));
}

struct bytes exchange_body(const struct exchange *exchange)
{
    struct evbuffer *body = evhttp_request_get_input_buffer(exchange->request);
    size_t size = evbuffer_get_length(body);
    const unsigned char *data = size ? evbuffer_pullup(body, -1) : NULL;
    if (size && !data)
        events_end_without_memory();
    return (struct bytes){size ? (const char *)data : "", size};
}

void exchange_forget_body(struct exchange *exchange)
{
    struct evbuffer *body = evhttp_request_get_input_buffer(exchange->request);
    (void)evbuffer_drain(body, evbuffer_get_length(body));
}

/* evhttp keeps the URI both as received and parsed; headers too. */
size_t exchange_size(const struct exchange *exchange)
{
    return evbuffer_get_length(evhttp_request_get_input_buffer(exchange->request)) +
           2 * exchange_uri(exchange).size;
}

/* --- answers --- */

/* Takes one line, "Name: value", off the head, without its end; false: there are no more. */
static bool exchange_take_line(struct bytes *head, char *name_r, size_t name_size, char *value_r,
                               size_t value_size)
{
    const char *end = head->size ? memmem(head->data, head->size, "\r\n", 2) : NULL;
    const char *colon = end ? memchr(head->data, ':', (size_t)(end - head->data)) : NULL;
    if (!colon || end == head->data)
        return false;
    size_t name = (size_t)(colon - head->data), value = (size_t)(end - colon - 1);
    while (value && colon[1] == ' ') {
        colon++;
        value--;
    }
    assert(name < name_size && value < value_size);
    memcpy(name_r, head->data, name);
    name_r[name] = '\0';
    memcpy(value_r, colon + 1, value);
    value_r[value] = '\0';
    head->size -= (size_t)(end + 2 - head->data);
    head->data = end + 2;
    return true;
}

/* Adds the headers of a CGI head; returns the status and its words. */
static int add_headers(struct evhttp_request *request, struct bytes head, bool has_length, char *words_r,
                       size_t words_size)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    int64_t status = 200;
    char name[64], value[4096];
    *words_r = '\0';
    while (exchange_take_line(&head, name, sizeof name, value, sizeof value)) {
        if (strcmp(name, "Status") == 0) {
            char *blank = strchr(value, ' ');
            struct bytes number = {value, blank ? (size_t)(blank - value) : strlen(value)};
            bool is_number = bytes_to_i64(number, &status);
            assert(is_number && status >= STATUS_LEAST && status <= STATUS_MOST);
            size_t size = blank ? strlen(blank + 1) : 0;
            assert(size < words_size);
            memcpy(words_r, blank ? blank + 1 : "", size + 1);
        } else if ((has_length || strcmp(name, "Content-Length") != 0) && /* else evhttp computes it */
                   evhttp_add_header(headers, name, value)) {
            events_end_without_memory();
        }
    }
    return (int)status;
}

void exchange_answer(struct exchange *exchange, struct bytes head, struct bytes body)
{
    char words[64];
    int status = add_headers(exchange->request, head, false, words, sizeof words);
    struct evbuffer *text = evbuffer_new();
    if (!text || evbuffer_add(text, body.data, body.size))
        events_end_without_memory();
    evhttp_connection_set_closecb(exchange->connection, NULL, NULL);
    evhttp_send_reply(exchange->request, status, words, text);
    evbuffer_free(text);
    free(exchange);
}

static void on_drained(struct evhttp_connection *connection, void *context)
{
    (void)connection;
    struct exchange *exchange = context;
    exchange->owner.drained(exchange->owner.context);
}

void exchange_begin(struct exchange *exchange, struct bytes head, bool is_sized)
{
    char words[64];
    struct bufferevent *buffer = evhttp_connection_get_bufferevent(exchange->connection);
    struct timeval stall = events_time(exchange->endpoint->options.stall_ms);
    int bytes = KERNEL_BYTES;
    (void)setsockopt(bufferevent_getfd(buffer), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    int status = add_headers(exchange->request, head, is_sized, words, sizeof words);
    evhttp_send_reply_start(exchange->request, status, words);
    bufferevent_set_timeouts(buffer, NULL, &stall);
}

void exchange_write(struct exchange *exchange, struct bytes text)
{
    struct evbuffer *chunk = evbuffer_new();
    if (!chunk || evbuffer_add(chunk, text.data, text.size))
        events_end_without_memory();
    evhttp_send_reply_chunk_with_cb(exchange->request, chunk, on_drained, exchange);
    evbuffer_free(chunk);
}

size_t exchange_unsent(const struct exchange *exchange)
{
    struct bufferevent *buffer = evhttp_connection_get_bufferevent(exchange->connection);
    return evbuffer_get_length(bufferevent_get_output(buffer));
}

void exchange_end(struct exchange *exchange)
{
    evhttp_connection_set_closecb(exchange->connection, NULL, NULL);
    evhttp_send_reply_end(exchange->request);
    free(exchange);
}

void exchange_break(struct exchange *exchange)
{
    struct bufferevent *buffer = evhttp_connection_get_bufferevent(exchange->connection);
    (void)shutdown(bufferevent_getfd(buffer), SHUT_RDWR);
}
