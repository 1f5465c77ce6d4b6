/* exchange: requests and long-lived HTTP responses in an event loop, behind libevent.  It takes requests from
 * a proxy on the same host, one per connection. */
#ifndef STAMPD_EDGE_EXCHANGE_H
#define STAMPD_EDGE_EXCHANGE_H

#include "base/bytes.h"
#include "edge/events.h"

struct exchange; /* a request and its answer */

struct endpoint_options {
    int listener; /* ownership passes to the endpoint; made non-blocking */
    size_t body_most;
    int64_t stall_ms; /* a connection that accepts no data for this long is closed */
    void (*request)(void *context, struct exchange *exchange);
    void *context;
};
struct exchange_endpoint;
struct exchange_endpoint *exchange_endpoint_open(struct events *events,
                                                 const struct endpoint_options *options)
    __attribute__((returns_nonnull));
/* Accepts no new connections from now on. */
void exchange_endpoint_stop(struct exchange_endpoint *endpoint);
/* Closes all connections without calling their owners. */
void exchange_endpoint_close(struct exchange_endpoint *endpoint);

/* Texts of the request live until the response begins or the exchange ends. */
struct bytes exchange_method(const struct exchange *exchange);
struct bytes exchange_uri(const struct exchange *exchange);
struct bytes exchange_header(const struct exchange *exchange, const char *name); /* NO_BYTES: absent */
struct bytes exchange_body(const struct exchange *exchange);
/* Discards the body, which is empty from now on. */
void exchange_forget_body(struct exchange *exchange);
/* Approximate memory of the request, in bytes. */
size_t exchange_size(const struct exchange *exchange);

/* An exchange that is still unanswered when `request` returns must have an owner. */
struct exchange_owner {
    void (*gone)(void *context);    /* the connection is closed; the exchange is no longer valid */
    void (*drained)(void *context); /* all written data has been sent */
    void *context;
};
void exchange_own(struct exchange *exchange, const struct exchange_owner *owner);

/* Sends a whole response and ends the exchange.  `head` is a CGI head:
 * "Status: 404 Not Found\r\nName: value\r\n\r\n". */
void exchange_answer(struct exchange *exchange, struct bytes head, struct bytes body);
/* Begins a streamed response.  `is_sized`: it has exactly as many bytes as Content-Length in the head says;
 * otherwise that header is left out. */
void exchange_begin(struct exchange *exchange, struct bytes head, bool is_sized);
void exchange_write(struct exchange *exchange, struct bytes text);
/* Bytes written but not sent yet, those in the kernel not counted. */
size_t exchange_unsent(const struct exchange *exchange);
/* The response cannot be completed: the connection is closed, so that the peer notices, and `gone` is called
 * from the loop. */
void exchange_break(struct exchange *exchange);
/* Ends the response and the exchange; data already written still reaches the peer. */
void exchange_end(struct exchange *exchange);

#endif
