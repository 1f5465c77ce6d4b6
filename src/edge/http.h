/* http: a client for a few servers and many requests, behind libcurl: several in flight, connections kept.
 *
 * A client has `parallel` places; http_send takes a free one, http_receive waits for any that has ended and
 * gives the place back.  HTTP/1.1 over TLS unless the address says http:.  Redirections are not followed. */
#ifndef STAMPD_EDGE_HTTP_H
#define STAMPD_EDGE_HTTP_H

#include <poll.h>

#include "base/bytes.h"

struct http;

enum { HTTP_ANSWER_MAX = 64 << 20 }; /* bytes; more is cut off as a failure */

/* Whom a client may connect to, whatever name led there. */
enum http_reach { HTTP_EVERYWHERE, HTTP_PUBLIC, HTTP_PUBLIC_OR_LOOPBACK };

struct http_options {
    int parallel;        /* most requests in flight */
    const char *ca_file; /* PEM; NULL: the system's authorities */
    bool is_insecure;    /* the server's certificate is not checked */
    int64_t connect_timeout_ms;
    /* Another than HTTP_EVERYWHERE: for servers that strangers name, so without a proxy, which would connect
     * in our place; http: only to the loopback, if at all; HTTP/2 where the server has it. */
    enum http_reach reach;
    size_t answer_most; /* bytes; 0: HTTP_ANSWER_MAX */
};

struct http_request {
    const char *method; /* "GET", "POST" */
    const char *url;
    const char *content_type;   /* of the body; NULL when there is none */
    struct bytes body;          /* borrowed until the result */
    const char *const *headers; /* more of them, ended by NULL; NULL: none */
    int64_t timeout_ms;         /* of the whole */
    void *owner;                /* comes back with the result */
};

struct http_result {
    void *owner;
    int status;        /* 0: no whole answer came, `problem` says why; whether the server acted is unknown */
    bool is_too_large; /* because the answer is larger than answer_most */
    bool is_out_of_reach;  /* because the server is none that the client may connect to */
    int64_t retry_after_s; /* what the header Retry-After says; 0: nothing */
    const char *problem;   /* "" when there is a status */
    const char *reason;    /* the same in few words that name no server; "" when there is a status */
    struct bytes body;     /* until the next http_send */
};

/* Ends the process when libcurl cannot start. */
struct http *http_open(const struct http_options *options);
void http_close(struct http *http); /* what is in flight is dropped; NULL is allowed */

bool http_is_full(const struct http *http);
int http_in_flight(const struct http *http);
/* Starts a request; there must be a free place. */
void http_send(struct http *http, const struct http_request *request);
/* The next result; false: none within `wait_ms`, or nothing is in flight. */
bool http_receive(struct http *http, int64_t wait_ms, struct http_result *result_r);
/* The same, and it also comes back with false as soon as one of `others` has what it waits for, which is
 * noted there as poll does; waits for them even when nothing is in flight. */
bool http_receive_or(struct http *http, int64_t wait_ms, struct pollfd *others, size_t count,
                     struct http_result *result_r);
/* One request from start to end, when no other is in flight. */
void http_ask(struct http *http, const struct http_request *request, struct http_result *result_r);

/* --- mail --- */
struct http_mail {
    const char *server;          /* smtp://host:port or smtps://host:port */
    const char *from;            /* an address, as all that follow */
    const char *const *to;       /* ended by NULL */
    const char *user, *password; /* NULL: the server asks for none */
    bool needs_tls;              /* STARTTLS, with a certificate that is checked; smtps always is */
    const char *ca_file;         /* PEM; NULL: the system's authorities */
    struct bytes text;           /* header and body, lines ended by CR LF; copied */
    int64_t timeout_ms;          /* of the whole */
    void *owner;                 /* comes back with the result */
};
/* As http_send; the status of its result is SMTP's, 0 unless the server has taken the mail. */
void http_send_mail(struct http *http, const struct http_mail *mail);

#endif
