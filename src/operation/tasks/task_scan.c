/* task_scan: handles lost attempts first, then periodic tasks, so that they are among what is due. */
#include "operation/tasks/task_scan.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/schedule.h"
#include "model/document/stamp.h"
#include "model/document/thumbnails.h"
#include "model/task/cron.h"
#include "operation/call.h"
#include "operation/reader.h"
#include "operation/registry.h"
#include "operation/reply.h"
#include "operation/tasks/task_external.h"
#include "operation/tasks/task_issuers.h"
#include "operation/tasks/task_lost.h"
#include "operation/tasks/task_request.h"
#include "operation/tasks/task_sweep.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/worker_context.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"
#include "store/blobs/store_thumbnails.h"
#include "store/collections/store_subscriptions.h"
#include "store/tasks/store_cron.h"
#include "store/tasks/store_tasks.h"
#include "store/tasks/task_rows.h"

/* --- the sweep of thumbnails --- */

/* Creates the task that finds images without thumbnails (attachments/thumbnailsweep.c): once
 * a day, after each change of the applied schema, after an import, and as long as a sweep is not over.  The
 * database decides, since the schema that this process has cached may be an older one. */

enum { WAITING_MOST = 100 /* while so many documents wait for thumbnails, no more are looked for */ };

/* For a scan. */
static enum fault task_thumbnails(struct worker_context *worker_context, struct call *call, int ns)
{
    bool is_due = false;
    enum fault fault = store_thumbnails_due(documents_store(worker_context->documents), ns, call->arena,
                                            WAITING_MOST, &is_due);
    return fault || !is_due ? fault : task_request_own(worker_context, call, ns, BYTES(THUMBNAILS_SWEEP));
}

/* --- periodic tasks --- */

/* Periodic tasks: what modules declare, and the start of each rule's task (tasks.md).  Rules of modules, and
 * the next time of each rule. */

/* All that the modules of this server declare. */
static size_t task_cron_collect(struct arena *arena, struct cron_declaration **declarations_r)
{
    size_t all = 0, count = 0;
    while (registry_get_added(all))
        all++;
    *declarations_r = ARENA_ARRAY(arena, struct cron_declaration, all);
    for (size_t i = 0; i < all; i++) {
        const struct operation *operation = registry_get_added(i);
        if (operation->task.period)
            (*declarations_r)[count++] =
                (struct cron_declaration){bytes_of(operation->name), bytes_of(operation->task.period),
                                          bytes_of(operation->task.module)};
    }
    return count;
}

/* Arguments of the server's own tasks may have secrets: the names of sessions, tickets of mails. */
static bool is_kept(const struct operation *operation)
{
    return !operation->task.is_internal && strcmp(operation->name, PUSH_OPERATION) != 0;
}

/* Those of the server, of its modules and of external workers, for task_create in SQL. */
static enum fault declare(struct worker_context *worker_context, struct arena *arena, int ns,
                          const struct worker_queues *workers)
{
    const struct settings *settings = worker_context->settings;
    size_t all = 0;
    while (registry_get(all))
        all++;
    struct task_declaration *declarations =
        ARENA_ARRAY(arena, struct task_declaration, all + worker_queues_operations(workers));
    for (size_t i = 0; i < all; i++) {
        const struct operation *operation = registry_get(i);
        struct bytes name = bytes_of(operation->name);
        declarations[i] = (struct task_declaration){
            .operation = name,
            .queue = schedule_queue(settings->task_queues, name, operation->task.queue),
            .batch = operation->task.batch ? operation->task.batch : 1,
            .kept_bytes = is_kept(operation) ? (int32_t)settings->task_history_param_bytes : 0,
        };
    }
    for (size_t i = 0; workers && i < workers->count; i++) {
        const struct json *names = workers->queues[i].operations;
        for (const struct json *name = names ? names->first : NULL; name; name = name->next)
            if (!registry_find(name->value))
                declarations[all++] =
                    (struct task_declaration){.operation = name->value,
                                              .queue = workers->queues[i].number,
                                              .batch = 1,
                                              .kept_bytes = (int32_t)settings->task_history_param_bytes};
    }
    return store_tasks_declare(documents_store(worker_context->documents), ns, arena, declarations, all,
                               settings->limit_task_param_bytes);
}

static int find_queue(const struct settings *settings, const struct call *call, struct bytes name)
{
    const struct operation *operation = task_external_find(call, name);
    if (operation && operation->task.is_external)
        return operation->task.queue;
    return schedule_queue(settings->task_queues, name, operation ? operation->task.queue : 0);
}

