/* worker: the loop over requests.
 *
 * A request ends in this order: answer, counters, arena, request id, buffers, pulse; then signals are
 * checked.  So everything that a request opened is released before the next one, and the master can read the
 * age of the current one. */
#include "serve/worker.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "blob/blob_store.h"
#include "blob/object_stores.h"
#include "blob/thumbnailer.h"
#include "edge/crypto/crypto.h"
#include "edge/fcgi.h"
#include "http/cors.h"
#include "http/path.h"
#include "http/public_reads.h"
#include "http/request.h"
#include "http/response.h"
#include "operation/access/audited.h"
#include "operation/access/configurations.h"
#include "operation/access/verified_tokens.h"
#include "operation/collections/collection.h"
#include "operation/collections/collection_kept.h"
#include "operation/module/module.h"
#include "operation/reply.h"
#include "segment/counts/losses.h"
#include "segment/counts/metrics.h"
#include "segment/counts/refusals.h"
#include "segment/counts/request_counts.h"
#include "segment/segment_open.h"
#include "serve/home.h"
#include "serve/in_flight.h"
#include "serve/memory.h"
#include "serve/metrics/latency.h"
#include "serve/metrics/probe.h"
#include "serve/metrics/sampler.h"
#include "serve/route.h"
#include "serve/slow.h"
#include "serve/tracing/tracing.h"
#include "store/session.h"

/* Answers a request whose worker ended before it answered: why, and whether anything may have been
 * done.  It states only what is certain (protocol.md, "Faults"). */

enum { STATUS_LOST = 502, STATUS_STOPPING = 503, STATUS_LATE = 504 };

static const char *outcome_of(const struct fate *fate)
{
    return fate->is_unchanged ? "Nothing was changed." : "It may or may not have been done.";
}

/* Records XCRASH, XTIME, OSTOPPING or XUNKNOWN in the reply, with its status.  The phase is "work" if nothing
 * was changed, else unknown. */
static void lost_explain(struct call *call, struct reply *reply, const struct fate *fate)
{
    const char *detail = outcome_of(fate);
    switch (fate->cause) {
    case LOSS_CRASH:
    case LOSS_EXIT:
    case LOSS_KILLED:
        (void)reply_fault(call, reply, FAULT_XCRASH, detail, fate->in_application ? "application" : "server",
                          NULL);
        reply->fault_status = STATUS_LOST;
        break;
    case LOSS_TIME:
        (void)reply_fault(call, reply, FAULT_XTIME, detail, NULL);
        reply->fault_status = STATUS_LATE;
        break;
    case LOSS_STOP:
        (void)reply_fault(call, reply, FAULT_OSTOPPING, detail, NULL);
        reply->fault_status = STATUS_STOPPING;
        break;
    case LOSS_UNKNOWN:
    case LOSS_OUTCOME:
    case LOSS_UNRECORDED:
    default:
        (void)reply_fault(call, reply, FAULT_XUNKNOWN, detail, NULL);
        reply->fault_status = STATUS_LOST;
    }
    reply->phase = fate->is_unchanged ? PHASE_WORK : PHASE_UNKNOWN;
}

enum {
    REST_MS = 1000,         /* between two checks for outdated resources */
    IO_TIMEOUT_MS = 10000,  /* nginx buffers the whole body and the whole answer: both are quick */
    LAST_MS = 2000,         /* for requests that had arrived when the drain ended */
    BODY_KEEP = 256 * 1024, /* largest buffer kept for the next request */
    HEAD_KEEP = 4 * 1024,
    UPLOAD_BYTES = 256 * 1024, /* of the file of an attachment, at once */
    STATUS_IN_DOUBT = 3,
    RETIREMENT_MS = 5000, /* by then the master has detected that a worker is dead, even on a busy machine */
    RETIREMENT_STEP_MS = 5,
};

