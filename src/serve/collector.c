/* collector: one connection, and one message at a time. */
#include "serve/collector.h"

#include "config.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "edge/http.h"
#include "edge/json/json.h"

enum {
    CONNECT_MS = 2000,
    SEND_MS = 5000,
    REST_MS = 5000, /* after a message that was not accepted: what comes is dropped */
    LAST_MS = 1000, /* for the last message, when the process is about to end */
    ANSWER_MOST = 65536,
};

struct collector {
    const struct settings *settings;
    const char *url, *what;
    struct http *http;
    int stop;
    int64_t rests_until_ms;
    char host[HOST_NAME_MAX + 1];
};

struct collector *collector_open(const struct settings *settings, const char *url, const char *what)
{
    struct collector *collector = memory_zeroed(1, sizeof *collector, "collector");
    collector->settings = settings;
    collector->url = url;
    collector->what = what;
    collector->stop = stop_open();
    collector->http = http_open(
        &(struct http_options){.parallel = 1, .connect_timeout_ms = CONNECT_MS, .answer_most = ANSWER_MOST});
    if (gethostname(collector->host, sizeof collector->host - 1) != 0)
        collector->host[0] = '\0';
    return collector;
}

void collector_close(struct collector *collector)
{
    http_close(collector->http);
    free(collector);
}

int collector_stop_descriptor(const struct collector *collector)
{
    return collector->stop;
}

/* --- JSON --- */

void collector_add_text(struct builder *out, struct bytes text)
{
    json_add_string(out, bytes_is_utf8(text) ? text : BYTES("?"));
}

static void begin_attribute(struct builder *out, struct bytes key)
{
    builder_printf(out, "%s{\"key\":\"%.*s\",\"value\":{", out->data[out->size - 1] == '[' ? "" : ",",
                   (int)key.size, key.data);
}

void collector_add_word(struct builder *out, struct bytes key, struct bytes word)
{
    if (!word.size)
        return;
    begin_attribute(out, key);
    builder_add_text(out, "\"stringValue\":");
    collector_add_text(out, word);
    builder_add_text(out, "}}");
}

void collector_add_number(struct builder *out, struct bytes key, int64_t number)
{
    begin_attribute(out, key);
    builder_printf(out, "\"intValue\":\"%lld\"}}", (long long)number);
}

/* Instances of one host have run directories of their own; that of a server stays the same when it is
 * replaced by the next release. */
void collector_add_resource(const struct collector *collector, struct builder *out)
{
    char instance[HOST_NAME_MAX + 1 + PATH_MAX];
    snprintf(instance, sizeof instance, "%s:%s", collector->host, collector->settings->run_directory);
    builder_add_text(out, "\"resource\":{\"attributes\":[");
    collector_add_word(out, BYTES("service.name"), BYTES("stampd"));
    collector_add_word(out, BYTES("service.version"), BYTES(PACKAGE_VERSION));
    collector_add_word(out, BYTES("service.instance.id"), bytes_of(instance));
    collector_add_word(out, BYTES("host.name"), bytes_of(collector->host));
    builder_add_text(out, "]}");
}

/* --- sending --- */

/* Also a request to stop ends the wait, after LAST_MS. */
static void await_answer(struct collector *collector, struct http_result *result_r)
{
    int64_t until_ms = clock_monotonic_ms() + SEND_MS;
    struct pollfd stop = {.fd = collector->stop, .events = POLLIN};
    bool is_last = stop_requested() != STOP_NOT;
    for (;;) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (is_last && left_ms > LAST_MS)
            left_ms = LAST_MS;
        if (http_receive_or(collector->http, left_ms > 0 ? left_ms : 0, &stop, is_last ? 0 : 1, result_r))
            return;
        if (is_last || left_ms <= 0)
            break;
        is_last = stop_requested() != STOP_NOT;
    }
    http_cancel(collector->http, collector);
    *result_r = (struct http_result){.reason = "the time was over"};
}

bool collector_send(struct collector *collector, struct bytes message)
{
    struct http_result result = {.reason = ""};
    if (clock_monotonic_ms() < collector->rests_until_ms)
        return false;
    http_send(collector->http, &(struct http_request){.method = "POST",
                                                      .url = collector->url,
                                                      .content_type = "application/json",
                                                      .body = message,
                                                      .timeout_ms = SEND_MS,
                                                      .owner = collector});
    await_answer(collector, &result);
    if (result.status >= 200 && result.status < 300)
        return true;
    collector->rests_until_ms = clock_monotonic_ms() + REST_MS;
    log_often(LOG_LEVEL_WARNING, collector->what, "the collector has not accepted %s status=%d%s%s",
              collector->what, result.status, *result.reason ? ": " : "", result.reason);
    return false;
}