static enum fault task_cron_plan(struct worker_context *worker_context, const struct call *call, int ns,
                                 const struct cron_rule *rule)
{
    struct cron cron;
    bool is_made = false;
    if (!cron_parse(rule->period, &cron)) {
        log_error("periodic task name=%.*s: invalid period", (int)rule->name.size, rule->name.data);
        return FAULT_NONE;
    }
    int64_t next = stamp_from_epoch_ms(cron_next_ms(&cron, stamp_to_epoch_ms(rule->after)));
    int queue = find_queue(worker_context->settings, call, rule->operation);
    enum fault fault = store_cron_plan(documents_store(worker_context->documents), ns, call->arena, rule,
                                       next, queue, &is_made);
    if (is_made)
        log_info("periodic task planned name=%.*s start=%lld", (int)rule->name.size, rule->name.data,
                 (long long)next);
    return fault;
}

/* Part of a scan: creates the tasks of rules that have none, and moves those of rules that have changed.  In
 * the namespace z modules declare nothing. */
static enum fault task_cron(struct worker_context *worker_context, const struct call *call, int ns)
{
    struct cron_declaration *declarations;
    struct cron_rule *rules;
    size_t count = task_cron_collect(call->arena, &declarations);
    if (bytes_equal(call->ns, BYTES("z")))
        count = 0;
    enum fault fault = FAULT_FIRST(store_cron_scan(documents_store(worker_context->documents), ns,
                                                   call->arena, declarations, count, &rules, &count),
                                   declare(worker_context, call->arena, ns, call->workers));
    for (size_t i = 0; !fault && i < count; i++)
        fault = task_cron_plan(worker_context, call, ns, &rules[i]);
    return fault;
}

/* --- counts of waiting tasks --- */

/* Counts the tasks of a namespace for the metrics, after scans.  One statement, into shared memory. */

enum { ROWS_MOST = 10000, FRESH_MS = 1000 };

/* Counts for the call's namespace, unless that has just been done.  Reads a bounded number of rows, however
 * many tasks there are.  Without the database the last counts stay, and age. */
static void task_backlog_look(struct worker_context *worker_context, struct call *call, int ns)
{
    struct backlog *backlog = backlog_of(worker_context->segment, ns);
    struct backlog_numbers numbers[BACKLOG_QUEUES] = {0};
    int64_t now_ms = clock_monotonic_ms(), age_ms = backlog_age_ms(backlog, now_ms);
    struct pg_result *rows;
    if ((age_ms >= 0 && age_ms < FRESH_MS) || call->ns.size > BACKLOG_CODE_BYTES)
        return;
    enum fault fault =
        store_tasks_administer(documents_store(worker_context->documents), ns, STATEMENT_TASK_BACKLOG,
                               PG_PARAMS(call->arena, PG_I32(ROWS_MOST)), &rows);
    if (fault) {
        log_debug("tasks are not counted code=%s", fault_code(fault));
        return;
    }
    for (int row = 0; row < pg_rows(rows); row++) {
        int64_t queue = pg_get_i64(rows, row, BACKLOG_QUEUE);
        if (queue < 0 || queue >= BACKLOG_QUEUES)
            continue; /* the table was edited by hand */
        numbers[queue] = (struct backlog_numbers){
            .due = pg_get_i64(rows, row, BACKLOG_DUE),
            .later = pg_get_i64(rows, row, BACKLOG_LATER),
            .running = pg_get_i64(rows, row, BACKLOG_RUNNING),
            .parked = pg_get_i64(rows, row, BACKLOG_PARKED),
            .failing = pg_get_i64(rows, row, BACKLOG_FAILING),
            .oldest = pg_get_i64(rows, row, BACKLOG_OLDEST),
        };
    }
    backlog_write(backlog, call->ns, numbers, now_ms);
}

/* --- the scan --- */

enum {
    LIMIT_STANDARD = 1000,
    LIMIT_MOST = 10000,
    UNREPORTED_MOST = 1000,
    PURGE_BATCH = 1000,
    PURGE_MS = 500,
    DAY_MS = 86400000
};

struct task_scan {
    struct worker_context *worker_context;
    struct call *call;
    int ns;
    struct store *store;
    struct arena *arena;
    struct builder *out;
};

/* --- lost attempts --- */

