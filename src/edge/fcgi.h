/* fcgi: a worker's side of FastCGI, behind libfcgi: a listening socket and any number of kept connections,
 * watched together; one request at a time.
 *
 * Only nginx may reach the socket (owner, group and mode of its path).  Still no peer can pin a worker: a
 * connection is read only when something has come, and the head of a request, its body, and each write have a
 * limit of time. */
#ifndef STAMPD_EDGE_FCGI_H
#define STAMPD_EDGE_FCGI_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/fault.h"

/* --- the listening socket (master) --- */
enum { FCGI_NO_GROUP = -1 };
/* Binds a Unix socket at `path`, mode 0660, of the group (0600 with FCGI_NO_GROUP), and listens.  What a dead
 * process left at the path is replaced; a living one is refused.  On failure one line in `problem`. */
MUST_USE bool fcgi_listen(const char *path, int64_t group, int *listener_r, char *problem,
                          size_t problem_size);

/* --- the server (worker) --- */
struct fcgi;         /* the listener and its connections */
struct fcgi_request; /* the request being served; its texts live until it is answered */

struct fcgi_options {
    int listener;          /* taken over: closed when listening ends */
    int wake;              /* a descriptor that ends a wait when it is readable; borrowed; -1: none */
    int64_t io_timeout_ms; /* limit of a head, of a body, of one write */
};
struct fcgi *fcgi_open(const struct fcgi_options *options) __attribute__((returns_nonnull));
/* Closes everything; no request is being served. */
void fcgi_close(struct fcgi *fcgi);

/* Readable when fcgi_wait would find something: for a loop that waits for other things too. */
int fcgi_descriptor(const struct fcgi *fcgi);

enum fcgi_event {
    FCGI_EVENT_REQUEST, /* request_r is to be answered before the next wait */
    FCGI_EVENT_WAKE,    /* `wake` is readable; comes again until it is read empty */
    FCGI_EVENT_IDLE,    /* nothing came for `timeout_ms` */
    FCGI_EVENT_END,     /* listening was stopped and the last connection has gone */
};
enum fcgi_event fcgi_wait(struct fcgi *fcgi, int64_t timeout_ms, struct fcgi_request **request_r);
/* Takes the connections that already wait, then stops listening; kept connections are served on. */
void fcgi_stop_listening(struct fcgi *fcgi);
bool fcgi_is_listening(const struct fcgi *fcgi);
size_t fcgi_connections(const struct fcgi *fcgi);

/* --- one request --- */
/* NO_BYTES when there is no parameter of that name. */
struct bytes fcgi_parameter(const struct fcgi_request *request, const char *name);
/* Appends the body.  FAULT_ABODY: it was cut off, or is not of the length announced.  FAULT_ALIMIT: longer
 * than `limit`; nothing is appended, and `size_r` says what was announced. */
MUST_USE enum fault fcgi_read_body(struct fcgi_request *request, size_t limit, struct builder *body,
                                   int64_t *size_r);
/* Closes its connection without an answer: nginx makes one. */
void fcgi_abandon(struct fcgi_request *request);
/* Sends a first part of an answer, or another one; the rest is left to fcgi_answer, or to fcgi_abandon, when
 * the answer is to break off.  False: the client has gone, took nothing for long, or not all until
 * `deadline_ms` (monotonic). */
MUST_USE bool fcgi_send(struct fcgi_request *request, int64_t deadline_ms, struct bytes head,
                        struct bytes body);
/* Sends head (which ends with its empty line) and body in as few writes as possible and ends the request.
 * False: the client has gone; nothing else follows from it. */
bool fcgi_answer(struct fcgi_request *request, struct bytes head, struct bytes body);

#endif
