/* endpoint: FastCGI requests, the key, and the five operations; metrics, for this host only. */
#include "queue/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "model/document/stamp.h"
#include "edge/crypto/crypto.h"
#include "edge/fcgi.h"
#include "edge/json/json.h"
#include "queue/alert.h"
#include "queue/form.h"
#include "queue/manager_private.h"
#include "queue/runner.h"
#include "queue/registry.h"

/* --- metrics: the state of a queue manager in Prometheus format (tasks.md) --- */

static void add_head(struct builder *out, const char *type, const char *name, const char *help)
{
    builder_printf(out, "# HELP stampd_queue_%s %s\n# TYPE stampd_queue_%s %s\n", name, help, name, type);
}

static void add_singles(const struct manager *manager, struct builder *out)
{
    struct agenda_counts counts = agenda_count(manager->agenda);
    struct alert_counts mails = alert_count(manager->alert);
    const struct {
        const char *type, *name, *help;
        uint64_t value;
    } singles[] = {
        {"gauge", "suspended", "1: suspend was sent, nothing new is started.", manager->is_suspended},
        {"gauge", "tasks_later", "Tasks in memory that start soon.", counts.later},
        {"gauge", "tasks_due", "Tasks in memory that wait for a place.", counts.due},
        {"gauge", "tasks_running", "Tasks of in-flight requests.", counts.running},
        {"counter", "requests_failed_total", "Scans and runs that no worker answered.",
         manager->failed_requests},
        {"counter", "tasks_overlooked_total",
         "Tasks that only a scan has found, 5 s or more after their start, while a place was free.",
         manager->overlooked},
        {"counter", "mails_sent_total", "Mails about failures that the mail server accepted.", mails.sent},
        {"counter", "mails_failed_total", "Mails that the mail server did not accept; they are sent again.",
         mails.failed},
        {"gauge", "failures_unreported", "Failures not yet reported by mail.", mails.waiting},
    };
    for (size_t i = 0; i < COUNT_OF(singles); i++) {
        add_head(out, singles[i].type, singles[i].name, singles[i].help);
        builder_printf(out, "stampd_queue_%s{qm=\"%s\"} %llu\n", singles[i].name,
                       manager->settings->queue_code, (unsigned long long)singles[i].value);
    }
}

static void add_slots(const struct manager *manager, struct builder *out, const char *name, const char *help,
                      bool is_taken)
{
    add_head(out, "gauge", name, help);
    for (int queue = 0; queue < AGENDA_QUEUES; queue++) {
        int taken, slots = agenda_slots(manager->agenda, queue, &taken);
        if (slots)
            builder_printf(out, "stampd_queue_%s{qm=\"%s\",queue=\"%d\"} %d\n", name,
                           manager->settings->queue_code, queue, is_taken ? taken : slots);
    }
}

static void add_namespaces(const struct manager *manager, struct builder *out, const char *name,
                           const char *help, bool is_waiting)
{
    add_head(out, "gauge", name, help);
    for (int i = 0; i < manager->ns_count; i++) {
        const struct queue_namespace *ns = &manager->namespaces[i];
        size_t value = is_waiting ? agenda_waiting(manager->agenda, i) : (size_t)ns->failures;
        if (ns->is_ours)
            builder_printf(out, "stampd_queue_%s{qm=\"%s\",ns=\"%s\"} %zu\n", name,
                           manager->settings->queue_code, ns->code, value);
    }
}

static void metrics_write(const struct manager *manager, struct builder *out)
{
    add_singles(manager, out);
    add_slots(manager, out, "slots", "Requests of the queue that may run at once: queue_concurrency.", false);
    add_slots(manager, out, "slots_used", "In-flight requests with tasks of the queue.", true);
    add_namespaces(manager, out, "namespace_tasks", "Waiting tasks of the namespace in memory.", true);
    add_namespaces(manager, out, "namespace_failures",
                   "Requests in a row that no worker answered; the manager backs off from the namespace.",
                   false);
}

/* --- endpoint --- */

enum {
    PATH_MAX_BYTES = 108,
    IO_TIMEOUT_MS = 5000,
    BODY_MAX = 65536,
    TASKS_LISTED = 1000,
    REQUESTS_AT_ONCE = 16,
};