struct worker {
    const struct heritage *heritage;
    const struct settings *settings;
    struct fcgi *fcgi;
    struct worker_context worker_context;
    int64_t since_us; /* of the request: its arrival */
    struct object_stores *object_stores;
    struct arena *arena;                /* of the request */
    struct builder input, output, head; /* of the request, kept */
    struct streaming {
        struct outlet outlet;
        struct worker *worker;
        struct fcgi_request *fcgi;
        struct request *request;
    } streaming; /* of the request */
    struct upload {
        struct inlet inlet;
        struct worker *worker;
        struct fcgi_request *fcgi;
        char *room; /* of UPLOAD_BYTES, made at the first upload */
    } upload;       /* of the request */
    struct pulse *pulse;
    uint64_t requests, recycle_at;   /* recycle_at 0: never */
    int64_t rest_at_ms, leave_at_ms; /* leave_at_ms 0: not draining */
    struct public_read public_read;  /* of the request */
    uint64_t form;                   /* of answers for nginx; 0: none are put there */
    bool is_timing;                  /* setting server_timing, or slow_ms */
    bool is_tracing;                 /* some requests are traced */
    bool must_leave, is_recycled;    /* is_recycled: it has requested its replacement */
};

static bool is_stopping(void)
{
    return stop_requested() != STOP_NOT;
}

/* A number near the setting, chosen at random, so that the workers are not all replaced at once. */
static uint64_t choose_recycling(int64_t requests)
{
    uint32_t random;
    if (!requests)
        return 0;
    crypto_random(&random, sizeof random);
    int64_t tenth = requests / 10;
    return (uint64_t)(requests - tenth + (int64_t)random % (2 * tenth + 1));
}

/* NULL: there are none, or the file cannot be read; what does not need them goes on. */
static struct object_stores *open_object_stores(const struct settings *settings)
{
    char problem[400];
    struct object_stores *stores =
        *settings->object_stores_file
            ? object_stores_open(settings->object_stores_file, problem, sizeof problem)
            : NULL;
    if (!stores && *settings->object_stores_file)
        log_often(LOG_LEVEL_ERROR, "object stores", "attachments: %s", problem);
    return stores;
}

static bool is_wanted(const struct worker_context *context, int wait_ms)
{
    const struct worker *worker =
        (const struct worker *)((const char *)context - offsetof(struct worker, worker_context));
    struct pollfd events = {.fd = fcgi_descriptor(worker->fcgi), .events = POLLIN};
    return poll(&events, 1, wait_ms) != 0;
}

static bool is_thumbnail_process(const struct heritage *heritage)
{
    return heritage->position == heritage->settings->workers;
}

static void open_worker(struct worker *worker, int wake)
{
    const struct heritage *heritage = worker->heritage;
    worker->settings = heritage->settings;
    worker->pulse = metrics_pulse(heritage->segment, heritage->index);
    worker->is_timing = heritage->settings->server_timing || heritage->settings->slow_ms;
    worker->is_tracing = tracing_open(heritage->settings);
    worker->form = public_reads_form(heritage->settings);
    worker->arena = arena_create("request");
    worker->object_stores = open_object_stores(heritage->settings);
    worker->worker_context = (struct worker_context){
        .settings = heritage->settings,
        .segment = heritage->segment,
        .documents = documents_create(heritage->settings, heritage->segment),
        .configurations = configurations_create(),
        .verified_tokens = verified_tokens_create(),
        .unchanged = collection_unchanged_create(),
        .kept_streams = collection_kept_create(heritage->settings),
        .blobs =
            blob_store_open(heritage->settings->blob_directory, identity_socket_group(heritage->settings)),
        .object_stores = worker->object_stores,
        .decodes =
            is_thumbnail_process(heritage) || !thumbnailer_is_there(heritage->settings->thumbnail_program),
        .instance = heritage->instance,
        .is_wanted = is_wanted,
        .write_metrics = probe_write_metrics,
        .write_activity = sampler_write,
    };
    worker->recycle_at = choose_recycling(heritage->settings->recycle_requests);
    worker->fcgi = fcgi_open(
        &(struct fcgi_options){.listener = heritage->listener, .wake = wake, .io_timeout_ms = IO_TIMEOUT_MS});
}

