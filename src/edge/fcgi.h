/* fcgi: a worker's side of FastCGI, behind libfcgi: a listening socket and any number of keep-alive
 * connections, polled together; one request at a time.
 *
 * Only nginx may reach the socket (owner, group and mode of its path).  Even so, no peer can block a worker:
 * a connection is read only when data has arrived, and the head of a request, its body, and each write have a
 * timeout. */
#ifndef STAMPD_EDGE_FCGI_H
#define STAMPD_EDGE_FCGI_H

#include "base/base.h"
#include "base/builder.h"
#include "base/fault.h"

/* --- the listening socket (master) --- */
enum { FCGI_NO_GROUP = -1 };
/* Binds a Unix socket at `path`, mode 0660, of the group (0600 with FCGI_NO_GROUP), and listens.  Replaces a
 * socket left at the path by a dead process; fails when a live process uses it.  On failure one line in
 * `problem`. */
MUST_USE bool fcgi_listen(const char *path, int64_t group, int *listener_r, char *problem,
                          size_t problem_size);

/* --- the server (worker) --- */
struct fcgi;         /* the listener and its connections */
struct fcgi_request; /* the request being served; its texts live until it is answered */

struct fcgi_options {
    int listener;          /* ownership passes to fcgi: closed when listening ends */
    int wake;              /* a borrowed descriptor that ends a wait when it is readable; -1: none */
    int64_t io_timeout_ms; /* timeout of one read, of one write */
};
struct fcgi *fcgi_open(const struct fcgi_options *options) __attribute__((returns_nonnull));
/* Closes everything; no request may be in progress. */
void fcgi_close(struct fcgi *fcgi);

/* A descriptor that is readable when fcgi_wait has an event: for a loop that waits for other things too. */
int fcgi_descriptor(const struct fcgi *fcgi);

enum fcgi_event {
    FCGI_EVENT_REQUEST, /* request_r must be answered before the next wait */
    FCGI_EVENT_WAKE,    /* `wake` is readable; repeated until it is read empty */
    FCGI_EVENT_IDLE,    /* no event for `timeout_ms` */
    FCGI_EVENT_END,     /* listening has stopped and the last connection is closed */
};
enum fcgi_event fcgi_wait(struct fcgi *fcgi, int64_t timeout_ms, struct fcgi_request **request_r);
/* Accepts the connections that already wait, then stops listening; keep-alive connections are still
 * served. */
void fcgi_stop_listening(struct fcgi *fcgi);
bool fcgi_is_listening(const struct fcgi *fcgi);
size_t fcgi_connections(const struct fcgi *fcgi);

/* --- one request --- */
/* NO_BYTES: there is no parameter of that name, which is a literal. */
struct bytes fcgi_parameter(const struct fcgi_request *request, struct bytes name);
/* Appends the body.  FAULT_XTIME: the rest has not come in time, or the process was stopped while it waited
 * for it.  FAULT_ABODY: it was cut off, or differs from the announced length.  FAULT_ALIMIT: longer
 * than `limit`; nothing is appended, and `size_r` is the announced length. */
MUST_USE enum fault fcgi_read_body(struct fcgi_request *request, size_t limit, struct builder *body,
                                   int64_t *size_r);
/* Instead of fcgi_read_body: the next piece of the body, as much as there is room for, or its rest; size_r 0:
 * the whole body was read.  Faults as above. */
MUST_USE enum fault fcgi_read_piece(struct fcgi_request *request, char *room, size_t room_size,
                                    size_t *size_r);
/* Closes the connection without an answer; nginx then generates one. */
void fcgi_abandon(struct fcgi_request *request);
/* Sends the first or a further part of an answer; fcgi_answer sends the rest, or fcgi_abandon breaks the
 * answer off.  False: the client has gone, accepted no data for too long, or not all of it until
 * `deadline_ms` (monotonic). */
MUST_USE bool fcgi_send(struct fcgi_request *request, int64_t deadline_ms, struct bytes head,
                        struct bytes body);
/* Sends head (which ends with its empty line) and body in as few writes as possible and ends the request.
 * False: the client has gone; the caller need do nothing. */
bool fcgi_answer(struct fcgi_request *request, struct bytes head, struct bytes body);
/* After an answer that was not sent whole: the peer had closed the connection. */
bool fcgi_has_left(const struct fcgi *fcgi);

#endif
