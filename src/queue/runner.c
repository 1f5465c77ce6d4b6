/* runner: sends the requests to the server, and handles their answers (tasks.md). */
#include "queue/runner.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/document/stamp.h"
#include "edge/json/json.h"
#include "queue/alert.h"

enum {
    SCAN_LIMIT = 5000, /* most tasks of a queue that a scan returns */
    SCAN_TIMEOUT_MS = 60000,
    UNREPORTED_LIMIT = 100,
    RUN_GRACE_S = 25, /* beyond limit_task_s, nginx's own included */
    EARLY_MS = 1000,  /* this host's clock is ahead: until the next try */
    BUSY_MS = 100,
    BATCH_MAX = 1000,
    ALONG_MAX = 32,    /* tasks of one request, each with a commit of its own */
    ALONG_US = 100000, /* what they may take together, by their estimates */
    QUICK_US = 500000, /* tasks up to this may take the last place of a queue */
    ANSWER_DEPTH = 16,
    STATUS_GONE = 410,
    STATUS_UNAVAILABLE = 503,
};

/* A request in progress. */
struct queue_request {
    struct queue_request *next, *previous; /* in the list of all */
    bool is_scan, is_note;                 /* is_note: it reports mails to administrators */
    int ns;
    int64_t before_ms;          /* of a scan */
    int64_t begun_us, guess_us; /* of a run whose tasks have commits of their own */
    struct builder body;
    size_t count;
    struct agenda_task *tasks[]; /* of a run: the first one holds the place */
};

static struct queue_request *create_pending(struct manager *manager, int ns, size_t room)
{
    struct queue_request *pending =
        memory_zeroed(1, sizeof *pending + room * sizeof(struct agenda_task *), "runner");
    pending->ns = ns;
    pending->next = manager->pending_requests;
    if (pending->next)
        pending->next->previous = pending;
    manager->pending_requests = pending;
    return pending;
}

static void destroy_pending(struct manager *manager, struct queue_request *pending)
{
    if (pending->next)
        pending->next->previous = pending->previous;
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        manager->pending_requests = pending->next;
    builder_free(&pending->body);
    free(pending);
}

static void runner_send(struct manager *manager, struct queue_request *pending, const char *id,
                        struct bytes body, int64_t timeout_ms)
{
    const struct queue_namespace *ns = &manager->namespaces[pending->ns];
    struct http_request request = {
        .method = "POST",
        .url = arena_printf(manager->arena, "%s/%s/od%s%s", manager->settings->queue_url, ns->code,
                            id ? "/" : "", id ? id : ""),
        .content_type = "application/json",
        .body = body,
        .timeout_ms = timeout_ms,
        .owner = pending,
    };
    http_send(manager->http, &request);
}

/* --- requests --- */

static int64_t run_timeout_ms(const struct manager *manager)
{
    return (manager->settings->limit_task_s + RUN_GRACE_S) * 1000;
}

static void runner_run(struct manager *manager, struct queue_request *pending)
{
    if (pending->count == 1 && (pending->tasks[0]->batch <= 1 || *pending->tasks[0]->domain)) {
        runner_send(manager, pending, pending->tasks[0]->id, builder_bytes(&manager->key_body),
                    run_timeout_ms(manager));
        return;
    }
    json_add_text(&pending->body, "{\"key\":", manager->key);
    builder_add_text(&pending->body, ",\"param\":{\"run\":[");
    for (size_t i = 0; i < pending->count; i++)
        builder_printf(&pending->body, "%s\"%s\"", i ? "," : "", pending->tasks[i]->id);
    builder_add_text(&pending->body, "]}}");
    runner_send(manager, pending, NULL, builder_bytes(&pending->body), run_timeout_ms(manager));
}

/* Runs tasks that share a commit. */
static void run_batch(struct manager *manager, struct agenda_task *first, int64_t now_ms)
{
    size_t room = (size_t)(first->batch < BATCH_MAX ? first->batch : BATCH_MAX);
    struct queue_request *pending = create_pending(manager, first->ns, room);
    pending->tasks[pending->count++] = first;
    for (struct agenda_task *task;
         pending->count < room && (task = agenda_see_along(manager->agenda, first, now_ms)) != NULL;
         pending->tasks[pending->count++] = task)
        agenda_take_along(manager->agenda, task);
    runner_run(manager, pending);
}

static int64_t guess_us(const struct manager *manager, const struct agenda_task *task)
{
    return latency_estimate_us(&manager->latency_estimate, task->ns, task->operation);
}

