/* execute: the operation of a request: access, tries, afterwork, synchronisation. */
#include "operation/execute.h"

#include "base/clock.h"
#include "base/log.h"
#include "operation/access/access.h"
#include "operation/attempt.h"
#include "operation/sync/client_build.h"
#include "operation/idempotency.h"
#include "operation/registry.h"
#include "operation/sync/versions_after.h"
#include "operation/judge/matches.h"
#include "operation/quota.h"
#include "operation/sync/sync.h"
#include "operation/tasks/task_wakeup.h"
#include "store/documents/store_idempotency.h"
#include "store/store_long.h"
#include "operation/reply.h"

/* A request with a larger body is long.  nginx (nginx.conf.in) has the same number. */
enum { BODY_SHORT = 65536 };

/* --- the tries --- */

/* The answer is stored by the commit of the operation. */
static enum fault execute_complete(struct attempt_commit *commit, struct attempt *attempt)
{
    struct idempotency *idempotency = commit->context;
    enum fault fault = attempt->operation->afterwork ? versions_after_note(attempt) : FAULT_NONE;
    matches_note(attempt);
    return fault || !idempotency ? fault : idempotency_keep(attempt, idempotency);
}

static enum attempt_next execute_settle(struct attempt_commit *commit, enum fault *fault)
{
    const struct idempotency *idempotency = commit->context;
    struct attempt *attempt = commit->attempts[0];
    bool again = reply_is_retried(attempt->reply, *fault);
    if (*fault && idempotency)
        *fault = idempotency_settle(attempt, idempotency, *fault, &again);
    return again ? ATTEMPT_AGAIN : ATTEMPT_END;
}

static enum fault attempt_operation(struct attempt *attempt, struct idempotency *idempotency)
{
    bool is_answered = false;
    enum fault fault = idempotency ? idempotency_seal(attempt, idempotency) : FAULT_NONE;
    if (!fault && idempotency)
        fault = idempotency_recall(attempt, idempotency, &is_answered);
    if (!fault && idempotency && !is_answered)
        fault = idempotency_check_age(attempt, idempotency);
    if (!fault && !is_answered && attempt->operation->prepare)
        fault = attempt->operation->prepare(attempt);
    if (fault || is_answered)
        return fault;
    struct attempt_commit commit = {.attempts = &attempt,
                                    .count = 1,
                                    .may_read_snapshot = true,
                                    .context = idempotency,
                                    .complete = execute_complete,
                                    .settle = execute_settle};
    return attempt_run(&commit);
}

/* --- the answer --- */

/* A result that is not JSON is sent unchanged: no envelope, no synchronisation. */
static void unwrap(struct builder *body, size_t out)
{
    memmove(body->data, body->data + out, body->size - out);
    body->size -= out;
}

/* Sends wake-ups for the tasks that the commit has created. */
static void wake_managers(const struct attempt *attempt)
{
    if (attempt->transaction)
        task_wakeup_commit(attempt->worker_context, attempt->ns, attempt->call->ns, attempt->transaction);
}

static enum fault run_cycle(struct attempt *attempt, const struct operation *operation)
{
    struct call *call = attempt->call;
    struct reply *reply = attempt->reply;
    const struct client_copies *syncs;
    struct idempotency *idempotency = NULL;
    enum fault fault =
        FAULT_FIRST(sync_read(attempt->worker_context, call, reply, &syncs),
                    idempotency_open(attempt->worker_context, call, reply, operation, &idempotency));
    if (fault)
        return fault;
    if (!operation->is_bare)
        builder_add_text(reply->body, "{\"out\":");
    attempt->out = reply->body->size;
    fault = attempt_operation(attempt, idempotency);
    if (!fault)
        wake_managers(attempt);
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
    if (!fault)
        fault = matches_write(attempt, reply->body);
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
    if (call->resource)
        return registry_get_resource(call->resource->act);
    const struct operation *operation = registry_find(call->operation);
    return operation && operation->task.is_internal ? NULL : operation;
}