static void close_worker(struct worker *worker)
{
    fcgi_close(worker->fcgi);
    verified_tokens_destroy(worker->worker_context.verified_tokens);
    collection_unchanged_destroy(worker->worker_context.unchanged);
    collection_kept_destroy(worker->worker_context.kept_streams);
    configurations_destroy(worker->worker_context.configurations);
    documents_destroy(worker->worker_context.documents);
    blob_store_close(worker->worker_context.blobs);
    object_stores_close(worker->object_stores);
    free(worker->upload.room);
    arena_destroy(worker->arena);
    builder_free(&worker->input);
    builder_free(&worker->output);
    builder_free(&worker->head);
}

/* --- one request --- */

static void run_call(struct worker *worker, struct request *request, struct reply *reply)
{
    switch (request->call.route) {
    case CALL_LIVE:
    case CALL_READY:
    case CALL_METRICS:
        reply->status = probe_answer(&worker->worker_context, &request->call, reply);
        break;
    case CALL_OPTIONS:
        reply->status = 204;
        break;
    case CALL_MAY:
        reply->status = 204;
        break;
    default:
        route_run(&worker->worker_context, &request->call, reply);
    }
}

/* --- an answer in pieces --- */

static void prepare_stream(struct outlet *outlet)
{
    struct streaming *streaming = (struct streaming *)outlet;
    struct request *request = streaming->request;
    cors_decide(&streaming->worker->worker_context, &request->call, request->origin, &request->form);
}

static bool worker_send_piece(struct outlet *outlet, struct reply *reply, struct bytes piece)
{
    struct streaming *streaming = (struct streaming *)outlet;
    struct builder *head = &streaming->worker->head;
    head->size = 0;
    if (!outlet->is_open) {
        outlet->is_open = true;
        response_compose(&streaming->request->form, reply, head);
    }
    return fcgi_send(streaming->fcgi, streaming->request->call.deadline_ms, builder_bytes(head),
                     outlet->is_head ? NO_BYTES : piece);
}

/* Sends the rest of the answer; false: it was not sent. */
static bool send_answer(struct worker *worker, struct fcgi_request *fcgi, struct request *request,
                        struct reply *reply)
{
    if (reply->fault == FAULT_ELSEWHERE && !worker->streaming.outlet.is_open)
        return fcgi_answer(fcgi, reply->is_for_decoder ? BYTES(THUMBNAILS_HANDOVER) : BYTES(HOME_HANDOVER),
                           NO_BYTES);
    if (!worker->streaming.outlet.is_open) {
        cors_decide(&worker->worker_context, &request->call, request->origin, &request->form);
        response_compose(&request->form, reply, &worker->head);
        crash_at(CRASH_REPLY_COMPOSED);
        if (worker->public_read.form)
            public_reads_publish(&worker->public_read, worker->heritage->segment, request,
                                 path_query(fcgi_parameter(fcgi, BYTES("REQUEST_URI"))), reply);
        return fcgi_answer(fcgi, builder_bytes(&worker->head), response_body(&request->form, reply));
    }
    if (!reply->fault)
        return fcgi_answer(fcgi, NO_BYTES, NO_BYTES);
    log_info("response aborted mid-stream code=%s", reply_code(reply));
    fcgi_abandon(fcgi);
    return false;
}

static void recycle(struct worker *worker)
{
    if (!worker->is_recycled)
        heritage_notify(worker->heritage, MESSAGE_RECYCLE);
    worker->is_recycled = true;
}

static void end_request(struct worker *worker)
{
    size_t used = arena_used(worker->arena) + worker->input.size + worker->output.size;
    arena_reset(worker->arena);
    log_set_request_id(NULL);
    builder_clear(&worker->input, BODY_KEEP);
    builder_clear(&worker->output, BODY_KEEP);
    builder_clear(&worker->head, HEAD_KEEP);
    memory_return(used);
    atomic_store(&worker->pulse->request_since_ms, 0);
    if (documents_must_exit(worker->worker_context.documents)) {
        /* Its marks stay and its entry is in doubt, for the recovery process.  Nothing is closed cleanly. */
        log_error("outcome of a commit still unknown, the worker exits");
        _exit(STATUS_IN_DOUBT);
    }
    if (worker->recycle_at && ++worker->requests >= worker->recycle_at)
        recycle(worker);
}