static void add_lost(const struct task_scan *scan, struct builder *out, const struct lost_task *lost)
{
    const struct task *task = &lost->held->task;
    builder_add_bytes(out, out->size ? BYTES(",{\"id\":") : BYTES("{\"id\":"));
    json_add_string(out, task->id);
    json_add_text(out, ",\"op\":", task->operation);
    builder_printf(out,
                   ",\"startat\":%" PRId64 ",\"retry\":%" PRId64 ",\"why\":\"%s\",\"report\":", lost->start,
                   task->attempt + 1, task_lost_word(&lost->loss));
    json_add_string(out, task_lost_report(scan->arena, lost));
    builder_add_text(out, "}");
}

static void add_running(struct builder *out, const struct task *task)
{
    json_add_text(out, "{\"id\":", task->id);
    json_add_text(out, ",\"op\":", task->operation);
    builder_printf(out, ",\"qn\":%d,\"starttime\":%" PRId64 "}", task->queue, task->claim);
}

/* A task that is running or lost. */
static enum fault task_scan_judge(const struct task_scan *scan, const struct held_task *held,
                                  struct builder *lost_list, bool *is_first, uint64_t *lost_r)
{
    struct lost_task lost = {.held = held};
    if (!task_lost_is(scan->worker_context, held, &lost.loss)) {
        if (!*is_first)
            builder_add_text(scan->out, ",");
        *is_first = false;
        add_running(scan->out, &held->task);
        return FAULT_NONE;
    }
    enum fault fault = task_lost_put_back(scan->worker_context, scan->call, scan->ns, &lost);
    if (fault || !lost.start || !task_lost_counts(&lost.loss))
        return fault;
    add_lost(scan, lost_list, &lost);
    ++*lost_r;
    return FAULT_NONE;
}

/* Writes the lists `running` and `lost`. */
static enum fault sort_running(const struct task_scan *scan, uint64_t *lost_r)
{
    struct held_task *tasks;
    size_t count;
    struct builder lost = {0};
    bool is_first = true;
    enum fault fault = store_tasks_running(scan->store, scan->ns, scan->arena, &tasks, &count);
    if (fault)
        return fault;
    builder_add_text(scan->out, "\"running\":[");
    for (size_t i = 0; i < count && !fault; i++)
        fault = task_scan_judge(scan, &tasks[i], &lost, &is_first, lost_r);
    builder_add_text(scan->out, "],\"lost\":[");
    builder_add_bytes(scan->out, builder_bytes(&lost));
    builder_add_text(scan->out, "]");
    builder_free(&lost);
    return fault;
}

/* --- what is due, what is forgotten --- */

static enum fault list_due(const struct task_scan *scan, int64_t limit, int64_t before)
{
    struct task *tasks;
    size_t count;
    struct backlog *backlog = backlog_of(scan->worker_context->segment, scan->ns);
    const struct backlog_scan begun = backlog_begin_scan(backlog, clock_monotonic_ms());
    struct backlog_bound bound;
    enum fault fault =
        store_tasks_due(scan->store, scan->ns, scan->arena, limit, before, &begun, &tasks, &count);
    if (!fault)
        fault = store_tasks_oldest(scan->store, scan->ns, scan->arena, &begun, &bound);
    if (fault)
        return fault;
    backlog_end_scan(backlog, &begun, &bound);
    builder_add_text(scan->out, ",\"due\":[");
    for (size_t i = 0; i < count; i++) {
        builder_add_bytes(scan->out, i ? BYTES(",{") : BYTES("{"));
        task_wakeup_add_members(scan->out, &tasks[i]);
        builder_add_text(scan->out, "}");
    }
    builder_add_text(scan->out, "]");
    return FAULT_NONE;
}

/* Failures not yet reported, for a manager that sends mails. */
static enum fault list_unreported(const struct task_scan *scan, int64_t most, int64_t failures)
{
    struct failed_task *tasks;
    size_t count;
    if (!most)
        return FAULT_NONE;
    enum fault fault =
        store_tasks_unreported(scan->store, scan->ns, scan->arena, failures, most, &tasks, &count);
    if (fault)
        return fault;
    builder_add_text(scan->out, ",\"unreported\":[");
    for (size_t i = 0; i < count; i++) {
        const struct failed_task *task = &tasks[i];
        const struct {
            const char *name;
            struct bytes text;
        } members[] = {{"\"op\":", task->operation},
                       {"\"info\":", task->info},
                       {"\"code\":", task->code},
                       {"\"report\":", task->report}};
        builder_printf(scan->out, "%s{\"retry\":%" PRId64 ",\"startat\":%" PRId64 ",\"id\":", i ? "," : "",
                       task->failures, task->start);
        json_add_string(scan->out, task->id);
        for (size_t k = 0; k < COUNT_OF(members); k++) {
            builder_printf(scan->out, ",%s", members[k].name);
            json_add_string(scan->out, members[k].text.data ? members[k].text : BYTES(""));
        }
        builder_add_text(scan->out, "}");
    }
    builder_add_text(scan->out, "]");
    return FAULT_NONE;
}

