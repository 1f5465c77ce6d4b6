/* tracing: sampling, contexts, and the message of a request. */
#include "serve/tracing/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "edge/pg/pg.h"
#include "http/response.h"
#include "model/trace.h"
#include "segment/counts/purge_counts.h"
#include "serve/route.h"

enum { PIPE_BYTES = 1 << 20, MILLION = 1000000 };

_Static_assert(sizeof(struct trace_message) <= PIPE_BUF, "a message is written and read as a whole");
_Static_assert((int)TRACE_PARENT_BYTES == (int)SPANS_CONTEXT_BYTES, "both are of a traceparent");

static int trace_pipe[2] = {-1, -1};

static struct tracing {
    int64_t ratio;
    bool trusts;
    uint64_t random;
    unsigned char trace[TRACE_ID], id[SPAN_ID], parent[SPAN_ID];
    const char *method;
    char ns[PULSE_NS_BYTES + 1], what[PULSE_WHAT_BYTES + 1];
    char link[SPANS_CONTEXT_BYTES + 1];
} tracing;

void tracing_make_pipe(void)
{
    if (pipe2(trace_pipe, O_CLOEXEC | O_NONBLOCK))
        log_fatal("cannot make a pipe: %m");
    (void)fcntl(trace_pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* smaller: more is dropped */
}

int tracing_pipe(void)
{
    return trace_pipe[0];
}

bool tracing_open(const struct settings *settings)
{
    tracing = (struct tracing){.ratio = settings->trace_ratio,
                               .trusts = settings->trace_caller == TRACE_CALLER_TRUSTED};
    crypto_random(&tracing.random, sizeof tracing.random);
    return *settings->trace_url && (tracing.ratio || tracing.trusts);
}

/* A linear congruential generator (Knuth): quick, and nothing secret depends on it. */
static bool is_drawn(void)
{
    tracing.random = tracing.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((tracing.random >> 33) % MILLION) < tracing.ratio;
}

/* --- contexts --- */

/* The context has been found to be one. */
static void read_hex(const char *digits, unsigned char *bytes_r, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes_r[i] = (unsigned char)hex_byte(digits + 2 * i);
}

bool tracing_read(const char *context, unsigned char trace_r[TRACE_ID], unsigned char id_r[SPAN_ID])
{
    if (!trace_is_parent(bytes_of(context)))
        return false;
    read_hex(context + 3, trace_r, TRACE_ID);
    read_hex(context + 36, id_r, SPAN_ID);
    return true;
}

static void write_context(char context_r[SPANS_CONTEXT_BYTES + 1])
{
    char trace[2 * TRACE_ID], id[2 * SPAN_ID];
    hex_write(tracing.trace, TRACE_ID, trace);
    hex_write(tracing.id, SPAN_ID, id);
    snprintf(context_r, SPANS_CONTEXT_BYTES + 1, "00-%.*s-%.*s-01", 2 * TRACE_ID, trace, 2 * SPAN_ID, id);
}

/* --- a request --- */

/* Draws the ids; `parent` is a context that is trusted, "": none. */
static void draw_ids(const char *parent)
{
    unsigned char drawn[SPAN_ID + TRACE_ID]; /* at once: libcrypto takes its time for each call */
    crypto_random(drawn, sizeof drawn);
    memcpy(tracing.id, drawn, SPAN_ID);
    if (tracing_read(parent, tracing.trace, tracing.parent))
        return;
    memcpy(tracing.trace, drawn + SPAN_ID, TRACE_ID);
    memset(tracing.parent, 0, SPAN_ID);
}

static const char *known_method(struct bytes method)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (bytes_equal(method, bytes_of(methods[i])))
            return methods[i];
    return "_OTHER";
}

