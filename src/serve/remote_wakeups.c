/* remote_wakeups: one request at a time to each manager. */
#include "serve/remote_wakeups.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/secret.h"
#include "edge/http.h"
#include "edge/json/json.h"
#include "segment/counts/backlog.h"
#include "segment/namespaces.h"

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
    int ns; /* of the request in progress */
    int failures;
    int64_t not_before_ms;
    bool is_wanted[NAMESPACES_MOST];
    char codes[NAMESPACES_MOST][BACKLOG_CODE_BYTES + 1];
};

struct remote_wakeups {
    struct http *http;
    struct secret key;
    int count;
    struct remote remotes[REMOTES_MOST];
};

static void add_remotes(struct remote_wakeups *remote_wakeups, const char *at)
{
    for (; *at && remote_wakeups->count < REMOTES_MOST; at += strspn(at, " \t")) {
        size_t size = strcspn(at, " \t");
        struct remote *remote = &remote_wakeups->remotes[remote_wakeups->count];
        int written = snprintf(remote->url, sizeof remote->url, "%.*s/op", (int)size, at);
        if (size && written > 0 && (size_t)written < sizeof remote->url)
            remote_wakeups->count++;
        at += size;
    }
}

struct remote_wakeups *remote_wakeups_create(const struct settings *settings)
{
    char problem[600] = "";
    if (!*settings->queue_remotes)
        return NULL;
    struct remote_wakeups *remote_wakeups = memory_zeroed(1, sizeof *remote_wakeups, "remote wakeups");
    if (!secret_read(&remote_wakeups->key, "queue_key_file", settings->queue_key_file, problem,
                     sizeof problem)) {
        log_error("cannot wake managers of other hosts: %s", problem);
        free(remote_wakeups);
        return NULL;
    }
    add_remotes(remote_wakeups, settings->queue_remotes);
    remote_wakeups->http = http_open(&(struct http_options){
        .parallel = REMOTES_MOST,
        .ca_file = *settings->queue_ca_file ? settings->queue_ca_file : NULL,
        .connect_timeout_ms = CONNECT_MS,
    });
    return remote_wakeups;
}

void remote_wakeups_destroy(struct remote_wakeups *remote_wakeups)
{
    if (!remote_wakeups)
        return;
    http_close(remote_wakeups->http);
    for (int i = 0; i < REMOTES_MOST; i++)
        builder_free(&remote_wakeups->remotes[i].body);
    secret_erase(&remote_wakeups->key);
    free(remote_wakeups);
}

/* Collects the workers' wake-ups since the last call. */
static void remote_wakeups_collect(struct remote_wakeups *remote_wakeups, struct segment *segment)
{
    char code[BACKLOG_CODE_BYTES + 1];
    for (int ns = 0; ns < namespaces_count(segment); ns++) {
        if (!backlog_take(backlog_of(segment, ns), BACKLOG_REMOTE, code))
            continue;
        for (int i = 0; i < remote_wakeups->count; i++) {
            struct remote *remote = &remote_wakeups->remotes[i];
            remote->is_wanted[ns] = true;
            memcpy(remote->codes[ns], code, sizeof code);
        }
    }
}

static void remote_wakeups_send(struct remote_wakeups *remote_wakeups, struct remote *remote, int ns)
{
    struct builder *body = &remote->body;
    body->size = 0;
    json_add_text(body, "{\"op\":\"inq\",\"key\":", bytes_of(remote_wakeups->key.text));
    json_add_text(body, ",\"param\":{\"ns\":", bytes_of(remote->codes[ns]));
    builder_add_text(body, "}}");
    remote->is_wanted[ns] = false;
    remote->is_busy = true;
    remote->ns = ns;
    http_send(remote_wakeups->http, &(struct http_request){.method = "POST",
                                                           .url = remote->url,
                                                           .content_type = "application/json",
                                                           .body = builder_bytes(body),
                                                           .timeout_ms = TIMEOUT_MS,
                                                           .owner = remote});
}

static void send_due(struct remote_wakeups *remote_wakeups)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < remote_wakeups->count; i++) {
        struct remote *remote = &remote_wakeups->remotes[i];
        for (int ns = 0; ns < NAMESPACES_MOST; ns++)
            if (remote->is_wanted[ns] && !remote->is_busy && now_ms >= remote->not_before_ms)
                remote_wakeups_send(remote_wakeups, remote, ns);
    }
}

/* 400: the namespace does not belong to that manager. */
static void remote_wakeups_take(struct remote *remote, const struct http_result *result)
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
    remote->is_wanted[remote->ns] = true;
}

bool remote_wakeups_wait(struct remote_wakeups *remote_wakeups, struct segment *segment, int wait_ms,
                         struct pollfd *sources, size_t count)
{
    struct http_result result;
    if (!remote_wakeups)
        return poll(sources, (nfds_t)count, wait_ms) > 0;
    remote_wakeups_collect(remote_wakeups, segment);
    send_due(remote_wakeups);
    if (http_receive_or(remote_wakeups->http, wait_ms, sources, count, &result))
        remote_wakeups_take(result.owner, &result);
    for (size_t i = 0; i < count; i++)
        if (sources[i].revents)
            return true;
    return false;
}
