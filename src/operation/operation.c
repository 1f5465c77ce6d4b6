/* operation: the cycle work → validation → afterwork → synchronisation, its retries, its phases. */
#include "operation/operation.h"

#include "config.h"

#include "base/clock.h"
#include "base/log.h"
#include "model/stamp.h"
#include "edge/crypto.h"
#include "operation/access.h"
#include "operation/idempotency.h"
#include "operation/registry.h"
#include "operation/standing.h"
#include "operation/matches.h"
#include "operation/sync.h"
#include "operation/tasks/task_endpoint.h"
#include "operation/tasks/task_wakeup.h"
#include "segment/namespaces.h"

enum {
    HEALTH_MS = 60000, /* an older result does not count */
    RETRY_MS = 2000    /* between two queries of a database that was away */
};

/* The longest pause before the second and the third try; the pause itself is random. */
static const int64_t pause_ms[OPERATION_TRIES] = {0, 10, 60};

void operation_pause_before(int try)
{
    uint32_t random;
    if (!pause_ms[try])
        return;
    crypto_random(&random, sizeof random);
    clock_sleep_ms(1 + random % pause_ms[try]);
}

/* A fault that no deeper function has recorded. */
static enum fault note(struct call *call, struct reply *reply, enum fault fault)
{
    return reply->fault == fault ? fault : reply_fault(call, reply, fault, NULL, NULL);
}

void operation_explain(struct call *call, struct reply *reply, const struct transaction *transaction,
                       enum fault fault)
{
    const char *parts[COMMIT_REFUSED_PARTS + 1];
    if (fault != FAULT_AUNIQUE && fault != FAULT_AFIXED && fault != FAULT_ALIMIT)
        return;
    transaction_refused(transaction, parts);
    if (fault == FAULT_ALIMIT && !parts[0]) /* it is explained, or not of the commit */
        return;
    (void)reply_fault(call, reply, fault, NULL, NULL);
    for (size_t i = 0; parts[i]; i++)
        reply_add_argument(call, reply, parts[i]);
}

static bool is_late(const struct call *call)
{
    return clock_monotonic_ms() > call->deadline_ms;
}

/* Work and validation, once. */
static enum fault attempt_once(struct attempt *attempt, const struct operation *operation,
                               struct idempotency *idempotency, bool in_snapshot)
{
    struct reply *reply = attempt->reply;
    reply_enter(reply, PHASE_WORK);
    attempt->schema = NULL;
    attempt->grants = NULL;
    enum fault fault = transaction_begin(attempt->worker_context->documents, attempt->ns,
                                         attempt->call->arena, in_snapshot, &attempt->transaction);
    if (fault)
        return fault;
    if (attempt->call->session.data)
        transaction_name_session(attempt->transaction, attempt->call->session);
    if (operation->right != RIGHT_READ && !operation->only_reads)
        transaction_take_turns(attempt->transaction);
    fault = operation->work ? operation->work(attempt) : FAULT_NONE;
    if (!fault && is_late(attempt->call))
        fault = FAULT_XTIME;
    if (!fault && operation->afterwork)
        fault = standing_note(attempt);
    if (!fault && idempotency)
        fault = idempotency_keep(attempt, idempotency);
    if (!fault) {
        reply_enter(reply, PHASE_VALIDATION);
        fault = transaction_validate(attempt->transaction, &attempt->version);
        operation_explain(attempt->call, reply, attempt->transaction, fault);
    }
    transaction_end(attempt->transaction);
    return fault;
}

/* Up to OPERATION_TRIES times; what the tries leave in the arena goes with the request. */
static enum fault attempt_often(struct attempt *attempt, const struct operation *operation,
                                struct idempotency *idempotency)
{
    struct reply *reply = attempt->reply;
    bool is_answered = false, again = true;
    enum fault fault = idempotency ? idempotency_recall(attempt, idempotency, &is_answered) : FAULT_NONE;
    if (!fault && idempotency && !is_answered)
        fault = idempotency_check_age(attempt, idempotency);
    if (fault || is_answered)
        return fault;
    for (int try = 0; try < OPERATION_TRIES && again; try++) {
        operation_pause_before(try);
        reply->body->size = attempt->out;
        reply->fault = FAULT_NONE;
        reply->mime = MIME_JSON;
        /* Validation in memory cannot succeed while others keep writing: the last try reads in one snapshot.
         */
        fault =
            attempt_once(attempt, operation, idempotency, try == OPERATION_TRIES - 1 && fault == FAULT_STALE);
        if (fault && idempotency)
            fault = idempotency_settle(attempt, idempotency, fault, &again);
        else
            again = reply_is_retried(reply, fault);
        if (!fault || is_late(attempt->call))
            break;
        if (again)
            log_debug("try again operation=%s code=%s try=%d", operation->name, fault_code(fault), try + 1);
    }
    return fault == FAULT_STALE ? FAULT_CONTENTION : fault;
}