/* False: it is a redelivery, and another worker may have begun the request. */
static bool begin_request(struct worker *worker, const struct fcgi_request *fcgi)
{
    const struct heritage *heritage = worker->heritage;
    struct redelivery redelivery = {.token = fcgi_parameter(fcgi, BYTES("STAMPD_TOKEN")),
                                    .answered = fcgi_parameter(fcgi, BYTES("STAMPD_ANSWERED")),
                                    .age = fcgi_parameter(fcgi, BYTES("STAMPD_AGE"))};
    if (fcgi_parameter(fcgi, BYTES("STAMPD_DECLINED")).size)
        in_flight_forget_first(&redelivery);
    worker->since_us = clock_monotonic_us();
    int64_t now_ms = worker->since_us / 1000;
    bool may_begin = in_flight_start(heritage->in_flight, heritage->index, &redelivery, now_ms);
    in_flight_name(heritage->in_flight, heritage->index, fcgi_parameter(fcgi, BYTES("STAMPD_REQUEST_ID")));
    if (in_flight_is_again(&redelivery))
        log_info("a request whose worker is gone %s", may_begin
                                                          ? "had not been begun: it is done now"
                                                          : "may have been begun: it is not done again");
    atomic_store(&worker->pulse->may_have_changed, 0);
    atomic_store(&worker->pulse->request_since_ms, now_ms);
    return may_begin;
}

/* Is the request here because the workers of its home are busy?  It is declined at most once, and never at a
 * redelivery. */
static bool is_visitor(const struct worker *worker, const struct fcgi_request *fcgi)
{
    struct bytes home = fcgi_parameter(fcgi, BYTES("STAMPD_HOME")); /* absent if there are few namespaces */
    return !home_has(home, worker->heritage->position, worker->settings->workers) &&
           !fcgi_parameter(fcgi, BYTES("STAMPD_DECLINED")).size &&
           !fcgi_parameter(fcgi, BYTES("STAMPD_ANSWERED")).size;
}

/* Each piece is progress: the master measures the time of a request from the last one. */
static enum fault read_upload(struct inlet *inlet, struct bytes *piece_r)
{
    struct upload *upload = (struct upload *)inlet;
    size_t size;
    if (!upload->room)
        upload->room = memory_grown(NULL, 1, UPLOAD_BYTES, "upload");
    enum fault fault = fcgi_read_piece(upload->fcgi, upload->room, UPLOAD_BYTES, &size);
    atomic_store(&upload->worker->pulse->request_since_ms, clock_monotonic_ms());
    *piece_r = (struct bytes){upload->room, size};
    return fault;
}

static enum fault admit(void *context, struct call *call, struct reply *reply)
{
    struct worker *worker = context;
    log_set_request_id(call->request_id);
    call->is_visitor = is_visitor(worker, worker->streaming.fcgi);
    if (worker->form)
        public_reads_see(&worker->public_read, &worker->worker_context, call, worker->form);
    return route_admit(&worker->worker_context, call, reply);
}

/* The request was begun before, and its worker is gone: answers with its fate. */
static void answer_lost(struct worker *worker, const struct fcgi_request *fcgi, struct request *request,
                        struct reply *reply)
{
    const struct in_flight *in_flight = worker->heritage->in_flight;
    struct bytes token = fcgi_parameter(fcgi, BYTES("STAMPD_TOKEN"));
    int64_t until_ms = clock_monotonic_ms() + RETIREMENT_MS;
    struct fate fate;
    while (in_flight_find(in_flight, token, &fate) == FATE_LATER && clock_monotonic_ms() < until_ms)
        clock_sleep_ms(RETIREMENT_STEP_MS);
    lost_explain(&request->call, reply, &fate);
}

static void worker_count(const struct worker *worker, const struct call *call, const struct reply *reply,
                         bool is_refused)
{
    struct segment *segment = worker->heritage->segment;
    struct bytes ns, what;
    if (reply->fault == FAULT_ELSEWHERE)
        return;
    pulse_count(&worker->pulse->database_us, (uint64_t)pg_get_waits()->us);
    route_name(call, reply, is_refused, &ns, &what);
    request_counts_add(segment, ns, what, reply->fault ? reply_code(reply) : NULL);
    if (!reply->fault)
        return;
    pulse_count(&worker->pulse->faults, 1);
    refusals_count(segment, reply->fault, reply->argument_count ? reply->arguments[0] : NULL);
}

