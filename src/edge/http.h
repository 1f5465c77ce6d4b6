/* http: a client for a few servers and many requests, behind libcurl: several in flight, connections kept
 * alive.
 *
 * A client has `parallel` slots; http_send takes a free one, http_receive waits for any finished transfer and
 * frees its slot.  HTTP/1.1 over TLS unless the URL begins with http:.  Redirects are not followed. */
#ifndef STAMPD_EDGE_HTTP_H
#define STAMPD_EDGE_HTTP_H

#include <poll.h>

#include "base/bytes.h"

struct http;

enum { HTTP_ANSWER_MAX = 64 << 20 }; /* bytes; a longer answer is cut off and fails */

/* Addresses that a client may connect to, whatever the name resolves to. */
enum http_reach { HTTP_EVERYWHERE, HTTP_PUBLIC, HTTP_PUBLIC_OR_LOOPBACK };

struct http_options {
    int parallel;        /* most requests in flight */
    const char *ca_file; /* PEM; NULL: the system's authorities */
    bool is_insecure;    /* the server's certificate is not checked */
    int64_t connect_timeout_ms;
    /* Other than HTTP_EVERYWHERE: for servers named by clients.  No proxy is used, as it would connect in our
     * place; http: is allowed to the loopback only, if at all; HTTP/2 where the server supports it. */
    enum http_reach reach;
    size_t answer_most; /* bytes; 0: HTTP_ANSWER_MAX */
};

struct http_request {
    const char *method; /* "GET", "HEAD", "POST", … */
    const char *url;
    const char *content_type;   /* of the body; NULL: no body */
    struct bytes body;          /* borrowed until the result is received */
    const char *const *headers; /* further headers, ended by NULL; NULL: none */
    int64_t timeout_ms;         /* of the whole */
    void *owner;                /* comes back with the result */
};

struct http_result {
    void *owner;
    int status;            /* 0: no complete answer, see `problem`; whether the server acted is unknown */
    bool is_too_large;     /* failed because the answer is larger than answer_most */
    bool is_out_of_reach;  /* failed because the client may not connect to the server */
    int64_t retry_after_s; /* value of the header Retry-After; 0: none */
    int64_t length;        /* Content-Length of the answer; -1: none */
    const char *etag;      /* ETag of the answer; "": none.  Valid as long as the body */
    int refusal;           /* of a mail that was not accepted: the server's reply of 500 or more; 0: none */
    const char *problem;   /* "" when there is a status */
    const char *reason;    /* a short form that names no server; "" when there is a status */
    struct bytes body;     /* valid until the next http_send */
};

/* Ends the process when libcurl cannot start. */
struct http *http_open(const struct http_options *options);
void http_close(struct http *http); /* drops requests in flight; NULL is allowed */

bool http_is_full(const struct http *http);
int http_in_flight(const struct http *http);
/* Starts a request; there must be a free slot. */
void http_send(struct http *http, const struct http_request *request);
/* Sends what can be sent now: http_send does not, and a caller may have other work before it receives. */
void http_flush(struct http *http);
/* Drops the request of this owner, if it is in flight: it has no result.  The server may have acted. */
void http_cancel(struct http *http, const void *owner);
/* Receives the next result; false: none within `wait_ms`, or no request is in flight. */
bool http_receive(struct http *http, int64_t wait_ms, struct http_result *result_r);
/* The same, but also returns false as soon as one of `others` is ready, which is noted there as poll does;
 * waits for them even when no request is in flight. */
bool http_receive_or(struct http *http, int64_t wait_ms, struct pollfd *others, size_t count,
                     struct http_result *result_r);
/* Runs one request from start to end, when no other is in flight. */
void http_run(struct http *http, const struct http_request *request, struct http_result *result_r);

/* --- mail --- */
struct http_mail {
    const char *server;          /* smtp://host:port or smtps://host:port */
    const char *from;            /* an address, as all that follow */
    const char *const *to;       /* ended by NULL */
    const char *user, *password; /* NULL: no authentication */
    bool needs_tls;              /* requires STARTTLS with a checked certificate; smtps always does */
    const char *ca_file;         /* PEM; NULL: the system's authorities */
    struct bytes text;           /* header and body, lines ended by CR LF; copied */
    int64_t timeout_ms;          /* of the whole */
    void *owner;                 /* comes back with the result */
};
/* As http_send; the status of its result is SMTP's, 0 unless the server has accepted the mail. */
void http_send_mail(struct http *http, const struct http_mail *mail);

#endif