bool tracing_begin(struct bytes method, struct bytes parent)
{
    struct spans *spans = spans_get();
    bool is_said = tracing.trusts && trace_is_parent(parent);
    bool is_sampled = is_said ? spans_is_sampled(parent) : is_drawn();
    spans->is_on = false;
    spans->may_adopt = tracing.trusts && !is_sampled;
    if (!is_sampled && !spans->may_adopt)
        return false;
    spans->count = spans->left_out = 0;
    spans->inside = 0;
    spans->waited_us = 0;
    spans->context[0] = spans->adopted[0] = tracing.link[0] = '\0';
    tracing.method = known_method(method);
    if (!is_sampled)
        return false;
    char known[SPANS_CONTEXT_BYTES + 1] = "";
    if (is_said)
        memcpy(known, parent.data, SPANS_CONTEXT_BYTES);
    draw_ids(known);
    write_context(spans->context);
    spans->is_on = true;
    return true;
}

void tracing_join(struct call *call)
{
    const char *context = spans_get()->context;
    struct bytes state = trace_state(call->trace), parent = trace_parent(call->trace);
    log_set_trace(context);
    if (parent.data && !tracing.trusts) { /* the caller's tasks keep the caller's trace */
        memcpy(tracing.link, parent.data, SPANS_CONTEXT_BYTES);
        return;
    }
    call->trace = bytes_of(arena_printf(call->arena, "%s%s%.*s", context, state.data ? " " : "",
                                        (int)state.size, state.data ? state.data : ""));
}

void tracing_name(const struct call *call, const struct reply *reply, bool is_refused)
{
    struct bytes ns, what;
    route_name(call, reply, is_refused, &ns, &what);
    snprintf(tracing.what, sizeof tracing.what, "%.*s", (int)what.size, what.data);
    snprintf(tracing.ns, sizeof tracing.ns, "%.*s", (int)ns.size, ns.data);
}

static void add_parts(const struct spans *spans, int64_t epoch_us, struct trace_message *message)
{
    message->count = spans->count;
    message->left_out = spans->left_out;
    message->waited_us = spans->waited_us;
    for (uint32_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->spans[i];
        struct trace_part *part = &message->parts[i];
        part->begin_us = span->begin_us + epoch_us;
        part->us = span->us;
        part->kind = span->kind;
        part->parent = span->parent;
        part->has_failed = span->has_failed;
        memcpy(part->name, span->name, sizeof part->name);
        (void)tracing_read(span->link, part->trace, part->id);
    }
}

static void tracing_send(struct segment *segment, const struct trace_message *message)
{
    ssize_t sent = write(trace_pipe[1], message, sizeof *message);
    if (sent != (ssize_t)sizeof *message)
        atomic_fetch_add(&segment->kept->spans[SPANS_DROPPED], 1 + message->count);
}

void tracing_end(struct segment *segment, const struct request *request, struct reply *reply,
                 int64_t since_us)
{
    struct spans *spans = spans_get();
    struct trace_message message = {0};
    int64_t now_us = clock_monotonic_us(), epoch_us = clock_wall_ms() * 1000 - now_us;
    spans->is_on = spans->may_adopt = false;
    log_set_trace(NULL);
    pg_untag_all();
    spans->context[0] = '\0';
    if (reply->fault == FAULT_ELSEWHERE)
        return; /* the process that serves it traces it, or does not */
    if (*spans->adopted)
        draw_ids(spans->adopted);
    memcpy(message.trace, tracing.trace, TRACE_ID);
    memcpy(message.id, tracing.id, SPAN_ID);
    memcpy(message.parent, tracing.parent, SPAN_ID);
    memcpy(message.link, tracing.link, sizeof message.link);
    message.begin_us = since_us + epoch_us;
    message.us = now_us - since_us;
    message.status = response_status(&request->form, reply);
    if (reply->timing) {
        reply_enter(reply, reply->phase); /* ends the last one */
        memcpy(message.phases_us, reply->timing->us, sizeof message.phases_us);
    }
    memcpy(message.ns, tracing.ns, sizeof message.ns);
    memcpy(message.what, tracing.what, sizeof message.what);
    snprintf(message.method, sizeof message.method, "%s", tracing.method);
    snprintf(message.request, sizeof message.request, "%s",
             request->form.request_id ? request->form.request_id : "");
    snprintf(message.code, sizeof message.code, "%s", reply->fault ? reply_code(reply) : "");
    add_parts(spans, epoch_us, &message);
    tracing_send(segment, &message);
}
