/* fcgi_ask: asks a worker, as nginx does: one FastCGI request over a connection of its own, in an event loop.
 */
#ifndef STAMPD_EDGE_FCGI_ASK_H
#define STAMPD_EDGE_FCGI_ASK_H

#include "base/bytes.h"
#include "edge/events.h"

struct fcgi_ask;

struct fcgi_ask_parameter {
    const char *name;
    struct bytes value; /* data NULL: it is not sent */
};

struct fcgi_ask_options {
    const char *path; /* of the worker's socket */
    const struct fcgi_ask_parameter *parameters;
    size_t count;
    struct bytes body;
    size_t answer_most;  /* bytes of head and body; a longer answer is none */
    int64_t patience_ms; /* an answer that takes longer is none */
    /* The whole answer, head and body; NO_BYTES: there is none, and whether the worker acted is unknown.  The
     * ask is freed behind the call. */
    void (*answered)(void *context, struct bytes answer);
    void *context;
};

/* All texts are copied.  NULL: nobody listens at the socket, or too many wait there. */
struct fcgi_ask *fcgi_ask_begin(struct events *events, const struct fcgi_ask_options *options);
/* Ends it without a call. */
void fcgi_ask_cancel(struct fcgi_ask *ask);

#endif
