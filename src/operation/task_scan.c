/* task_scan: lost attempts first, then periodic tasks, so that they are among what is due. */
#include "operation/task_scan.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "document/store_tasks.h"
#include "operation/hint.h"
#include "operation/reader.h"
#include "operation/task_backlog.h"
#include "operation/task_cron.h"
#include "operation/task_holder.h"
#include "operation/task_run.h"

enum { LIMIT_STANDARD = 1000, LIMIT_MOST = 10000, PURGE_BATCH = 1000, PURGE_MS = 500 };

struct scan {
    struct workshop *workshop;
    struct call *call;
    int space;
    struct store *store;
    struct arena *arena;
    struct builder *out;
};

/* --- lost attempts --- */

/* The first loss of a task is rarely its own fault: it starts again at once. */
static int64_t start_after_loss(const struct scan *scan, const struct task *task)
{
    return task->attempt ? task_retry_start(scan->workshop->settings, task->attempt + 1) : stamp_now();
}

static enum fault give_up(const struct scan *scan, const struct held_task *held, int64_t *start_r)
{
    const struct task *task = &held->task;
    const struct task_fence fence = {.id = task->id, .claim = task->claim, .attempt = task->attempt};
    const struct task_end end = {
        .start = start_after_loss(scan, task),
        .is_failure = true,
        .code = BYTES("LOST"),
        .report = bytes_of(arena_printf(scan->arena, "Nobody works at it any more; it was held by %.*s.",
                                        (int)held->holder.size, held->holder.data)),
    };
    crash_at(CRASH_TASK_LOST);
    enum fault fault = store_put_task_back(scan->store, scan->space, scan->arena, &fence, &end, start_r);
    if (!fault && *start_r)
        log_warning("task lost id=%.*s operation=%.*s holder=%.*s", (int)task->id.size, task->id.data,
                    (int)task->operation.size, task->operation.data, (int)held->holder.size,
                    held->holder.data);
    return fault;
}

static void add_running(struct builder *out, const struct task *task)
{
    builder_add_text(out, "{\"id\":");
    json_add_string(out, task->id);
    builder_add_text(out, ",\"op\":");
    json_add_string(out, task->operation);
    builder_printf(out, ",\"qn\":%d,\"starttime\":%" PRId64 "}", task->queue, task->claim);
}

/* Writes the lists `running` and `lost`. */
static enum fault sort_running(const struct scan *scan, uint64_t *lost_r)
{
    struct held_task *tasks;
    size_t count;
    struct builder lost = {0};
    enum fault fault = store_running_tasks(scan->store, scan->space, scan->arena, &tasks, &count);
    if (fault)
        return fault;
    builder_add_text(scan->out, "\"running\":[");
    size_t empty = scan->out->size;
    for (size_t i = 0; i < count && !fault; i++) {
        int64_t start = 0;
        if (!task_holder_is_lost(scan->workshop->settings, scan->workshop->stamps, tasks[i].holder,
                                 tasks[i].task.claim)) {
            if (scan->out->size > empty)
                builder_add_text(scan->out, ",");
            add_running(scan->out, &tasks[i].task);
            continue;
        }
        fault = give_up(scan, &tasks[i], &start);
        if (fault || !start)
            continue;
        builder_add_bytes(&lost, lost.size ? BYTES(",{\"id\":") : BYTES("{\"id\":"));
        json_add_string(&lost, tasks[i].task.id);
        builder_printf(&lost, ",\"startat\":%" PRId64 "}", start);
        ++*lost_r;
    }
    builder_add_text(scan->out, "],\"lost\":[");
    builder_add_bytes(scan->out, builder_bytes(&lost));
    builder_add_text(scan->out, "]");
    builder_free(&lost);
    return fault;
}

/* --- what is due, what is forgotten --- */

static enum fault list_due(const struct scan *scan, int64_t limit, int64_t before)
{
    struct task *tasks;
    size_t count;
    enum fault fault = store_due_tasks(scan->store, scan->space, scan->arena, limit, before, &tasks, &count);
    if (fault)
        return fault;
    builder_add_text(scan->out, ",\"due\":[");
    for (size_t i = 0; i < count; i++) {
        builder_add_bytes(scan->out, i ? BYTES(",{") : BYTES("{"));
        hint_add_members(scan->out, &tasks[i]);
        builder_add_text(scan->out, "}");
    }
    builder_add_text(scan->out, "]");
    return FAULT_NONE;
}

/* In small pieces, and not for long: the next scan goes on. */
static enum fault purge(const struct scan *scan)
{
    int64_t before = stamp_add_ms(stamp_now(), -1000 * scan->workshop->settings->task_history_s);
    int64_t until_ms = clock_monotonic_ms() + PURGE_MS, count = 0, purged = 0;
    enum fault fault;
    do {
        fault = store_purge_history(scan->store, scan->space, scan->arena, before, PURGE_BATCH, &count);
        purged += count;
    } while (!fault && count == PURGE_BATCH && clock_monotonic_ms() < until_ms);
    builder_printf(scan->out, ",\"purged\":%" PRId64, purged);
    return fault;
}

/* Periodic tasks that cannot be planned just now, because somebody has their rules locked, are planned by a
 * later scan: what is due does not wait for them. */
static enum fault follow_rules(const struct scan *scan)
{
    enum fault fault = task_cron(scan->workshop, scan->call, scan->space);
    if (!fault || fault == FAULT_XAWAY)
        return fault;
    log_warning("periodic tasks are not planned code=%s", fault_code(fault));
    return FAULT_NONE;
}

enum fault task_scan(struct workshop *workshop, struct call *call, struct reply *reply, int space)
{
    const struct reader reader = {workshop->settings, call, reply};
    const struct json *wish = json_member(call->param, "scan");
    struct scan scan = {workshop,    call,       space, documents_store(workshop->documents),
                        call->arena, reply->body};
    struct pulse *pulse = stamps_pulse(workshop->stamps, stamps_index(workshop->stamps));
    int64_t now = stamp_now(), limit, before;
    uint64_t lost = 0;
    if (wish->kind != JSON_OBJECT)
        return reader_wrong(&reader, "scan", "An object is expected.");
    enum fault fault = reader_integer(&reader, wish, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    if (!fault)
        fault = reader_integer(&reader, wish, "before", STAMP_MIN, STAMP_MAX, now, &before);
    if (fault)
        return fault;
    builder_printf(scan.out, "{\"t\":%" PRId64 ",", now);
    fault = sort_running(&scan, &lost);
    pulse_count(&pulse->tasks_lost, lost);
    if (!fault)
        fault = follow_rules(&scan);
    if (!fault)
        fault = list_due(&scan, limit, before);
    if (!fault)
        fault = purge(&scan);
    if (!fault)
        task_backlog_look(workshop, call, space);
    builder_add_text(scan.out, "}");
    return fault;
}
