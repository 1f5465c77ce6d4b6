/* task_endpoint: key, request, answer. */
#include "operation/tasks/task_endpoint.h"

#include <inttypes.h>

#include "base/log.h"
#include "segment/counts/refusals.h"
#include "store/tasks/store_tasks.h"
#include "edge/crypto/crypto.h"
#include "operation/access/access.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/reader.h"
#include "operation/tasks/task_run.h"
#include "operation/tasks/task_scan.h"
#include "operation/reply.h"

enum { RUN_MOST = 1000, STATUS_FAILED = 500 };

/* --- authentication --- */

static bool is_right_key(const struct worker_context *worker_context, struct bytes key)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    if (!*worker_context->settings->queue_key_sha256)
        return false;
    crypto_sha256_hex(key, digest);
    return crypto_equal(bytes_of(digest), bytes_of(worker_context->settings->queue_key_sha256));
}

static enum fault refuse_key(struct call *call, struct reply *reply, const char *where)
{
    return reply_fault(call, reply, FAULT_SKEY, "This is not the key of queue managers.", where, NULL);
}

enum fault task_endpoint_admit(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct settings *settings = worker_context->settings;
    call->body_most = call->bearer.data ? settings->limit_body_bytes : settings_anonymous_body(settings);
    if (call->bearer.data && !is_right_key(worker_context, call->bearer))
        return refuse_key(call, reply, "Authorization");
    return FAULT_NONE;
}

static enum fault task_endpoint_check(struct worker_context *worker_context, struct call *call,
                                      struct reply *reply)
{
    bool is_right = call->bearer.data || call->key.data;
    if (call->bearer.data && !is_right_key(worker_context, call->bearer))
        return refuse_key(call, reply, "Authorization");
    if (!is_right || (call->key.data && !is_right_key(worker_context, call->key)))
        return refuse_key(call, reply, "key");
    call->admin = call->bearer =
        NO_BYTES; /* the administrator's key has no effect here: no task carries it */
    return FAULT_FIRST(access_enter(worker_context, call, reply), access_check_tasks(call, reply));
}

/* --- the answer --- */

/* The text of a failure, where the answer has no field of its own for it. */
static void task_endpoint_add_words(struct builder *out, const struct reply *reply)
{
    json_add_text(out, ",\"message\":", bytes_of(reply_words(reply)));
    if (reply->detail)
        json_add_text(out, ",\"detail\":", bytes_of(reply->detail));
}

static void add_outcome(struct builder *out, const struct task_outcome *outcome, bool with_words)
{
    json_add_text(out, "{\"id\":", outcome->id);
    builder_printf(out, ",\"result\":\"%s\"", outcome->result);
    if (outcome->code) {
        json_add_text(out, ",\"code\":", bytes_of(outcome->code));
        builder_printf(out, ",\"retry\":%" PRId64, outcome->attempt);
        if (with_words)
            task_endpoint_add_words(out, &outcome->reply);
    }
    if (outcome->start)
        builder_printf(out, ",\"startat\":%" PRId64, outcome->start);
    if (outcome->next.id.data) {
        builder_add_text(out, ",\"next\":{");
        task_wakeup_add_members(out, &outcome->next);
        builder_add_text(out, "}");
    }
    builder_add_text(out, "}");
}

static void add_outcomes(struct builder *out, const struct task_outcome *outcomes, size_t count,
                         bool with_words)
{
    builder_add_text(out, "\"tasks\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(out, ",");
        add_outcome(out, &outcomes[i], with_words);
    }
    builder_add_text(out, "]");
}

static void write_outcomes(struct reply *reply, const struct task_outcome *outcomes, size_t count)
{
    reply->body->size = 0;
    builder_add_text(reply->body, "{");
    add_outcomes(reply->body, outcomes, count, true);
    builder_add_text(reply->body, "}");
}

/* The fault of the attempt becomes that of the request. */
static enum fault reply_failure(struct call *call, struct reply *reply, const struct task_outcome *outcome)
{
    const struct reply *failed = &outcome->reply;
    reply->fault = failed->fault ? failed->fault : FAULT_XUNKNOWN;
    reply->code = failed->code;
    reply->phase = failed->phase;
    reply->detail = failed->detail;
    reply->at = failed->at;
    reply->argument_count = failed->argument_count;
    memcpy(reply->arguments, failed->arguments, sizeof reply->arguments);
    reply->body->size = 0;
    add_outcomes(reply->body, outcome, 1, false);
    reply->members = arena_copy(call->arena, reply->body->data, reply->body->size);
    reply->fault_status = STATUS_FAILED;
    return reply->fault;
}

/* --- running --- */