/* Names the limit that refused a long request, whatever fault the operation has recorded. */
static void explain_reading(struct worker_context *worker_context, struct call *call, struct reply *reply,
                            enum fault fault)
{
    int64_t value;
    const char *limit = store_reading_refused(documents_store(worker_context->documents), fault, &value);
    if (fault && limit)
        (void)reply_fault(call, reply, fault, NULL, limit,
                          arena_printf(call->arena, "%lld", (long long)value), NULL);
}

/* A request with a wrong credential is one that its address and the namespace may not send without end. */
static enum fault count_wrong(struct worker_context *worker_context, struct call *call, struct reply *reply,
                              enum fault fault)
{
    int ns = fault == FAULT_SKEY ? documents_ns(worker_context->documents, call->database) : -1;
    if (ns < 0)
        return fault;
    enum fault refusal = quota_take(worker_context->segment, call, reply, ns, QUOTA_REQUESTS);
    if (refusal)
        reply->fault_status = 0;
    return refusal ? refusal : fault;
}

/* Administrators have no share, and no time of their own. */
static enum fault execute_enter(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    struct store *store = documents_store(attempt->worker_context->documents);
    const struct store_requester requester = {
        .client = call->client,
        .account = call->caller.account,
        .since_ms = call->deadline_ms - attempt->worker_context->settings->limit_operation_s * 1000,
    };
    limit_time(attempt->worker_context, attempt->call, attempt->operation);
    if (call->level >= LEVEL_EVERYTHING)
        return FAULT_NONE;
    store_set_requester(store, &requester);
    return call->body_size > BODY_SHORT ? store_long_enter(store, attempt->ns) : FAULT_NONE;
}

enum fault execute_call(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct operation *operation = find_operation(call);
    call->find_age = operation ? operation->find_age : NULL;
    bool has_arguments = call->accounts.is_on && (call->key.data || call->account.data);
    bool is_judged = call->is_entered && !call->is_by_old && !has_arguments &&
                     (!call->admin.data || call->admin.data == call->bearer.data);
    enum fault fault = client_build_check_server(worker_context->settings, call, reply);
    if (!fault && !is_judged)
        fault = count_wrong(worker_context, call, reply, access_enter(worker_context, call, reply));
    int ns = fault ? -1 : documents_ns(worker_context->documents, call->database);
    if (!fault && ns < 0)
        fault = reply_fault(call, reply, FAULT_BINTERNAL, "The table of namespaces is full.", NULL);
    if (!fault)
        fault = FAULT_FIRST(quota_enter(worker_context->segment, call, reply, ns, operation),
                            client_build_check_namespace(worker_context->settings, call, reply));
    if (!fault && !operation)
        fault = access_refuse_unknown(call, reply, call->operation);
    if (!fault)
        fault = FAULT_FIRST(
            access_check(call, reply, operation), access_check_method(worker_context, call, reply, operation),
            idempotency_read_dhop(worker_context, call, reply), matches_check_session(call, reply));
    if (fault)
        return fault;
    struct attempt attempt = {.operation = operation,
                              .worker_context = worker_context,
                              .call = call,
                              .reply = reply,
                              .ns = ns,
                              .changes_before = attempt_count_changes(worker_context)};
    reply->is_secret = operation->is_secret;
    if (call->is_visitor)
        store_set_visitor(documents_store(worker_context->documents), attempt.ns);
    fault = FAULT_FIRST(execute_enter(&attempt), run_cycle(&attempt, operation));
    if (fault)
        attempt_note_fault(&attempt);
    explain_reading(worker_context, call, reply, fault);
    store_clear_requester(documents_store(worker_context->documents));
    return fault;
}

/* Before its body is read. */
static int64_t find_possible_age(const struct call *call UNUSED)
{
    return AGE_MOST;
}

enum fault execute_admit(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct operation *operation = find_operation(call);
    call->find_age = operation && operation->find_age ? find_possible_age : NULL;
    enum fault fault = access_admit(worker_context, call, reply, operation);
    return count_wrong(worker_context, call, reply, fault);
}
