/* route: what answers a call, by its route. */
#include "serve/route.h"

#include "config.h"

#include "model/document/stamp.h"
#include "operation/access/access.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/attachments/upload.h"
#include "operation/attempt.h"
#include "operation/execute.h"
#include "operation/files.h"
#include "operation/tasks/task_endpoint.h"
#include "operation/registry.h"
#include "operation/reply.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "store/documents/store_load.h"

enum {
    HEALTH_MS = 60000, /* an older result does not count */
    RETRY_MS = 2000    /* between two queries of a database that was away */
};

/* --- ping --- */

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

/* What every caller may know of the namespace. */
static void write_configuration(const struct ns_conf *conf, struct builder *body)
{
    builder_add_text(body, ",\"off\":");
    if (conf->state < NS_OFF)
        builder_add_text(body, "0");
    else
        json_add_string(body,
                        conf->message.size ? conf->message : bytes_of(namespace_state_word(conf->state)));
    builder_printf(body, ",\"state\":%d,\"build\":%lld", conf->state, (long long)conf->build);
    namespace_write_shown(conf, body);
}

/* Also when z cannot be reached, so that the namespace's configuration is unknown. */
static enum fault answer_ping(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    struct ns_conf conf;
    struct builder *body = reply->body;
    const char *database = "?";
    bool has_key;
    bool is_known = !access_configuration(worker_context, call, &conf);
    enum fault fault = is_known ? access_place(worker_context->settings, &conf, call) : FAULT_NONE;
    if (fault)
        return fault == FAULT_NNAMESPACE ? access_refuse_name(call, reply) : fault;
    fault = access_check_keys(worker_context, call, reply, &has_key);
    if (fault)
        return fault;
    bool is_gone = is_known && conf.state == NS_GONE; /* its database may have been dropped */
    if (is_known && !is_gone && has_key)
        database = is_database_there(worker_context, call) ? "ok" : "down";
    else if (is_known && !is_gone)
        database = recall_database(worker_context, call);
    write_ping(worker_context, body);
    write_configuration(&conf, body);
    builder_printf(body, ",\"db\":\"%s\"}", database);
    return FAULT_NONE;
}

/* --- dispatch --- */

static enum fault run_call(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    switch (call->route) {
    case CALL_PING:
        write_ping(worker_context, reply->body);
        builder_add_text(reply->body, "}");
        return FAULT_NONE;
    case CALL_NAMESPACE_PING:
        return answer_ping(worker_context, call, reply);
    case CALL_FILE:
        return files_answer(worker_context, call, reply);
    case CALL_TASKS:
        return task_endpoint_answer(worker_context, call, reply);
    default:
        return execute_call(worker_context, call, reply);
    }
}

struct bytes route_word(const struct call *call)
{
    static const char *const words[] = {[CALL_PING] = "ping",         [CALL_NAMESPACE_PING] = "ping",
                                        [CALL_DOCUMENT] = "document", [CALL_ATTACHMENT] = "attachment",
                                        [CALL_UPLOAD] = "upload",     [CALL_FILE] = "resource",
                                        [CALL_TASKS] = "tasks",       [CALL_MAY] = "may",
                                        [CALL_OPTIONS] = "options",   [CALL_LIVE] = "live",
                                        [CALL_READY] = "ready",       [CALL_METRICS] = "metrics"};
    return call->route == CALL_OPERATION ? call->operation : bytes_of(words[call->route]);
}

/* The name of an operation that does not exist, or of a namespace, is a client's text. */
void route_name(const struct call *call, const struct reply *reply, bool is_refused, struct bytes *ns_r,
                struct bytes *what_r)
{
    bool is_unknown = reply->fault && call->route == CALL_OPERATION && !registry_find(call->operation);
    bool is_named = !is_refused && !is_unknown && reply->fault != FAULT_NNAMESPACE;
    *what_r = is_named ? route_word(call) : BYTES("refused");
    *ns_r = is_named && call->database.size ? call->ns : BYTES("");
}

/* A fault that no deeper function has recorded. */
static enum fault route_note(struct call *call, struct reply *reply, enum fault fault)
{
    return reply->fault == fault ? fault : reply_fault(call, reply, fault, NULL, NULL);
}

void route_run(struct worker_context *worker_context, struct call *call, struct reply *reply)
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
    reply->cookie = NULL;
    reply->is_secret = false;
    reply->etag = 0;
    reply->is_lasting = false;
    reply->retry_after_s = 0;
    reply->is_for_decoder = false;
    reply->etag_view = NULL;
    reply->file = NULL;
    reply->upload = NULL;
    reply->is_post_only = false;
    documents_begin_request(worker_context->documents, call->deadline_ms);
    store_clear_visitor(documents_store(worker_context->documents));
    metrics_note_work(metrics_pulse(worker_context->segment, segment_index(worker_context->segment)),
                      call->ns, route_word(call));
    enum fault fault = run_call(worker_context, call, reply);
    if (fault) {
        reply->body->size = 0;
        route_note(call, reply, attempt_answer(fault));
    }
}

enum fault route_admit(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    documents_begin_request(worker_context->documents, call->deadline_ms);
    reply_enter(reply, PHASE_BEFORE);
    enum fault fault = call->route == CALL_TASKS ? task_endpoint_admit(worker_context, call, reply)
                                                 : execute_admit(worker_context, call, reply);
    bool is_asked = !fault && !call->barred && call->attachment && call->attachment->is_asked;
    if (is_asked && call->route == CALL_UPLOAD)
        fault = upload_may(worker_context, call, reply);
    else if (is_asked && call->resource->act == RESOURCE_STORE_FILE)
        fault = attachment_upload_may_put(worker_context, call, reply);
    return fault ? route_note(call, reply, fault) : FAULT_NONE;
}
