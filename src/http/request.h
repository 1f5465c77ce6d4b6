/* request: turns a FastCGI request into a call.  Method, path, arguments and sizes are checked here, so
 * operations receive only well-formed calls. */
#ifndef STAMPD_HTTP_REQUEST_H
#define STAMPD_HTTP_REQUEST_H

#include "base/builder.h"
#include "base/settings.h"
#include "edge/fcgi.h"
#include "operation/reply.h"
#include "http/response.h"

struct request {
    struct call call; /* its texts live until the request is answered and the arena is reset */
    struct response_form form;
    struct bytes origin; /* header Origin; empty: none */
};

/* nginx's parameters by name: from FastCGI, or from a table in tests. */
struct request_source {
    struct bytes (*parameter)(const void *context, struct bytes name);
    /* Appends the body; as fcgi_read_body. */
    enum fault (*read_body)(void *context, size_t limit, struct builder *body, int64_t *size_r);
    void *context;
    /* Called before the body is read: route_admit in the worker; NULL: any body up to limit_body_bytes is
     * read. */
    enum fault (*admit)(void *context, struct call *call, struct reply *reply);
    void *admit_context;
    struct inlet *inlet; /* the body of an attachment, which the operation reads; NULL: there is none */
};
struct request_source request_from_fcgi(struct fcgi_request *fcgi);

/* Fills in the request, partly if there is a fault, which is recorded in the reply.  `body` must be empty; it
 * holds the body's bytes and must live as long as the call. */
MUST_USE enum fault request_read(const struct settings *settings, struct arena *arena,
                                 const struct request_source *source, struct builder *body,
                                 struct request *request_r, struct reply *reply);

#endif