/* A result that is not JSON is sent unchanged: no envelope, no synchronisation. */
static void unwrap(struct builder *body, size_t out)
{
    memmove(body->data, body->data + out, body->size - out);
    body->size -= out;
}

/* Sends wake-ups for the tasks that the commit has created. */
static void tell_of_tasks(const struct attempt *attempt)
{
    if (attempt->transaction)
        wakeup_commit(attempt->worker_context, attempt->ns, attempt->call->ns, attempt->transaction);
}

static enum fault run_cycle(struct attempt *attempt, const struct operation *operation)
{
    struct call *call = attempt->call;
    struct reply *reply = attempt->reply;
    const struct holdings *syncs;
    struct idempotency *idempotency = NULL;
    enum fault fault = sync_read(attempt->worker_context, call, reply, &syncs);
    if (!fault)
        fault = idempotency_open(attempt->worker_context, call, reply, operation, &idempotency);
    if (fault)
        return fault;
    if (!operation->is_bare)
        builder_add_text(reply->body, "{\"out\":");
    attempt->out = reply->body->size;
    fault = attempt_often(attempt, operation, idempotency);
    if (!fault)
        tell_of_tasks(attempt);
    if (!fault && operation->afterwork) {
        reply_enter(reply, PHASE_AFTERWORK);
        fault = operation->afterwork(attempt);
    }
    if (fault || operation->is_bare)
        return fault;
    if (strcmp(reply->mime, MIME_JSON) != 0) {
        unwrap(reply->body, attempt->out);
        return FAULT_NONE;
    }
    if (reply->body->size == attempt->out)
        reply->body->size = 1; /* no result: only the brace stays */
    if (syncs) {
        reply_enter(reply, PHASE_SYNC);
        if (reply->body->size > 1)
            builder_add_text(reply->body, ",");
        builder_add_text(reply->body, "\"syncs\":");
        fault = sync_write(attempt, syncs);
    }
    matches_write(attempt, reply->body);
    builder_add_text(reply->body, "}");
    return fault;
}

/* An operation may have less time than the others. */
static void limit_time(struct worker_context *worker_context, struct call *call,
                       const struct operation *operation)
{
    int64_t deadline_ms = clock_monotonic_ms() + operation->limit_s * 1000;
    if (!operation->limit_s || deadline_ms >= call->deadline_ms)
        return;
    call->deadline_ms = deadline_ms;
    documents_begin_request(worker_context->documents, deadline_ms);
}

static const struct operation *find_operation(const struct call *call)
{
    return call->resource ? registry_get_resource(call->resource->act) : registry_find(call->operation);
}

/* Names the limit that refused a long read, whatever fault the operation has recorded. */
static void explain_reading(struct worker_context *worker_context, struct call *call, struct reply *reply,
                            enum fault fault)
{
    int64_t value;
    const char *limit = store_reading_refused(documents_store(worker_context->documents), fault, &value);
    if (fault && limit)
        (void)reply_fault(call, reply, fault, NULL, limit,
                          arena_printf(call->arena, "%lld", (long long)value), NULL);
}

static enum fault run_operation(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const char *build = worker_context->settings->build;
    if (*build && call->build.data && !bytes_equal(call->build, bytes_of(build)))
        return reply_fault(call, reply, FAULT_DBUILD, NULL,
                           arena_copy(call->arena, call->build.data, call->build.size), build, NULL);
    const struct operation *operation = find_operation(call);
    bool is_judged = call->is_entered && (!call->admin.data || call->admin.data == call->bearer.data);
    enum fault fault = is_judged ? FAULT_NONE : access_enter(worker_context, call, reply);
    if (!fault && !operation)
        fault = access_refuse_unknown(call, reply, call->operation);
    if (!fault)
        fault = access_check(call, reply, operation);
    if (!fault)
        fault = access_check_method(worker_context, call, reply, operation);
    if (!fault)
        fault = idempotency_read_dhop(worker_context, call, reply);
    if (!fault)
        fault = matches_check_session(call, reply);
    if (fault)
        return fault;
    struct attempt attempt = {
        .operation = operation, .worker_context = worker_context, .call = call, .reply = reply};
    attempt.ns = documents_ns(worker_context->documents, call->database);
    if (attempt.ns < 0)
        return reply_fault(call, reply, FAULT_BINTERNAL, "The table of namespaces is full.", NULL);
    limit_time(worker_context, call, operation);
    if (call->is_visitor)
        store_set_visitor(documents_store(worker_context->documents), attempt.ns);
    if (call->level < LEVEL_EVERYTHING)
        store_set_reader(documents_store(worker_context->documents), call->client);
    fault = run_cycle(&attempt, operation);
    explain_reading(worker_context, call, reply, fault);
    store_clear_reader(documents_store(worker_context->documents));
    return fault;
}

