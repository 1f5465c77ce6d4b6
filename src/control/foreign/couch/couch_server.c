/* couch_server: one connection, one request at a time. */
#include "control/foreign/couch/couch_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/coding/base64.h"
#include "base/clock.h"
#include "base/memory.h"
#include "control/backoff.h"
#include "control/foreign/couch/couch_text.h"
#include "control/message.h"
#include "edge/http.h"
#include "edge/json/json.h"

enum { CONNECT_MS = 10000, REQUEST_MS = 600000, PAUSE_MOST_S = 60, REASON_SHOWN = 200 };

struct couch_server {
    struct couch_server_options options;
    struct http *http;
    struct builder authorization, url; /* the header; of the last request */
};

/* --- the address --- */

static bool is_own_host(const char *host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t size = strcspn(host, "/");
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        size_t length = strlen(own[i]);
        if (size >= length && memcmp(host, own[i], length) == 0 && (size == length || host[length] == ':'))
            return true;
    }
    return false;
}

bool couch_server_check(const char *url, bool has_login)
{
    bool is_https = strncmp(url, "https://", 8) == 0, is_http = strncmp(url, "http://", 7) == 0;
    const char *host = url + (is_https ? 8 : 7);
    const char *path = is_https || is_http ? strchr(host, '/') : NULL;
    if (!path || path == host || !path[1] || strpbrk(url, "?#\"<>\\ "))
        message_print("expected the address of a database, like https://couch.example.org/people");
    else if (memchr(host, '@', (size_t)(path - host)))
        message_print("an address is seen by others: put the password into a file, and name it by --login");
    else if (has_login && is_http && !is_own_host(host))
        message_print("the password would be sent in clear: expected an address that begins with https:");
    else
        return true;
    return false;
}

struct couch_server *couch_server_open(const struct couch_server_options *options)
{
    const struct http_options http = {.parallel = 1,
                                      .ca_file = options->ca_file,
                                      .connect_timeout_ms = CONNECT_MS,
                                      .answer_most = COUCH_ANSWER_MOST};
    struct couch_server *server = memory_zeroed(1, sizeof *server, "couch server");
    server->options = *options;
    server->http = http_open(&http);
    if (options->login) {
        builder_add_text(&server->authorization, "Authorization: Basic ");
        base64_add_standard(&server->authorization, bytes_of(options->login));
        builder_add(&server->authorization, "", 1);
    }
    return server;
}

void couch_server_close(struct couch_server *server)
{
    if (!server)
        return;
    http_close(server->http);
    builder_free(&server->authorization);
    builder_free(&server->url);
    free(server);
}

void couch_server_escape(struct builder *query, struct bytes text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c && strchr(plain, c))
            builder_add(query, &text.data[i], 1);
        else
            builder_printf(query, "%%%02X", c);
    }
}

/* --- requests --- */

/* {"error":…,"reason":…}, as CouchDB explains a refusal. */
static void couch_server_refuse(const struct couch_server *server, const struct http_result *result)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 1, .nodes = 100};
    struct arena *arena = arena_create("refusal");
    struct json *root;
    struct json_problem problem;
    const struct json *reason = NULL;
    if (json_read(arena, result->body, &limits, &root, &problem) == FAULT_NONE)
        reason = json_member(root, "reason");
    struct bytes text = reason && reason->kind == JSON_STRING ? reason->value : NO_BYTES;
    message_print("%s: the server refuses it with status %d%s%.*s", server->options.url, result->status,
                  text.size ? ": " : "", (int)(text.size < REASON_SHOWN ? text.size : REASON_SHOWN),
                  text.size ? text.data : "");
    arena_destroy(arena);
}

/* What passes by itself: no answer, half of one, the server is busy or has failed. */
static const char *find_trouble(const struct http_result *result)
{
    if (!result->status)
        return result->problem;
    if (result->status == 429 || result->status >= 500 || result->status == 408)
        return "the server is busy or has failed";
    if (result->status == 200 && !couch_text_is_whole(result->body))
        return "the answer is no whole object in JSON";
    return NULL;
}

static void pause(const struct backoff *backoff, int64_t asked_s)
{
    int64_t left_ms = backoff->due_ms - clock_monotonic_ms();
    int64_t asked_ms = (asked_s < PAUSE_MOST_S ? asked_s : PAUSE_MOST_S) * 1000;
    if (left_ms < asked_ms)
        left_ms = asked_ms;
    if (left_ms > 0)
        clock_sleep_ms(left_ms);
}

static void couch_server_run(struct couch_server *server, const char *query, struct http_result *result_r)
{
    const char *const headers[] = {"Accept: application/json",
                                   server->authorization.size ? server->authorization.data : NULL, NULL};
    builder_clear(&server->url, 1 << 16);
    builder_printf(&server->url, "%s%s", server->options.url, query);
    builder_add(&server->url, "", 1);
    const struct http_request request = {
        .method = "GET", .url = server->url.data, .headers = headers, .timeout_ms = REQUEST_MS};
    http_run(server->http, &request, result_r);
}

enum couch_answer couch_server_get(struct couch_server *server, const char *query, struct bytes *body_r)
{
    struct backoff backoff = {0};
    for (;;) {
        struct http_result result;
        couch_server_run(server, query, &result);
        if (result.is_too_large)
            return COUCH_TOO_LARGE;
        const char *trouble = find_trouble(&result);
        if (!trouble && result.status != 200) {
            couch_server_refuse(server, &result);
            return COUCH_REFUSED;
        }
        *body_r = result.body;
        if (!trouble)
            return COUCH_ANSWERED;
        if (!backoff_goes_on(&backoff, server->options.patience_s)) {
            message_print("%s: %s; run the command again, it goes on", server->options.url, trouble);
            return COUCH_REFUSED;
        }
        pause(&backoff, result.retry_after_s);
    }
}