static enum fault run_one(struct worker_context *worker_context, struct call *call, struct reply *reply,
                          int ns)
{
    struct task_outcome *outcome = ARENA_NEW(call->arena, struct task_outcome);
    outcome->id = call->task_id;
    if (!task_is_id(call->task_id))
        outcome->result = "gone";
    else {
        enum fault fault = task_run(worker_context, call, reply, ns, outcome, 1);
        if (fault)
            return fault;
    }
    if (outcome->code)
        return reply_failure(call, reply, outcome);
    write_outcomes(reply, outcome, 1);
    return FAULT_NONE;
}

static enum fault read_ids(const struct reader *reader, const struct json *list,
                           struct task_outcome *outcomes)
{
    size_t count = 0;
    for (const struct json *id = list->first; id; id = id->next) {
        if (id->kind != JSON_STRING || !task_is_id(id->value))
            return reader_wrong_value(reader, id, "run", "Names of tasks are expected.");
        for (size_t i = 0; i < count; i++)
            if (bytes_equal(outcomes[i].id, id->value))
                return reader_wrong_value(reader, id, "run", "A task is named twice.");
        outcomes[count++].id = id->value;
    }
    return FAULT_NONE;
}

/* The fault of a task that runs alone is that of its request, which is counted. */
static void count_refusals(struct worker_context *worker_context, const struct task_outcome *outcomes,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct reply *failed = &outcomes[i].reply;
        if (outcomes[i].code && failed->argument_count)
            refusals_count(worker_context->segment, failed->fault, failed->arguments[0]);
    }
}

static enum fault run_many(struct worker_context *worker_context, struct call *call, struct reply *reply,
                           int ns)
{
    const struct reader reader = {worker_context->settings, call, reply};
    const struct json *list = json_member(call->param, "run");
    if (list->kind != JSON_ARRAY || list->is_shallow || !list->count || list->count > RUN_MOST)
        return reader_wrong_value(&reader, list, "run", "An array of 1 to 1000 names of tasks is expected.");
    struct task_outcome *outcomes = ARENA_ARRAY(call->arena, struct task_outcome, list->count);
    enum fault fault = FAULT_FIRST(read_ids(&reader, list, outcomes),
                                   task_run(worker_context, call, reply, ns, outcomes, list->count));
    if (fault)
        return fault;
    count_refusals(worker_context, outcomes, list->count);
    write_outcomes(reply, outcomes, list->count);
    return FAULT_NONE;
}

/* These failures have been reported to the administrators. */
static enum fault note_reported(struct worker_context *worker_context, struct call *call, struct reply *reply,
                                int ns)
{
    const struct reader reader = {worker_context->settings, call, reply};
    const struct json *list = json_member(call->param, "reported");
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count > RUN_MOST)
        return reader_wrong_value(&reader, list, "reported",
                                  "An array of at most 1000 objects {id, retry} is expected.");
    enum fault fault = FAULT_NONE;
    for (const struct json *row = list->first; row && !fault; row = row->next) {
        const struct json *id = json_member(row, "id");
        int64_t failures;
        if (!id || id->kind != JSON_STRING || !task_is_id(id->value) ||
            !json_is_i64(json_member(row, "retry"), &failures))
            return reader_wrong_value(&reader, row, "reported", "Objects {id, retry} are expected.");
        fault = store_tasks_reported(documents_store(worker_context->documents), ns, call->arena, id->value,
                                     failures);
        if (fault && (fault == FAULT_XUNKNOWN || row != list->first))
            reply_enter(reply, PHASE_UNKNOWN); /* some are, or may be, noted */
    }
    builder_add_text(reply->body, "{}");
    return fault;
}

enum fault task_endpoint_answer(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct reader reader = {worker_context->settings, call, reply};
    enum fault fault = task_endpoint_check(worker_context, call, reply);
    if (fault)
        return fault;
    int ns = documents_ns(worker_context->documents, call->database);
    if (ns < 0)
        return reply_fault(call, reply, FAULT_BINTERNAL, "The table of namespaces is full.", NULL);
    fault = reader_members(&reader, call->param, call->task_id.data ? "" : "run scan reported");
    if (fault)
        return fault;
    if (call->task_id.data)
        return run_one(worker_context, call, reply, ns);
    if (json_member(call->param, "run"))
        return run_many(worker_context, call, reply, ns);
    if (json_member(call->param, "scan"))
        return task_scan(worker_context, call, reply, ns);
    if (json_member(call->param, "reported"))
        return note_reported(worker_context, call, reply, ns);
    return reader_wrong_value(&reader, call->param, "param", "A member run, scan or reported is expected.");
}