static void serve_request(struct worker *worker, struct fcgi_request *fcgi)
{
    const struct heritage *heritage = worker->heritage;
    bool may_begin = begin_request(worker, fcgi);
    struct request request;
    struct request_source source = request_from_fcgi(fcgi);
    source.admit = admit;
    source.admit_context = worker;
    worker->upload = (struct upload){
        .inlet = {.read = read_upload}, .worker = worker, .fcgi = fcgi, .room = worker->upload.room};
    source.inlet = &worker->upload.inlet;
    bool is_traced = worker->is_tracing && tracing_begin(fcgi_parameter(fcgi, BYTES("REQUEST_METHOD")),
                                                         fcgi_parameter(fcgi, BYTES("HTTP_TRACEPARENT")));
    bool is_timed = worker->is_timing || is_traced;
    struct timing timing = {.since_us = is_timed ? clock_monotonic_us() : 0,
                            .is_shown = worker->settings->server_timing};
    pg_get_waits()->us = 0;
    if (worker->settings->slow_ms)
        slow_begin();
    worker->streaming = (struct streaming){.outlet = {.prepare = prepare_stream, .send = worker_send_piece},
                                           .worker = worker,
                                           .fcgi = fcgi,
                                           .request = &request};
    struct reply reply = {
        .body = &worker->output, .timing = is_timed ? &timing : NULL, .outlet = &worker->streaming.outlet};
    worker->public_read.form = 0;
    pulse_count(&worker->pulse->requests, 1);
    atomic_store(&worker->pulse->limit_ms, 0);
    enum fault refusal =
        request_read(worker->settings, worker->arena, &source, &worker->input, &request, &reply);
    if (!refusal) {
        log_set_request_id(request.call.request_id);
        request.call.is_visitor = is_visitor(worker, fcgi);
        if (is_traced)
            tracing_join(&request.call);
        if (worker->public_read.form)
            public_reads_see_document(&worker->public_read, &worker->worker_context, &request.call);
        worker->streaming.outlet.is_head = request.form.is_head;
        if (request.call.route == CALL_TASKS) {
            atomic_store(&worker->pulse->limit_ms, worker->settings->limit_task_s * 1000);
            atomic_store(&worker->pulse->may_have_changed, 1); /* claims are made at once */
        } else if (request.call.route == CALL_ATTACHMENT ||
                   request.call.route == CALL_UPLOAD) { /* a large file takes long to become durable */
            atomic_store(&worker->pulse->limit_ms, worker->settings->limit_task_s * 1000);
        }
    }
    if (!may_begin) /* also in place of a refusal, which would say that nothing was done */
        answer_lost(worker, fcgi, &request, &reply);
    else if (!refusal)
        run_call(worker, &request, &reply);
    const struct call *call = &request.call;
    worker_count(worker, call, &reply, refusal != FAULT_NONE);
    audited_note(worker->settings, call, &reply);
    request.form.has_credentials =
        call->admin.size || call->key.size || call->account.size || call->caller.account.size;
    if (worker->is_tracing && spans_get()->is_on)
        tracing_name(call, &reply, refusal != FAULT_NONE);
    if (send_answer(worker, fcgi, &request, &reply)) {
        in_flight_end(heritage->in_flight, heritage->index);
    } else if (fcgi_has_left(worker->fcgi)) {
        log_debug("the client has disconnected");
        in_flight_leave(heritage->in_flight, heritage->index);
    } else {
        log_debug("the answer could not be sent");
        const struct fate fate = {.is_unchanged = !atomic_load(&worker->pulse->may_have_changed)};
        in_flight_retire(heritage->in_flight, heritage->index, &fate, clock_monotonic_ms());
    }
    if (call->route == CALL_OPERATION || call->route == CALL_DOCUMENT)
        latency_count(worker->pulse, clock_monotonic_us() - worker->since_us);
    if (worker->settings->slow_ms && !refusal)
        slow_note(worker->settings, worker->pulse, call, &reply);
    if (worker->is_tracing && spans_get()->is_on)
        tracing_end(heritage->segment, &request, &reply, worker->since_us);
    crash_at(CRASH_REPLY_SENT);
    end_request(worker);
}

