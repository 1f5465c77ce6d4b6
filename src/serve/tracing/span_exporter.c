/* span_exporter: batches of messages, as JSON. */
#include "serve/tracing/span_exporter.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "edge/crypto/crypto.h"
#include "segment/counts/purge_counts.h"
#include "serve/collector.h"
#include "serve/tracing/tracing.h"

enum {
    BATCH_MOST = 128, /* requests in one message to the collector */
    BATCH_MS = 1000,  /* the first request of a batch waits so long for others */
    KIND_INTERNAL = 1,
    KIND_SERVER = 2,
    KIND_CLIENT = 3, /* of spans, by OTLP */
    STATUS_ERROR = 2,
};

struct span_exporter {
    struct segment *segment;
    struct collector *collector;
    struct builder body;
    size_t count;
    struct trace_message batch[BATCH_MOST];
};

/* --- JSON --- */

/* An id: at most TRACE_ID bytes. */
static void add_hex(struct builder *out, const char *name, const unsigned char *bytes, size_t size)
{
    char digits[2 * TRACE_ID];
    hex_write(bytes, size, digits);
    builder_printf(out, "\"%s\":\"%.*s\"", name, (int)(2 * size), digits);
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
    while (size && !bytes[size - 1])
        size--;
    return !size;
}

/* What each span begins with. */
static void begin_span(struct builder *out, const unsigned char *trace, const unsigned char *id,
                       const unsigned char *parent)
{
    builder_printf(out, "%s{", out->data[out->size - 1] == '[' ? "" : ",");
    add_hex(out, "traceId", trace, TRACE_ID);
    builder_add_text(out, ",");
    add_hex(out, "spanId", id, SPAN_ID);
    if (is_zero(parent, SPAN_ID))
        return;
    builder_add_text(out, ",");
    add_hex(out, "parentSpanId", parent, SPAN_ID);
}

static void add_times(struct builder *out, int kind, int64_t begin_us, int64_t us)
{
    builder_printf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%lld000\",\"endTimeUnixNano\":\"%lld000\"",
                   kind, (long long)begin_us, (long long)(begin_us + us));
}

static void add_link(struct builder *out, const unsigned char *trace, const unsigned char *id)
{
    if (is_zero(trace, TRACE_ID))
        return;
    builder_add_text(out, ",\"links\":[{");
    add_hex(out, "traceId", trace, TRACE_ID);
    builder_add_text(out, ",");
    add_hex(out, "spanId", id, SPAN_ID);
    builder_add_text(out, "}]");
}

static void add_error(struct builder *out, bool is_error)
{
    if (is_error)
        builder_printf(out, ",\"status\":{\"code\":%d}", STATUS_ERROR);
}

static void add_phases(struct builder *out, const struct trace_message *message)
{
    static const char *const keys[PHASE_UNKNOWN] = {
        [PHASE_BEFORE] = "stampd.before_us",
        [PHASE_WORK] = "stampd.work_us",
        [PHASE_VALIDATION] = "stampd.validation_us",
        [PHASE_AFTERWORK] = "stampd.afterwork_us",
        [PHASE_SYNC] = "stampd.sync_us",
    };
    for (int phase = 0; phase < PHASE_UNKNOWN; phase++)
        if (message->phases_us[phase])
            collector_add_number(out, bytes_of(keys[phase]), message->phases_us[phase]);
    collector_add_number(out, BYTES("stampd.database_us"), message->waited_us);
}

static void add_request(struct builder *out, const struct trace_message *message)
{
    unsigned char trace[TRACE_ID] = {0}, id[SPAN_ID] = {0};
    begin_span(out, message->trace, message->id, message->parent);
    builder_add_text(out, ",\"name\":");
    collector_add_text(out, bytes_of(message->what));
    add_times(out, KIND_SERVER, message->begin_us, message->us);
    builder_add_text(out, ",\"attributes\":[");
    collector_add_word(out, BYTES("http.request.method"), bytes_of(message->method));
    collector_add_number(out, BYTES("http.response.status_code"), message->status);
    collector_add_word(out, BYTES("error.type"), bytes_of(message->code));
    collector_add_word(out, BYTES("stampd.namespace"), bytes_of(message->ns));
    collector_add_word(out, BYTES("stampd.request"), bytes_of(message->request));
    add_phases(out, message);
    if (message->left_out)
        collector_add_number(out, BYTES("stampd.spans_left_out"), message->left_out);
    builder_add_text(out, "]");
    (void)tracing_read(message->link, trace, id);
    add_link(out, trace, id);
    add_error(out, message->status >= 500);
    builder_add_text(out, "}");
}

