/* wakeups: one request at a time to each manager. */
#include "serve/wakeups.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "edge/http.h"
#include "edge/json.h"

enum {
    REMOTES_MOST = 8,
    ADDRESS_BYTES = 256,
    CONNECT_MS = 5000,
    TIMEOUT_MS = 10000,
    PAUSE_LEAST_MS = 500,
    PAUSE_MOST_MS = 30000,
};

struct remote {
    char url[ADDRESS_BYTES];
    struct builder body;
    bool is_busy;
    int space; /* of the request under way */
    int failures;
    int64_t not_before_ms;
    bool is_wanted[STAMPS_NAMESPACES];
    char codes[STAMPS_NAMESPACES][BACKLOG_CODE_BYTES + 1];
};

struct wakeups {
    struct http *http;
    struct secret key;
    int count;
    struct remote remotes[REMOTES_MOST];
};

static void add_remotes(struct wakeups *wakeups, const char *at)
{
    for (; *at && wakeups->count < REMOTES_MOST; at += strspn(at, " \t")) {
        size_t size = strcspn(at, " \t");
        struct remote *remote = &wakeups->remotes[wakeups->count];
        int written = snprintf(remote->url, sizeof remote->url, "%.*s/op", (int)size, at);
        if (size && written > 0 && (size_t)written < sizeof remote->url)
            wakeups->count++;
        at += size;
    }
}

struct wakeups *wakeups_create(const struct settings *settings)
{
    char problem[600] = "";
    if (!*settings->queue_remotes)
        return NULL;
    struct wakeups *wakeups = calloc(1, sizeof *wakeups);
    if (!wakeups)
        log_fatal("out of memory");
    if (!secret_read(&wakeups->key, "queue_key_file", settings->queue_key_file, problem, sizeof problem)) {
        log_error("managers of other hosts are not woken: %s", problem);
        free(wakeups);
        return NULL;
    }
    add_remotes(wakeups, settings->queue_remotes);
    wakeups->http = http_open(&(struct http_options){
        .parallel = REMOTES_MOST,
        .ca_file = *settings->queue_ca_file ? settings->queue_ca_file : NULL,
        .connect_timeout_ms = CONNECT_MS,
    });
    return wakeups;
}

void wakeups_destroy(struct wakeups *wakeups)
{
    if (!wakeups)
        return;
    http_close(wakeups->http);
    for (int i = 0; i < REMOTES_MOST; i++)
        builder_free(&wakeups->remotes[i].body);
    secret_erase(&wakeups->key);
    free(wakeups);
}

/* What workers have asked for since the last turn. */
static void collect(struct wakeups *wakeups, struct stamps *stamps)
{
    char code[BACKLOG_CODE_BYTES + 1];
    for (int space = 0; space < stamps_space_count(stamps); space++) {
        if (!backlog_take(stamps_backlog(stamps, space), BACKLOG_REMOTE, code))
            continue;
        for (int i = 0; i < wakeups->count; i++) {
            struct remote *remote = &wakeups->remotes[i];
            remote->is_wanted[space] = true;
            memcpy(remote->codes[space], code, sizeof code);
        }
    }
}

static void send(struct wakeups *wakeups, struct remote *remote, int space)
{
    struct builder *body = &remote->body;
    body->size = 0;
    builder_add_text(body, "{\"op\":\"inq\",\"key\":");
    json_add_string(body, bytes_of(wakeups->key.text));
    builder_add_text(body, ",\"param\":{\"ns\":");
    json_add_string(body, bytes_of(remote->codes[space]));
    builder_add_text(body, "}}");
    remote->is_wanted[space] = false;
    remote->is_busy = true;
    remote->space = space;
    http_send(wakeups->http, &(struct http_request){.method = "POST",
                                                    .url = remote->url,
                                                    .content_type = "application/json",
                                                    .body = builder_bytes(body),
                                                    .timeout_ms = TIMEOUT_MS,
                                                    .owner = remote});
}

static void send_due(struct wakeups *wakeups)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < wakeups->count; i++) {
        struct remote *remote = &wakeups->remotes[i];
        for (int space = 0; space < STAMPS_NAMESPACES; space++)
            if (remote->is_wanted[space] && !remote->is_busy && now_ms >= remote->not_before_ms)
                send(wakeups, remote, space);
    }
}

/* 400: the namespace is none of that manager's. */
static void take(struct remote *remote, const struct http_result *result)
{
    remote->is_busy = false;
    if (result->status == 200 || result->status == 400) {
        remote->failures = 0;
        return;
    }
    int64_t pause_ms = remote->failures > 5 ? PAUSE_MOST_MS : PAUSE_LEAST_MS << remote->failures;
    log_warning("cannot wake the queue manager url=%s status=%d failures=%d%s%s", remote->url, result->status,
                ++remote->failures, *result->problem ? ": " : "", result->problem);
    remote->not_before_ms = clock_monotonic_ms() + pause_ms;
    remote->is_wanted[remote->space] = true;
}

bool wakeups_wait(struct wakeups *wakeups, struct stamps *stamps, int wait_ms, struct pollfd *sources,
                  size_t count)
{
    struct http_result result;
    if (!wakeups)
        return poll(sources, (nfds_t)count, wait_ms) > 0;
    collect(wakeups, stamps);
    send_due(wakeups);
    if (http_receive_or(wakeups->http, wait_ms, sources, count, &result))
        take(result.owner, &result);
    for (size_t i = 0; i < count; i++)
        if (sources[i].revents)
            return true;
    return false;
}