static void write_ping(const struct worker_context *worker_context, struct builder *body)
{
    builder_printf(body, "{\"t\":%lld,\"b\":", (long long)stamp_now());
    json_add_string(body, bytes_of(worker_context->settings->build));
}

static bool is_database_there(struct worker_context *worker_context, struct call *call)
{
    int ns = documents_ns(worker_context->documents, call->database);
    struct load load = {.class = BYTES("Ping"), .id = BYTES("ping")};
    if (ns < 0 || store_load(documents_store(worker_context->documents), ns, call->arena, &load))
        return false;
    document_release(load.document);
    return true;
}

/* A ping without a key returns the result of the last use of the database and does not query it, with two
 * exceptions: the database was never used since the segment began, or it was away; then one ping in RETRY_MS
 * queries it, since there may be no other request. */
static const char *recall_database(struct worker_context *worker_context, struct call *call)
{
    int ns = documents_ns(worker_context->documents, call->database);
    bool is_up = false;
    int64_t age_ms = ns < 0 ? -1 : namespaces_health(worker_context->segment, ns, &is_up);
    bool is_retry = ns >= 0 && age_ms > RETRY_MS && !is_up;
    if (is_retry)
        namespaces_set_health(worker_context->segment, ns,
                              false); /* other pings wait for the next interval */
    if (is_retry || (ns >= 0 && age_ms < 0)) {
        is_up = is_database_there(worker_context, call);
        namespaces_set_health(worker_context->segment, ns, is_up);
    } else if (ns < 0 || age_ms > HEALTH_MS) {
        return "?";
    }
    return is_up ? "ok" : "down";
}

/* Also when z cannot be reached, so that the namespace's configuration is unknown. */
static enum fault answer_ping(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    struct ns_conf conf;
    struct builder *body = reply->body;
    const char *state = "?";
    bool has_key;
    bool is_known = !access_configuration(worker_context, call, &conf);
    if (is_known && !access_is_namespace(worker_context->settings, &conf, call->ns, call->database))
        return access_refuse_name(call, reply);
    enum fault fault = access_check_keys(worker_context, call, reply, &has_key);
    if (fault)
        return fault;
    if (is_known && has_key)
        state = is_database_there(worker_context, call) ? "ok" : "down";
    else if (is_known)
        state = recall_database(worker_context, call);
    write_ping(worker_context, body);
    builder_add_text(body, ",\"off\":");
    if (conf.off.size)
        json_add_string(body, conf.off);
    else
        builder_add_text(body, "0");
    builder_printf(body, ",\"db\":\"%s\"}", state);
    return FAULT_NONE;
}

static enum fault run_call(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    switch (call->route) {
    case CALL_PING:
        write_ping(worker_context, reply->body);
        builder_add_text(reply->body, "}");
        return FAULT_NONE;
    case CALL_NAMESPACE_PING:
        return answer_ping(worker_context, call, reply);
    case CALL_TASKS:
        return task_endpoint_answer(worker_context, call, reply);
    default:
        return run_operation(worker_context, call, reply);
    }
}

void operation_run(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    reply->fault = FAULT_NONE;
    reply->phase = PHASE_BEFORE;
    reply->argument_count = 0;
    reply->detail = NULL;
    reply->at = NULL;
    reply->mime = MIME_JSON;
    reply->is_replayed = false;
    reply->status = 0;
    reply->fault_status = 0;
    reply->members = NULL;
    reply->etag = 0;
    reply->is_post_only = false;
    documents_begin_request(worker_context->documents, call->deadline_ms);
    store_clear_visitor(documents_store(worker_context->documents));
    enum fault fault = run_call(worker_context, call, reply);
    if (fault) {
        reply->body->size = 0;
        note(call, reply, fault);
    }
}

enum fault operation_admit(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    documents_begin_request(worker_context->documents, call->deadline_ms);
    reply_enter(reply, PHASE_BEFORE);
    enum fault fault = call->route == CALL_TASKS
                           ? task_endpoint_admit(worker_context, call, reply)
                           : access_admit(worker_context, call, reply, find_operation(call));
    return fault ? note(call, reply, fault) : FAULT_NONE;
}