/* --- the loop --- */

static void worker_heed_signals(struct worker *worker)
{
    enum stop stop = stop_requested();
    if (stop == STOP_NOT)
        return;
    fcgi_stop_listening(worker->fcgi);
    if (stop == STOP_NOW)
        worker->must_leave = true;
    else if (!worker->leave_at_ms)
        worker->leave_at_ms = clock_monotonic_ms() + worker->settings->drain_s * 1000;
}

static void check_clock(struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms >= worker->rest_at_ms) {
        struct documents *documents = worker->worker_context.documents;
        struct store *replica = documents_replica(documents);
        documents_rest(documents);
        bool has_closed = replica && store_rest(replica);
        if (store_rest(documents_store(documents)) || has_closed)
            memory_trim();
        if (!worker->is_recycled && memory_is_grown(worker->settings)) {
            log_info("worker keeps too much memory, replacing it");
            recycle(worker);
        }
        log_flush(now_ms);
        worker->rest_at_ms = now_ms + REST_MS;
    }
    if (worker->leave_at_ms && now_ms >= worker->leave_at_ms)
        worker->must_leave = true;
}

static int64_t time_to_wait(const struct worker *worker)
{
    int64_t next_ms = worker->rest_at_ms, now_ms = clock_monotonic_ms();
    if (worker->leave_at_ms && worker->leave_at_ms < next_ms)
        next_ms = worker->leave_at_ms;
    return next_ms > now_ms ? next_ms - now_ms : 0;
}

static void serve_until_stopped(struct worker *worker)
{
    struct fcgi_request *request;
    while (!worker->must_leave) {
        switch (fcgi_wait(worker->fcgi, time_to_wait(worker), &request)) {
        case FCGI_EVENT_REQUEST:
            serve_request(worker, request);
            break;
        case FCGI_EVENT_WAKE:
            worker_heed_signals(worker);
            break;
        case FCGI_EVENT_IDLE:
            break;
        case FCGI_EVENT_END:
            return;
        }
        check_clock(worker);
    }
}

/* Answers requests that have already arrived, so that no client finds its connection closed after a
 * request. */
static void serve_the_last(struct worker *worker)
{
    struct fcgi_request *request;
    int64_t until_ms = clock_monotonic_ms() + LAST_MS;
    enum fcgi_event event;
    while ((event = fcgi_wait(worker->fcgi, 0, &request)) != FCGI_EVENT_IDLE && event != FCGI_EVENT_END) {
        if (event == FCGI_EVENT_REQUEST)
            serve_request(worker, request);
        else
            stop_requested();
        if (clock_monotonic_ms() >= until_ms)
            return;
    }
}

int worker_run(const struct heritage *heritage)
{
    struct worker worker = {.heritage = heritage};
    int wake = stop_open();
    if (is_thumbnail_process(heritage))
        (void)prctl(PR_SET_NAME, "stampd-thumbs"); /* for administrators */
    segment_join(heritage->segment, heritage->index);
    /* The entry of a new worker is FREE; if it names a database anyway, it is repaired before anything is
     * served. */
    if (!session_recover(heritage->settings, heritage->segment, is_stopping))
        return 0;
    memory_limit(heritage->settings);
    open_worker(&worker, wake);
    if (!module_start_worker(heritage->settings, heritage->segment)) {
        close_worker(&worker);
        return 1;
    }
    heritage_notify(heritage, MESSAGE_READY);
    serve_until_stopped(&worker);
    serve_the_last(&worker);
    if (fcgi_connections(worker.fcgi))
        log_info("worker exits with open connections=%zu", fcgi_connections(worker.fcgi));
    module_stop_worker();
    close_worker(&worker);
    log_flush(INT64_MAX);
    return 0;
}

int worker_recover(const struct heritage *heritage)
{
    stop_open();
    segment_join(heritage->segment, heritage->index);
    return session_recover(heritage->settings, heritage->segment, is_stopping) ? 0 : 1;
}