static void add_below(struct builder *out, const struct trace_message *message,
                      unsigned char ids[SPANS_MOST][SPAN_ID], uint32_t number)
{
    const struct trace_part *part = &message->parts[number];
    bool is_task = part->kind == SPAN_TASK;
    begin_span(out, message->trace, ids[number], part->parent ? ids[part->parent - 1] : message->id);
    builder_add_text(out, ",\"name\":");
    collector_add_text(out, bytes_of(part->name));
    add_times(out, is_task ? KIND_INTERNAL : KIND_CLIENT, part->begin_us, part->us);
    builder_add_text(out, ",\"attributes\":[");
    if (!is_task)
        collector_add_word(out, BYTES("db.system.name"), BYTES("postgresql"));
    collector_add_word(out, BYTES("stampd.namespace"), bytes_of(message->ns));
    builder_add_text(out, "]");
    add_link(out, part->trace, part->id);
    add_error(out, part->has_failed);
    builder_add_text(out, "}");
}

static void compose(struct span_exporter *exporter)
{
    struct builder *out = &exporter->body;
    unsigned char ids[SPANS_MOST][SPAN_ID];
    out->size = 0;
    builder_add_text(out, "{\"resourceSpans\":[{");
    collector_add_resource(exporter->collector, out);
    builder_add_text(out, ",\"scopeSpans\":[{\"scope\":{\"name\":\"stampd\"},\"spans\":[");
    for (size_t i = 0; i < exporter->count; i++) {
        const struct trace_message *message = &exporter->batch[i];
        crypto_random(ids, sizeof ids); /* no other process knows of these spans */
        add_request(out, message);
        for (uint32_t k = 0; k < message->count; k++)
            add_below(out, message, ids, k);
    }
    builder_add_text(out, "]}]}]}");
}

/* --- sending --- */

static uint64_t count_spans(const struct span_exporter *exporter)
{
    uint64_t spans = 0;
    for (size_t i = 0; i < exporter->count; i++)
        spans += 1 + exporter->batch[i].count;
    return spans;
}

/* Empties the batch. */
static void exporter_send(struct span_exporter *exporter)
{
    compose(exporter);
    bool is_sent = collector_send(exporter->collector, builder_bytes(&exporter->body));
    atomic_fetch_add(&exporter->segment->kept->spans[is_sent ? SPANS_SENT : SPANS_DROPPED],
                     count_spans(exporter));
    exporter->count = 0;
}

/* Reads what is there; returns true when the batch is full. */
static bool exporter_read(struct span_exporter *exporter)
{
    struct trace_message *next;
    while (exporter->count < BATCH_MOST) {
        next = &exporter->batch[exporter->count];
        if (read(tracing_pipe(), next, sizeof *next) != (ssize_t)sizeof *next)
            return false;
        exporter->count++;
    }
    return true;
}

static void exporter_step(struct span_exporter *exporter)
{
    struct pollfd sources[] = {{.fd = tracing_pipe(), .events = POLLIN},
                               {.fd = collector_stop_descriptor(exporter->collector), .events = POLLIN}};
    (void)poll(sources, COUNT_OF(sources), BATCH_MS);
    int64_t until_ms = clock_monotonic_ms() + BATCH_MS;
    while (!exporter_read(exporter) && exporter->count && stop_requested() == STOP_NOT) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            break;
        (void)poll(sources, COUNT_OF(sources), (int)left_ms);
    }
    if (exporter->count)
        exporter_send(exporter);
    log_flush(clock_monotonic_ms());
}

static void send_last(struct span_exporter *exporter)
{
    bool is_full = true;
    while (is_full) {
        is_full = exporter_read(exporter);
        if (exporter->count)
            exporter_send(exporter);
    }
}

void span_exporter_run(const struct settings *settings, struct segment *segment)
{
    struct span_exporter *exporter = memory_zeroed(1, sizeof *exporter, "exporter");
    exporter->segment = segment;
    exporter->collector = collector_open(settings, settings->trace_url, "spans");
    (void)prctl(PR_SET_NAME, "stampd-traces"); /* for administrators */
    while (stop_requested() == STOP_NOT)
        exporter_step(exporter);
    send_last(exporter);
    collector_close(exporter->collector);
    builder_free(&exporter->body);
    free(exporter);
}