struct endpoint {
    struct manager *manager;
    struct fcgi *fcgi;
    struct arena *arena; /* of one request */
    struct builder body, answer, head;
    char path[PATH_MAX_BYTES];
};

struct endpoint *endpoint_open(struct manager *manager, const struct identity *identity, char *problem,
                               size_t problem_size)
{
    const struct settings *settings = manager->settings;
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);
    int listener;
    if (!endpoint)
        log_fatal("out of memory");
    endpoint->manager = manager;
    int size = snprintf(endpoint->path, sizeof endpoint->path, "%s/%s.sock", settings->run_directory,
                        settings->queue_code);
    if (size < 0 || (size_t)size >= sizeof endpoint->path) {
        snprintf(problem, problem_size, "run_directory: the path is too long");
    } else if (fcgi_listen(endpoint->path, identity->socket_group, &listener, problem, problem_size)) {
        endpoint->fcgi = fcgi_open(
            &(struct fcgi_options){.listener = listener, .wake = -1, .io_timeout_ms = IO_TIMEOUT_MS});
        endpoint->arena = arena_create("endpoint");
        return endpoint;
    }
    free(endpoint);
    return NULL;
}

void endpoint_close(struct endpoint *endpoint)
{
    if (!endpoint)
        return;
    unlink(endpoint->path);
    fcgi_close(endpoint->fcgi);
    arena_destroy(endpoint->arena);
    builder_free(&endpoint->body);
    builder_free(&endpoint->answer);
    builder_free(&endpoint->head);
    free(endpoint);
}

int endpoint_descriptor(const struct endpoint *endpoint)
{
    return fcgi_descriptor(endpoint->fcgi);
}

/* --- the operations --- */

bool endpoint_take_wakeup(struct manager *manager, const struct json *wakeup)
{
    const struct json *code = json_member(wakeup, "ns");
    struct agenda_entry entry;
    if (!code || code->kind != JSON_STRING)
        return false;
    int ns = manager_namespaces_find(manager, code->value);
    if (ns < 0) {
        if (manager->registry)
            registry_hurry(manager->registry); /* the namespace may be new */
        return false;
    }
    if (manager->namespaces[ns].failures)
        return true; /* it is scanned when it answers again */
    if (!json_member(wakeup, "id")) {
        agenda_doubt(manager->agenda, ns);
        manager_namespaces_want_scan(manager, ns);
        return true;
    }
    if (!runner_read_row(ns, wakeup, &entry))
        return false;
    if (!agenda_put(manager->agenda, &entry))
        manager->namespaces[ns].was_cut = true;
    return true;
}

struct listing {
    struct endpoint *endpoint;
    size_t count;
};

static void list_task(void *context, const struct agenda_task *task)
{
    struct listing *listing = context;
    struct endpoint *endpoint = listing->endpoint;
    struct builder *answer = &endpoint->answer;
    if (listing->count++ >= TASKS_LISTED)
        return;
    builder_printf(answer, "%s{\"ns\":\"%s\",\"id\":\"%s\",\"op\":", listing->count > 1 ? "," : "",
                   endpoint->manager->namespaces[task->ns].code, task->id);
    json_add_string(answer, bytes_of(task->operation));
    builder_printf(answer, ",\"qn\":%d,\"priority\":%d,\"startat\":%lld,\"retry\":%d,\"running\":%s}",
                   task->queue, task->priority, (long long)stamp_from_epoch_ms(task->start_ms), task->retry,
                   task->is_running ? "true" : "false");
}