/* Deletes parked tasks that have expired. */
static enum fault expire(const struct task_scan *scan)
{
    int64_t days = scan->worker_context->settings->task_parked_days, count = 0;
    if (!days)
        return FAULT_NONE;
    int64_t before = stamp_add_ms(stamp_now(), -days * DAY_MS);
    enum fault fault = store_tasks_expire(scan->store, scan->ns, scan->arena, before, PURGE_BATCH, &count);
    if (count)
        log_warning("parked tasks have expired namespace=%.*s count=%" PRId64, (int)scan->call->ns.size,
                    scan->call->ns.data, count);
    atomic_fetch_add(&backlog_of(scan->worker_context->segment, scan->ns)->expired, (uint64_t)count);
    return fault;
}

/* In small batches, and not for long: the next scan continues. */
static enum fault purge(const struct task_scan *scan)
{
    int64_t before = stamp_add_ms(stamp_now(), -1000 * scan->worker_context->settings->task_history_s);
    int64_t until_ms = clock_monotonic_ms() + PURGE_MS, count = 0, purged = 0;
    enum fault fault;
    do {
        fault = store_tasks_purge_history(scan->store, scan->ns, scan->arena, before, PURGE_BATCH, &count);
        purged += count;
    } while (!fault && count == PURGE_BATCH && clock_monotonic_ms() < until_ms);
    builder_printf(scan->out, ",\"purged\":%" PRId64, purged);
    return fault;
}

/* Periodic tasks that cannot be planned at present, because their rules are locked, are planned by a later
 * scan: what is due does not wait for them. */
static enum fault follow_rules(const struct task_scan *scan)
{
    enum fault fault = FAULT_FIRST(task_cron(scan->worker_context, scan->call, scan->ns),
                                   task_issuers(scan->worker_context, scan->call, scan->ns),
                                   task_sweep(scan->worker_context, scan->call, scan->ns),
                                   task_thumbnails(scan->worker_context, scan->call, scan->ns));
    if (!fault || fault == FAULT_XAWAY)
        return fault;
    log_warning("periodic tasks are not planned code=%s", fault_code(fault));
    return FAULT_NONE;
}

enum fault task_scan(struct worker_context *worker_context, struct call *call, struct reply *reply, int ns)
{
    const struct reader reader = {worker_context->settings, call, reply};
    const struct json *param = json_member(call->param, "scan");
    struct task_scan scan = {worker_context, call,       ns, documents_store(worker_context->documents),
                             call->arena,    reply->body};
    struct pulse *pulse = metrics_pulse(worker_context->segment, segment_index(worker_context->segment));
    int64_t now = stamp_now(), limit, before, unreported, failures;
    uint64_t lost = 0;
    if (param->kind != JSON_OBJECT)
        return reader_wrong_value(&reader, param, "scan", "An object is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(&reader, param, "limit before unreported failures"),
                    reader_integer(&reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit),
                    reader_integer(&reader, param, "before", STAMP_MIN, STAMP_MAX, now, &before),
                    reader_integer(&reader, param, "unreported", 0, UNREPORTED_MOST, 0, &unreported),
                    reader_integer(&reader, param, "failures", 1, INT32_MAX, INT32_MAX, &failures));
    if (fault)
        return fault;
    builder_printf(scan.out, "{\"t\":%" PRId64 ",", now);
    fault = sort_running(&scan, &lost);
    pulse_count(&pulse->tasks_lost, lost);
    if (!fault)
        fault = list_unreported(&scan, unreported, failures); /* before a rule moves its parked task */
    if (!fault)
        fault = FAULT_FIRST(expire(&scan), follow_rules(&scan), list_due(&scan, limit, before), purge(&scan));
    if (!fault)
        task_backlog_look(worker_context, call, ns);
    builder_add_text(scan.out, "}");
    return fault;
}