bool runner_is_quick(void *context, const struct agenda_task *task)
{
    return guess_us(context, task) <= QUICK_US;
}

/* Runs one task; if more wait than there are places, runs its share of them while they are quick. */
static void run_with_commits(struct manager *manager, struct agenda_task *first, int64_t now_ms)
{
    size_t share = agenda_share(manager->agenda, first);
    size_t room = share < ALONG_MAX ? share : ALONG_MAX;
    struct queue_request *pending = create_pending(manager, first->ns, room);
    pending->begun_us = clock_monotonic_us();
    pending->guess_us = guess_us(manager, first);
    pending->tasks[pending->count++] = first;
    for (struct agenda_task *task;
         pending->count < room && (task = agenda_see_along(manager->agenda, first, now_ms)) != NULL &&
         pending->guess_us + guess_us(manager, task) <= ALONG_US;
         pending->tasks[pending->count++] = task) {
        pending->guess_us += guess_us(manager, task);
        agenda_take_along(manager->agenda, task);
    }
    runner_run(manager, pending);
}

void runner_start_due(struct manager *manager)
{
    int64_t now_ms = clock_wall_ms();
    for (struct agenda_task *task; (task = agenda_take(manager->agenda, now_ms)) != NULL;) {
        log_debug("start namespace=%s task=%s operation=%s retry=%d", manager->namespaces[task->ns].code,
                  task->id, task->operation, task->retry);
        if (task->batch > 1 && !*task->domain)
            run_batch(manager, task, now_ms);
        else
            run_with_commits(manager, task, now_ms);
    }
}

void runner_scan(struct manager *manager, int ns, int64_t before_ms)
{
    struct queue_request *pending = create_pending(manager, ns, 0);
    pending->is_scan = true;
    pending->before_ms = before_ms;
    json_add_text(&pending->body, "{\"key\":", manager->key);
    builder_printf(&pending->body, ",\"param\":{\"scan\":{\"before\":%lld,\"limit\":%d",
                   (long long)stamp_from_epoch_ms(before_ms), SCAN_LIMIT);
    if (*manager->settings->mail_to)
        builder_printf(&pending->body, ",\"unreported\":%d,\"failures\":%lld", UNREPORTED_LIMIT,
                       (long long)manager->settings->mail_failures);
    builder_add_text(&pending->body, "}}}");
    manager->scans++;
    agenda_begin_scan(manager->agenda, ns);
    runner_send(manager, pending, NULL, builder_bytes(&pending->body), SCAN_TIMEOUT_MS);
}

/* --- answers --- */

static const struct json *read_answer(struct manager *manager, struct bytes body)
{
    struct json *root;
    return json_is_tree(manager->arena, body, ANSWER_DEPTH, ANSWER_DEPTH, &root) ? root : NULL;
}

static int small(int64_t number, int most)
{
    return number < 0 ? 0 : number > most ? most : (int)number;
}

static bool is_id(struct bytes id)
{
    if (id.size < 1 || id.size > AGENDA_ID_MAX)
        return false;
    for (size_t i = 0; i < id.size; i++)
        if (!(id.data[i] >= 'a' && id.data[i] <= 'z') && !(id.data[i] >= '0' && id.data[i] <= '9'))
            return false;
    return true;
}

bool runner_read_row(int ns, const struct json *row, struct agenda_entry *entry_r)
{
    *entry_r = (struct agenda_entry){
        .ns = ns,
        .id = json_text_of(row, "id", NO_BYTES),
        .operation = json_text_of(row, "op", NO_BYTES),
        .domain = json_text_of(row, "domain", NO_BYTES),
        .start_ms = stamp_to_epoch_ms(json_i64_of(row, "startat", STAMP_MIN)),
        .queue = small(json_i64_of(row, "qn", 0), AGENDA_QUEUES - 1),
        .priority = small(json_i64_of(row, "priority", 20), 255),
        .retry = small(json_i64_of(row, "retry", 0), INT32_MAX),
        .batch = small(json_i64_of(row, "batch", 1), BATCH_MAX),
    };
    return is_id(entry_r->id);
}

/* Adds a row to the agenda if its start is near; false: not a valid row. */
static bool runner_note(struct manager *manager, int ns, const struct json *row)
{
    struct agenda_entry entry;
    int64_t horizon_ms = clock_wall_ms() + 2 * manager->settings->task_wakeup_s * 1000;
    if (!runner_read_row(ns, row, &entry))
        return false;
    if (entry.start_ms <= horizon_ms && !agenda_put(manager->agenda, &entry))
        manager->namespaces[ns].was_cut = true;
    return true;
}

