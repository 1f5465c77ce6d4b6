/* module_run: an operation of a module in the cycle: its tries, its failures, its result. */
#include "operation/module/module_private.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "operation/reply.h"

enum { NODES_MOST = 1000000 }; /* of one JSON text that a module reads */

/* --- the watch --- */

void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms)
{
    struct bytes name = bytes_of(what);
    size_t size = name.size < sizeof pulse->application ? name.size : sizeof pulse->application - 1;
    memcpy(pulse->application, name.data, size);
    pulse->application[size] = '\0';
    atomic_store(&pulse->deadline_ms, deadline_ms);
}

void module_unwatch(struct pulse *pulse)
{
    atomic_store(&pulse->deadline_ms, 0);
}

static struct pulse *pulse_of(const struct stampd_call *call)
{
    struct segment *segment = call->attempt->worker_context->segment;
    return metrics_pulse(segment, segment_index(segment));
}

/* If the database has delayed the code past the limit, the grace begins now. */
void module_watch_call(const struct stampd_call *call)
{
    int64_t now_ms = clock_monotonic_ms(), deadline_ms = call->attempt->call->deadline_ms;
    module_watch(pulse_of(call), call->operation->name, deadline_ms > now_ms ? deadline_ms : now_ms);
}

void module_unwatch_call(const struct stampd_call *call)
{
    module_unwatch(pulse_of(call));
}

/* --- failures --- */

/* Each try of a request makes the same mistake: one line. */
static void log_misuse(struct stampd_call *call, const char *detail, const char *argument)
{
    struct call *request = call->attempt->call;
    const char *line = arena_printf(arena_of(call), "operation=%s: %s%s%s", call->operation->name, detail,
                                    argument ? " " : "", argument ? argument : "");
    if (!request->misuse || strcmp(request->misuse, line) != 0)
        log_warning("%s", line);
    request->misuse = line;
}

void module_fail(struct stampd_call *call, enum fault fault, const char *detail, const char *argument)
{
    if (call->fault)
        return;
    call->fault = fault;
    if (fault == FAULT_BMODULE)
        log_misuse(call, detail, argument);
    if (detail || argument)
        reply_fault(call->attempt->call, call->attempt->reply, fault, detail, argument, NULL);
}

void module_fail_limit(struct stampd_call *call, const char *limit, int64_t most, int64_t value)
{
    if (call->fault)
        return;
    call->fault = FAULT_ALIMIT;
    reply_fault(call->attempt->call, call->attempt->reply, FAULT_ALIMIT, NULL, limit,
                arena_printf(arena_of(call), "%" PRId64, most),
                arena_printf(arena_of(call), "%" PRId64, value), NULL);
}

struct json *module_read_json(struct stampd_call *call, struct bytes text, const char **what_r)
{
    int depth = (int)settings_of(call)->limit_depth;
    const struct json_limits limits = {.depth = depth, .tree_depth = depth, .nodes = NODES_MOST};
    struct json *root;
    struct json_problem problem = {0};
    if (!json_read(arena_of(call), text, &limits, &root, &problem))
        return root;
    *what_r = problem.what ? problem.what : "it is no JSON";
    return NULL;
}

/* --- the cycle --- */

static struct stampd_call *open_call(struct attempt *attempt)
{
    struct stampd_call *call = ARENA_NEW(attempt->call->arena, struct stampd_call);
    call->attempt = attempt;
    call->operation = attempt->operation->application;
    return call;
}

static void run(struct stampd_call *call, enum stampd_outcome (*function)(struct stampd_call *))
{
    module_watch_call(call);
    enum stampd_outcome outcome = function(call);
    module_unwatch_call(call);
    if (outcome != STAMPD_DONE)
        module_fail(call, FAULT_BMODULE, "A fault was returned, but none was raised.", NULL);
}

static void check_sizes(struct stampd_call *call)
{
    int64_t most = settings_of(call)->limit_document_bytes, items = settings_of(call)->limit_items;
    for (const struct stampd_document *document = call->documents; document; document = document->next) {
        const struct draft *draft = document->draft;
        if (!draft || !draft_is_changed(draft))
            continue;
        const struct document *base = draft_base(draft); /* what is above a limit already may shrink */
        if (draft_cost(draft) > most && draft_cost(draft) > document_cost(base))
            module_fail_limit(call, "limit_document_bytes", most, draft_cost(draft));
        if (draft_items(draft) > items &&
            draft_items(draft) > (int64_t)base->item_count - (int64_t)base->tombstone_count)
            module_fail_limit(call, "limit_items", items, draft_items(draft));
    }
}

static void write_result(struct stampd_call *call)
{
    struct reply *reply = call->attempt->reply;
    if (!call->mime)
        return;
    reply->body->size = call->attempt->out;
    reply->mime = call->mime;
    builder_add_bytes(reply->body, call->result);
}

enum fault module_work(struct attempt *attempt)
{
    struct stampd_call *call = open_call(attempt);
    attempt->reply->mime = MIME_JSON; /* an earlier try may have had another */
    run(call, call->operation->work);
    check_sizes(call);
    if (!call->fault)
        write_result(call);
    return call->fault;
}

enum fault module_afterwork(struct attempt *attempt)
{
    struct stampd_call *call = open_call(attempt);
    call->is_afterwork = true;
    run(call, call->operation->afterwork);
    if (!call->fault)
        write_result(call);
    return call->fault;
}
