/* module_try: the struct that applications see as opaque. */
#include "operation/module/module_try.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "operation/reply.h"

enum { NODES_MOST = 1000000 }; /* of one JSON text that a module reads */

struct stampd_call {
    struct attempt *attempt;
    const struct stampd_operation *operation;
    struct stampd_document *documents;
    enum fault fault;
    bool is_afterwork, is_filter;
    const char *mime; /* of the result; NULL: none */
    struct bytes result;
};

struct stampd_call *module_try_begin(struct attempt *attempt, bool is_afterwork)
{
    struct stampd_call *call = ARENA_NEW(attempt->call->arena, struct stampd_call);
    call->attempt = attempt;
    call->operation = attempt->operation->application;
    call->is_afterwork = is_afterwork;
    return call;
}

struct stampd_call *module_try_begin_filter(struct attempt *attempt, const struct stampd_operation *operation)
{
    struct stampd_call *call = ARENA_NEW(attempt->call->arena, struct stampd_call);
    call->attempt = attempt;
    call->operation = operation;
    call->is_afterwork = call->is_filter = true;
    return call;
}

bool module_try_is_filter(const struct stampd_call *call)
{
    return call->is_filter;
}

struct attempt *module_try_attempt(const struct stampd_call *call)
{
    return call->attempt;
}

struct arena *module_try_arena(const struct stampd_call *call)
{
    return call->attempt->call->arena;
}

const struct settings *module_try_settings(const struct stampd_call *call)
{
    return call->attempt->worker_context->settings;
}

const struct stampd_operation *module_try_operation(const struct stampd_call *call)
{
    return call->operation;
}

bool module_try_is_afterwork(const struct stampd_call *call)
{
    return call->is_afterwork;
}

struct stampd_document *module_try_documents(const struct stampd_call *call)
{
    return call->documents;
}

void module_try_set_documents(struct stampd_call *call, struct stampd_document *documents)
{
    call->documents = documents;
}

/* --- the watch --- */

static struct pulse *module_try_pulse_of(const struct stampd_call *call)
{
    struct segment *segment = call->attempt->worker_context->segment;
    return metrics_pulse(segment, segment_index(segment));
}

/* If the database has delayed the code past the limit, the grace begins now. */
void module_try_watch(const struct stampd_call *call)
{
    int64_t now_ms = clock_monotonic_ms(), deadline_ms = call->attempt->call->deadline_ms;
    module_watch(module_try_pulse_of(call), call->operation->name,
                 deadline_ms > now_ms ? deadline_ms : now_ms);
}

void module_try_unwatch(const struct stampd_call *call)
{
    module_watch_end(module_try_pulse_of(call));
}

/* --- failures --- */

enum fault module_try_fault(const struct stampd_call *call)
{
    return call->fault;
}

void module_try_set_fault(struct stampd_call *call, enum fault fault)
{
    call->fault = fault;
}

/* Each try of a request makes the same mistake: one line. */
static void log_misuse(struct stampd_call *call, const char *detail, const char *argument)
{
    struct call *request = call->attempt->call;
    const char *line = arena_printf(module_try_arena(call), "operation=%s: %s%s%s", call->operation->name,
                                    detail, argument ? " " : "", argument ? argument : "");
    if (!request->misuse || strcmp(request->misuse, line) != 0)
        log_often(LOG_LEVEL_WARNING, line, "%s", line);
    request->misuse = line;
}

void module_try_fail(struct stampd_call *call, enum fault fault, const char *detail, const char *argument)
{
    if (call->fault)
        return;
    call->fault = fault;
    if (fault == FAULT_BMODULE)
        log_misuse(call, detail, argument);
    if (detail || argument)
        reply_fault(call->attempt->call, call->attempt->reply, fault, detail, argument, NULL);
}

void module_try_fail_limit(struct stampd_call *call, const char *limit, int64_t most, int64_t value)
{
    if (call->fault)
        return;
    call->fault = FAULT_ALIMIT;
    reply_fault(call->attempt->call, call->attempt->reply, FAULT_ALIMIT, NULL, limit,
                arena_printf(module_try_arena(call), "%" PRId64, most),
                arena_printf(module_try_arena(call), "%" PRId64, value), NULL);
}

struct json *module_try_read_json(struct stampd_call *call, struct bytes text, const char **what_r)
{
    int depth = (int)module_try_settings(call)->limit_depth;
    const struct json_limits limits = {.depth = depth, .tree_depth = depth, .nodes = NODES_MOST};
    struct json *root;
    struct json_problem problem = {0};
    if (!json_read(module_try_arena(call), text, &limits, &root, &problem))
        return root;
    *what_r = problem.what ? problem.what : "it is no JSON";
    return NULL;
}

/* --- the result --- */

void module_try_set_result(struct stampd_call *call, const char *mime, struct bytes result)
{
    call->mime = mime;
    call->result = result;
}

void module_try_write_result(const struct stampd_call *call)
{
    struct reply *reply = call->attempt->reply;
    if (!call->mime)
        return;
    reply->body->size = call->attempt->out;
    reply->mime = call->mime;
    builder_add_bytes(reply->body, call->result);
}

/* --- module watch --- */

void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms)
{
    struct bytes name = bytes_of(what);
    size_t size = name.size < sizeof pulse->application ? name.size : sizeof pulse->application - 1;
    memcpy(pulse->application, name.data, size);
    pulse->application[size] = '\0';
    atomic_store(&pulse->deadline_ms, deadline_ms);
}

void module_watch_end(struct pulse *pulse)
{
    atomic_store(&pulse->deadline_ms, 0);
}