/* Adds the same task again at another time; after a failure, the answer contains the time. */
static void again(struct manager *manager, const struct agenda_task *task, const struct json *member,
                  int64_t start_ms)
{
    struct agenda_entry entry = {.ns = task->ns,
                                 .id = bytes_of(task->id),
                                 .operation = bytes_of(task->operation),
                                 .domain = bytes_of(task->domain),
                                 .start_ms = start_ms,
                                 .queue = task->queue,
                                 .priority = task->priority,
                                 .retry = small(json_i64_of(member, "retry", task->retry), INT32_MAX),
                                 .batch = task->batch};
    if (start_ms <= clock_wall_ms() + 2 * manager->settings->task_wakeup_s * 1000)
        (void)agenda_put(manager->agenda, &entry); /* it is still running: there is room */
}

static void failed(struct manager *manager, const struct agenda_task *task, const struct json *member,
                   const struct json *answer)
{
    const struct json *exception = json_member(member, "message") ? member : answer;
    struct alert_cause cause = {
        .ns = manager->namespaces[task->ns].code,
        .task = task->id,
        .operation = bytes_of(task->operation),
        .code = json_text_of(member, "code", NO_BYTES),
        .words = json_text_of(exception, "message", NO_BYTES),
        .detail = json_text_of(exception, "detail", NO_BYTES),
        .failures = json_i64_of(member, "retry", 0),
        .startat = json_i64_of(member, "startat", 0), /* 0: it could not be put back, a scan will return it */
    };
    log_info("failed namespace=%s task=%s operation=%s code=%.*s failures=%lld", cause.ns, cause.task,
             task->operation, (int)cause.code.size, cause.code.data ? cause.code.data : "",
             (long long)cause.failures);
    alert_report(manager->alert, &cause, false);
    if (cause.startat && cause.startat < STAMP_MAX)
        again(manager, task, member, stamp_to_epoch_ms(cause.startat));
}

/* Is this start of the task known to be finished? */
static bool runner_judge(struct manager *manager, const struct agenda_task *task, const struct json *member,
                         const struct json *answer)
{
    struct bytes result = json_text_of(member, "result", NO_BYTES);
    int64_t now_ms = clock_wall_ms();
    int64_t start_ms = stamp_to_epoch_ms(json_i64_of(member, "startat", STAMP_MAX));
    if (bytes_equal(result, BYTES("failed")))
        failed(manager, task, member, answer);
    else if (bytes_equal(result, BYTES("more")))
        again(manager, task, member, start_ms);
    else if (bytes_equal(result, BYTES("waiting")))
        again(manager, task, member, start_ms > now_ms + EARLY_MS ? start_ms : now_ms + EARLY_MS);
    else if (bytes_equal(result, BYTES("busy")))
        again(manager, task, member, now_ms + BUSY_MS);
    return bytes_equal(result, BYTES("done")) || bytes_equal(result, BYTES("gone"));
}

static const struct json *runner_find_member(const struct json *tasks, const char *id)
{
    for (const struct json *member = tasks ? tasks->first : NULL; member; member = member->next)
        if (bytes_equal(json_text_of(member, "id", NO_BYTES), bytes_of(id)))
            return member;
    return NULL;
}

/* Members are in the order of the request. */
static const struct json *next_member(const struct json *tasks, const struct json *expected, const char *id)
{
    return expected && bytes_equal(json_text_of(expected, "id", NO_BYTES), bytes_of(id))
               ? expected
               : runner_find_member(tasks, id);
}

/* Were all attempted?  Refused tasks are no measure of how long tasks take. */
static bool were_attempts(const struct json *tasks)
{
    for (const struct json *member = tasks->first; member; member = member->next) {
        struct bytes result = json_text_of(member, "result", NO_BYTES);
        if (!bytes_equal(result, BYTES("done")) && !bytes_equal(result, BYTES("failed")) &&
            !bytes_equal(result, BYTES("more")))
            return false;
    }
    return true;
}

