/* events: a loop that waits for many things at once, and HTTP answers that go on for long, behind libevent.
 *
 * For a process with thousands of connections and no worker to hold them.  Everything is called back in one
 * thread; whoever is called back may destroy what it was called for.  The HTTP side takes requests of a proxy
 * on the same host, one a connection. */
#ifndef STAMPD_EDGE_EVENTS_H
#define STAMPD_EDGE_EVENTS_H

#include "base/base.h"
#include "base/bytes.h"

/* --- the loop --- */
struct events;
struct events *events_create(void) __attribute__((returns_nonnull));
/* Everything that belongs to it was destroyed before. */
void events_destroy(struct events *events);
/* Until events_stop. */
void events_run(struct events *events);
void events_stop(struct events *events);

/* A descriptor, borrowed, that is waited for. */
struct watch;
struct watch *watch_create(struct events *events, void (*ready)(void *context), void *context)
    __attribute__((returns_nonnull));
void watch_destroy(struct watch *watch); /* NULL is allowed */
/* From now on for this one; fd -1: for nothing.  Must be told again when the descriptor was closed. */
void watch_set(struct watch *watch, int fd, bool for_writing);

struct event_timer;
struct event_timer *event_timer_create(struct events *events, void (*ready)(void *context), void *context)
    __attribute__((returns_nonnull));
void event_timer_destroy(struct event_timer *timer); /* NULL is allowed */
/* Once, after this time; what was set before is forgotten. */
void event_timer_start(struct event_timer *timer, int64_t after_ms);
void event_timer_stop(struct event_timer *timer);

/* --- HTTP --- */
struct exchange; /* a request and its answer */

struct endpoint_options {
    int listener; /* taken over; non-blocking from now on */
    size_t body_most;
    int64_t stall_ms; /* a connection that takes nothing for so long is closed */
    void (*request)(void *context, struct exchange *exchange);
    void *context;
};
struct event_endpoint;
struct event_endpoint *event_endpoint_open(struct events *events, const struct endpoint_options *options)
    __attribute__((returns_nonnull));
/* Takes no new connections from now on. */
void event_endpoint_stop(struct event_endpoint *endpoint);
/* Closes all connections; their owners are not told. */
void event_endpoint_close(struct event_endpoint *endpoint);

/* Texts of the request live until the exchange has begun its answer, or ended. */
struct bytes exchange_method(const struct exchange *exchange);
struct bytes exchange_uri(const struct exchange *exchange);
struct bytes exchange_header(const struct exchange *exchange, const char *name); /* NO_BYTES: absent */
struct bytes exchange_body(const struct exchange *exchange);
/* It is empty from now on. */
void exchange_forget_body(struct exchange *exchange);
/* Memory that the request takes, about. */
size_t exchange_size(const struct exchange *exchange);

/* An exchange that is not answered when `request` returns has an owner from then on. */
struct exchange_owner {
    void (*gone)(void *context);    /* the connection is closed: the exchange is no more */
    void (*drained)(void *context); /* all that was written has been taken */
    void *context;
};
void exchange_own(struct exchange *exchange, const struct exchange_owner *owner);

/* `head`: lines of a CGI head ("Status: 404 Not Found\r\nName: value\r\n\r\n").  The exchange is no more. */
void exchange_answer(struct exchange *exchange, struct bytes head, struct bytes body);
/* Begins an answer that goes on. */
void exchange_begin(struct exchange *exchange, struct bytes head);
void exchange_write(struct exchange *exchange, struct bytes text);
/* Bytes that were written and are not taken yet, those in the kernel not counted. */
size_t exchange_unsent(const struct exchange *exchange);
/* The exchange is no more; what was written still reaches the peer. */
void exchange_end(struct exchange *exchange);

#endif