static void endpoint_list(struct endpoint *endpoint)
{
    const struct manager *manager = endpoint->manager;
    struct agenda_counts counts = agenda_count(manager->agenda);
    struct alert_counts mails = alert_count(manager->alert);
    struct listing listing = {.endpoint = endpoint};
    builder_printf(&endpoint->answer,
                   "{\"qm\":\"%s\",\"suspended\":%s,\"later\":%zu,\"due\":%zu,\"running\":%zu,\"places\":%d,"
                   "\"places_used\":%d,\"requests_failed\":%llu,\"mails_sent\":%llu,\"mails_failed\":%llu,"
                   "\"failures_unreported\":%zu,\"namespaces\":[",
                   manager->settings->queue_code, manager->is_suspended ? "true" : "false", counts.later,
                   counts.due, counts.running, manager->slots, agenda_running(manager->agenda),
                   (unsigned long long)manager->failed_requests, (unsigned long long)mails.sent,
                   (unsigned long long)mails.failed, mails.waiting);
    const char *comma = "";
    for (int i = 0; i < manager->ns_count; i++) {
        const struct queue_namespace *ns = &manager->namespaces[i];
        if (!ns->is_ours)
            continue;
        builder_printf(&endpoint->answer, "%s{\"ns\":\"%s\",\"failures\":%d,\"waiting\":%zu}", comma,
                       ns->code, ns->failures, agenda_waiting(manager->agenda, i));
        comma = ",";
    }
    builder_add_text(&endpoint->answer, "],\"tasks\":[");
    agenda_each(manager->agenda, list_task, &listing);
    builder_add_text(&endpoint->answer, "]}");
}

static void set_suspended(struct endpoint *endpoint, bool is_suspended)
{
    struct manager *manager = endpoint->manager;
    if (manager->is_suspended != is_suspended)
        log_info(is_suspended ? "suspended: no new tasks are started" : "restarted");
    manager->is_suspended = is_suspended;
    builder_printf(&endpoint->answer, "{\"suspended\":%s,\"running\":%d}", is_suspended ? "true" : "false",
                   agenda_running(manager->agenda));
}

/* Scans one namespace, or all. */
static enum fault scan(struct endpoint *endpoint, struct form *form)
{
    struct manager *manager = endpoint->manager;
    const struct json *param = form->param;
    for (const struct json *member = param ? param->first : NULL; member; member = member->next)
        if (form_check_name(endpoint->arena, form, "ns", "/param", member->name))
            return FAULT_AARG;
    const struct json *code = json_member(param, "ns");
    int wanted = code && code->kind == JSON_STRING ? manager_namespaces_find(manager, code->value) : -1,
        count = 0;
    if (code && wanted < 0)
        return FAULT_NNAMESPACE;
    for (int i = 0; i < manager->ns_count; i++)
        if (manager->namespaces[i].is_ours && (!code || i == wanted)) {
            manager_namespaces_want_scan(manager, i);
            count++;
        }
    if (manager->registry && !code)
        registry_hurry(manager->registry);
    builder_printf(&endpoint->answer, "{\"scans\":%d}", count);
    return FAULT_NONE;
}

static enum fault endpoint_take(struct endpoint *endpoint, const struct json *param)
{
    if (!endpoint_take_wakeup(endpoint->manager, param))
        return FAULT_AARG;
    builder_add_text(&endpoint->answer, "{}");
    return FAULT_NONE;
}

/* The key of queue managers, or the administrator's. */
static bool is_right_key(const struct endpoint *endpoint, struct bytes key)
{
    const char *wanted = endpoint->manager->settings->admin_key_sha256;
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(key, digest);
    bool is_administrators = *wanted && crypto_equal(bytes_of(digest), bytes_of(wanted));
    return crypto_equal(key, endpoint->manager->key) || is_administrators;
}

/* The key may be in the header or the body; wherever it is given, it must be right. */
static bool is_allowed(const struct endpoint *endpoint, const struct form *form, struct bytes bearer)
{
    return (bearer.data || form->key.data) && (!bearer.data || is_right_key(endpoint, bearer)) &&
           (!form->key.data || is_right_key(endpoint, form->key));
}

static enum fault endpoint_run(struct endpoint *endpoint, struct form *form, struct bytes bearer)
{
    if (!is_allowed(endpoint, form, bearer))
        return FAULT_SKEY;
    if (bytes_equal(form->op, BYTES("list")))
        endpoint_list(endpoint);
    else if (bytes_equal(form->op, BYTES("suspend")))
        set_suspended(endpoint, true);
    else if (bytes_equal(form->op, BYTES("restart")))
        set_suspended(endpoint, false);
    else if (bytes_equal(form->op, BYTES("scan")))
        return scan(endpoint, form);
    else if (bytes_equal(form->op, BYTES("inq")))
        return endpoint_take(endpoint, form->param);
    else
        return FAULT_NOPERATION;
    return FAULT_NONE;
}

/* --- requests --- */