/* `tasks`: from the answer; NULL: there was none. */
static void learn_latency_estimate(struct manager *manager, const struct queue_request *pending,
                                   const struct json *tasks)
{
    if (!pending->guess_us || (tasks && !were_attempts(tasks)))
        return;
    int64_t took_us = tasks ? clock_monotonic_us() - pending->begun_us : LATENCY_UNKNOWN_US;
    const char **operations = ARENA_ARRAY(manager->arena, const char *, pending->count);
    for (size_t i = 0; i < pending->count; i++)
        operations[i] = pending->tasks[i]->operation;
    latency_estimate_learn(&manager->latency_estimate, pending->ns, operations, pending->count,
                           pending->guess_us, took_us);
}

/* The fault by which the server refuses to run tasks of the namespace at present; NO_BYTES: it does not. */
static struct bytes find_stop(struct manager *manager, const struct http_result *result)
{
    if (result->status != STATUS_UNAVAILABLE && result->status != STATUS_GONE)
        return NO_BYTES;
    struct bytes code = json_text_of(read_answer(manager, result->body), "code", NO_BYTES);
    enum fault_remedy remedy =
        fault_remedy_of_code(arena_copy(manager->arena, code.data ? code.data : "", code.size));
    return remedy == REMEDY_HELD || remedy == REMEDY_OVER ? code : NO_BYTES;
}

/* May a task of the domain wait that the manager does not know, and no answer names?  Not after an attempt,
 * which looks for the next in its commit, unless tasks were dropped meanwhile: one of them may have been
 * created after that look.  After any other answer another task may go first, or nothing of the domain run.
 */
static bool has_unknown_follower(const struct agenda_task *task, const struct json *member)
{
    struct bytes result = json_text_of(member, "result", NO_BYTES);
    const struct json *next = json_member(member, "next");
    int64_t next_ms = stamp_to_epoch_ms(json_i64_of(next, "startat", STAMP_MAX));
    bool is_attempt = bytes_equal(result, BYTES("done")) || bytes_equal(result, BYTES("more")) ||
                      (bytes_equal(result, BYTES("failed")) && json_member(member, "startat"));
    return *task->domain && (!is_attempt || (task->has_followers && next_ms > clock_wall_ms()));
}

static void end_run(struct manager *manager, struct queue_request *pending, const struct http_result *result)
{
    bool is_answered = result->status == 200 || result->status == 500;
    const struct json *answer = is_answered ? read_answer(manager, result->body) : NULL;
    const struct json *tasks = json_member(answer, "tasks"), *expected = tasks ? tasks->first : NULL;
    struct bytes stop = find_stop(manager, result);
    if (!stop.data)
        learn_latency_estimate(manager, pending, tasks);
    for (size_t i = 0; i < pending->count; i++) {
        struct agenda_task *task = pending->tasks[i];
        const struct json *member = next_member(tasks, expected, task->id);
        bool is_over = member && runner_judge(manager, task, member, answer);
        if (member && has_unknown_follower(task, member))
            manager_namespaces_want_scan(manager, pending->ns);
        if (member)
            expected = member->next;
        agenda_end(manager->agenda, task, i == 0, is_over);
    }
    for (const struct json *member = tasks ? tasks->first : NULL; member; member = member->next)
        (void)runner_note(manager, pending->ns, json_member(member, "next"));
    if (stop.data)
        manager_namespaces_wait(manager, pending->ns, stop);
    else if (!tasks)
        manager_namespaces_rest(manager, pending->ns, "running a task", result);
}

/* --- the end of a scan --- */

static void report_lost(struct manager *manager, int ns, const struct json *lost)
{
    for (const struct json *row = lost ? lost->first : NULL; row; row = row->next) {
        struct bytes id = json_text_of(row, "id", NO_BYTES);
        if (!is_id(id))
            continue;
        struct alert_cause cause = {
            .ns = manager->namespaces[ns].code,
            .task = arena_copy(manager->arena, id.data, id.size),
            .operation = json_text_of(row, "op", NO_BYTES),
            .code = BYTES("LOST"),
            .words = json_text_of(row, "report", NO_BYTES),
            .failures = json_i64_of(row, "retry", 0),
            .startat = json_i64_of(row, "startat", STAMP_MAX),
        };
        log_info("lost namespace=%s task=%s", cause.ns, cause.task);
        alert_report(manager->alert, &cause, false);
    }
}

/* Queues mails for failures not reported yet, by this manager or another, now or before its start. */
static void report_failures(struct manager *manager, int ns, const struct json *unreported)
{
    for (const struct json *row = unreported ? unreported->first : NULL; row; row = row->next) {
        struct bytes id = json_text_of(row, "id", NO_BYTES);
        struct alert_cause cause = {
            .ns = manager->namespaces[ns].code,
            .operation = json_text_of(row, "op", NO_BYTES),
            .code = json_text_of(row, "code", NO_BYTES),
            .words = json_text_of(row, "report", NO_BYTES),
            .failures = json_i64_of(row, "retry", 0),
            .startat = json_i64_of(row, "startat", 0),
        };
        if (!is_id(id))
            continue;
        cause.task = arena_copy(manager->arena, id.data, id.size);
        alert_report(manager->alert, &cause, true);
    }
}

/* Counts what wake-ups and answers should have brought since the scan before. */
static void count_overlooked(struct manager *manager, int ns, const struct json *due)
{
    struct agenda_entry entry;
    int64_t now_ms = clock_wall_ms();
    for (const struct json *row = due->first; row; row = row->next)
        if (runner_read_row(ns, row, &entry) && agenda_is_overlooked(manager->agenda, &entry, now_ms)) {
            log_info("overlooked namespace=%s task=%.*s", manager->namespaces[ns].code, (int)entry.id.size,
                     entry.id.data);
            manager->overlooked++;
        }
}

static void take_due(struct manager *manager, int number, const struct json *due, int64_t before_ms)
{
    struct queue_namespace *ns = &manager->namespaces[number];
    int received[AGENDA_QUEUES] = {0};
    if (ns->is_known && !ns->was_cut)
        count_overlooked(manager, number, due);
    ns->was_cut = false;
    for (const struct json *row = due->first; row; row = row->next)
        if (runner_note(manager, number, row) &&
            ++received[small(json_i64_of(row, "qn", 0), AGENDA_QUEUES - 1)] >= SCAN_LIMIT)
            ns->was_cut = true;
    ns->is_known = !ns->was_cut;
    if (ns->is_known)
        agenda_end_scan(manager->agenda, number, before_ms);
}

static void end_scan(struct manager *manager, struct queue_request *pending, const struct http_result *result)
{
    struct queue_namespace *ns = &manager->namespaces[pending->ns];
    const struct json *answer = result->status == 200 ? read_answer(manager, result->body) : NULL;
    const struct json *due = json_member(answer, "due");
    manager->scans--;
    ns->is_scanning = false;
    if (!ns->is_ours)
        return;
    struct bytes stop = find_stop(manager, result);
    if (stop.data) {
        manager_namespaces_wait(manager, pending->ns, stop);
        return;
    }
    if (!due || due->kind != JSON_ARRAY) {
        manager_namespaces_rest(manager, pending->ns, "scan", result);
        return;
    }
    if (ns->failures)
        log_info("namespace=%s answers again", ns->code);
    if (ns->is_stopped)
        log_info("namespace=%s runs tasks again", ns->code);
    ns->failures = 0;
    ns->is_stopped = false;
    take_due(manager, pending->ns, due, pending->before_ms);
    report_lost(manager, pending->ns, json_member(answer, "lost"));
    report_failures(manager, pending->ns, json_member(answer, "unreported"));
    if (ns->is_wanted)
        manager_namespaces_want_scan(manager, pending->ns);
}

/* Reports to the server that a failure was mailed. */
static void send_reported(void *context, const struct alert_cause *cause)
{
    struct manager *manager = context;
    int ns = manager_namespaces_find(manager, bytes_of(cause->ns));
    if (ns < 0 || http_is_full(manager->http))
        return;
    struct queue_request *pending = create_pending(manager, ns, 0);
    pending->is_note = true;
    json_add_text(&pending->body, "{\"key\":", manager->key);
    builder_printf(&pending->body, ",\"param\":{\"reported\":[{\"id\":\"%s\",\"retry\":%lld}]}}", cause->task,
                   (long long)cause->failures);
    runner_send(manager, pending, NULL, builder_bytes(&pending->body), SCAN_TIMEOUT_MS);
}

void runner_end(struct manager *manager, const struct http_result *result)
{
    struct queue_request *pending = result->owner;
    if (!pending) {
        alert_end(manager->alert, result, send_reported, manager);
        return;
    }
    if (pending->is_note)
        ; /* if it is lost, the failure is mailed once more */
    else if (pending->is_scan)
        end_scan(manager, pending, result);
    else
        end_run(manager, pending, result);
    destroy_pending(manager, pending);
}

void runner_drop_all(struct manager *manager)
{
    while (manager->pending_requests)
        destroy_pending(manager, manager->pending_requests);
}