static void write_problem(struct builder *answer, enum fault fault, int status, const struct form *form)
{
    const char *comma = "";
    builder_printf(
        answer,
        "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"code\":\"%s\",\"major\":%d,\"phase\":0,"
        "\"message\":",
        fault_words(fault), status, fault_code(fault), fault_major(fault));
    struct builder words = {0};
    builder_printf(&words, "%s%s%s", fault_words(fault), form->detail ? " " : "",
                   form->detail ? form->detail : "");
    json_add_string(answer, builder_bytes(&words));
    builder_free(&words);
    builder_add_text(answer, ",\"args\":[");
    const struct bytes arguments[] = {form->name, form->nearest};
    for (size_t i = 0; i < COUNT_OF(arguments) && arguments[i].data; i++, comma = ",") {
        builder_add_bytes(answer, bytes_of(comma));
        json_add_string(answer, arguments[i]);
    }
    builder_add_text(answer, "]");
    if (form->at) {
        json_add_text(answer, ",\"at\":", bytes_of(form->at));
        json_add_text(answer, ",\"detail\":", bytes_of(form->detail));
    }
    builder_add_text(answer, "}");
}

static void endpoint_compose(struct endpoint *endpoint, enum fault fault, const struct form *form)
{
    int status = fault_status(fault, false);
    if (fault) {
        builder_clear(&endpoint->answer, BODY_MAX);
        write_problem(&endpoint->answer, fault, status, form);
    }
    builder_printf(&endpoint->head,
                   "Status: %d\r\nContent-Type: application/%s\r\nContent-Length: %zu\r\n"
                   "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n",
                   status, fault ? "problem+json" : "json", endpoint->answer.size);
}

/* A parameter of nginx marks requests from this host, at the address of the probes. */
static bool serve_probe(struct endpoint *endpoint, struct fcgi_request *request)
{
    if (!bytes_equal(fcgi_parameter(request, BYTES("STAMPD_ENDPOINT")), BYTES("probe")))
        return false;
    metrics_write(endpoint->manager, &endpoint->answer);
    builder_printf(&endpoint->head,
                   "Status: 200\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                   "Content-Length: %zu\r\nCache-Control: no-store\r\n\r\n",
                   endpoint->answer.size);
    (void)fcgi_answer(request, builder_bytes(&endpoint->head), builder_bytes(&endpoint->answer));
    builder_clear(&endpoint->answer, BODY_MAX);
    builder_clear(&endpoint->head, BODY_MAX);
    return true;
}

static void serve(struct endpoint *endpoint, struct fcgi_request *request)
{
    struct form form = {0};
    int64_t size = 0;
    enum fault fault = FAULT_AMETHOD;
    if (serve_probe(endpoint, request))
        return;
    if (bytes_equal(fcgi_parameter(request, BYTES("REQUEST_METHOD")), BYTES("POST")))
        fault = fcgi_read_body(request, BODY_MAX, &endpoint->body, &size);
    if (!fault)
        fault =
            form_read(endpoint->arena, fcgi_parameter(request, BYTES("QUERY_STRING")),
                      fcgi_parameter(request, BYTES("CONTENT_TYPE")), builder_bytes(&endpoint->body), &form);
    if (!fault) {
        builder_add_text(&endpoint->answer, "{\"out\":");
        fault = endpoint_run(endpoint, &form,
                             secret_bearer(fcgi_parameter(request, BYTES("HTTP_AUTHORIZATION"))));
        builder_add_text(&endpoint->answer, "}");
    }
    endpoint_compose(endpoint, fault, &form);
    (void)fcgi_answer(request, builder_bytes(&endpoint->head), builder_bytes(&endpoint->answer));
    if (endpoint->body.size)
        explicit_bzero(endpoint->body.data, endpoint->body.size);
    arena_reset(endpoint->arena);
    builder_clear(&endpoint->body, BODY_MAX);
    builder_clear(&endpoint->answer, BODY_MAX);
    builder_clear(&endpoint->head, BODY_MAX);
}

void endpoint_serve(struct endpoint *endpoint)
{
    struct fcgi_request *request;
    for (int i = 0; i < REQUESTS_AT_ONCE && fcgi_wait(endpoint->fcgi, 0, &request) == FCGI_EVENT_REQUEST; i++)
        serve(endpoint, request);
}
