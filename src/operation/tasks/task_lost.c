/* task_lost: why an attempt is lost, and when its task is tried again. */
#include "operation/tasks/task_lost.h"

#include <string.h>

#include "base/crash.h"
#include "base/log.h"
#include "model/task/worker_queues.h"
#include "segment/counts/backlog.h"
#include "segment/counts/losses.h"
#include "segment/counts/metrics.h"
#include "segment/counts/task_counts.h"
#include "operation/registry.h"
#include "operation/tasks/task_retry.h"

enum { OVERDUE_MOST = 100 };

/* The text for the history and the administrators; the word is that of the scan's answer. */
static const struct cause {
    const char *word, *words;
} causes[] = {
    [LOSS_UNKNOWN] = {"unknown", "Nobody works at it any more."},
    [LOSS_CRASH] = {"crash", "Its worker crashed."},
    [LOSS_KILLED] = {"killed",
                     "Its worker was killed from outside: by an administrator, or by the kernel for "
                     "want of memory."},
    [LOSS_TIME] = {"time", "It exceeded its time limit, and its worker was killed."},
    [LOSS_STOP] = {"stop", "The server was stopped before it had ended."},
    [LOSS_EXIT] = {"exit", "Its worker ended by itself; the log says why."},
    [LOSS_OUTCOME] = {"outcome", "Whether its commit has happened could not be determined."},
    [LOSS_UNRECORDED] = {"unrecorded",
                         "The attempt ended, but the database could not be reached to record how."},
};
static const struct cause cause_former = {"restart", "The server ended while it ran."};
static const struct cause cause_claim = {"claim", "Its external worker has not extended the claim."};
static const struct cause cause_foreign = {"foreign", "Nobody works at it any more, on another host."};

static const struct cause *cause_of(const struct task_loss *loss)
{
    if (loss->is_claim)
        return &cause_claim;
    if (loss->is_foreign)
        return &cause_foreign;
    return loss->is_former ? &cause_former : &causes[loss->loss.cause];
}

const char *task_lost_word(const struct task_loss *loss)
{
    return cause_of(loss)->word;
}

struct bytes task_lost_report(struct arena *arena, const struct lost_task *lost)
{
    const struct loss *loss = &lost->loss.loss;
    struct bytes holder = lost->held->holder;
    const char *detail = "";
    if (loss->cause == LOSS_CRASH)
        detail = arena_printf(arena, " Signal %u (%s).", loss->detail, strsignal((int)loss->detail));
    else if (loss->cause == LOSS_EXIT)
        detail = arena_printf(arena, " Status %u.", loss->detail);
    return bytes_of(arena_printf(arena, "%s%s It was held by %.*s.", cause_of(&lost->loss)->words, detail,
                                 (int)holder.size, holder.data));
}

/* An operation that is never retried may have had effects outside the database.  The first loss is rarely the
 * task's own fault, unless its time was over: the task keeps its place and starts again at once. */
static int64_t start_after_loss(const struct settings *settings, const struct worker_queues *workers,
                                const struct lost_task *lost)
{
    const struct task *task = &lost->held->task;
    const struct operation *operation = registry_find(task->operation);
    if (lost->loss.loss.is_final || (operation && operation->task.is_never_retried))
        return TASK_PARKED;
    if (task->attempt || lost->loss.loss.cause == LOSS_TIME)
        return task_retry_start(settings, workers, task->operation, task->attempt + 1);
    return task->start;
}

/* Does the loss count?  Not if the task only shared the request of another, or was to be continued. */
bool task_lost_counts(const struct task_loss *loss)
{
    return loss->was_begun && loss->loss.is_failure;
}

enum fault task_lost_put_back(struct worker_context *worker_context, const struct call *call, int ns,
                              struct lost_task *lost)
{
    struct arena *arena = call->arena;
    const struct task *task = &lost->held->task;
    const struct task_fence fence = {.id = task->id, .claim = task->claim, .attempt = task->attempt};
    bool counts = task_lost_counts(&lost->loss);
    const struct task_end end = {
        .start = counts ? start_after_loss(worker_context->settings, call->workers, lost) : task->start,
        .is_failure = counts,
        .code = counts ? BYTES("LOST") : BYTES("MORE"),
        .report = task_lost_report(arena, lost),
    };
    crash_at(CRASH_TASK_LOST);
    enum fault fault = store_tasks_put_back(documents_store(worker_context->documents), ns, arena, &fence,
                                            &end, &lost->start);
    if (fault || !lost->start)
        return fault;
    log_warning("task lost id=%.*s operation=%.*s why=%s holder=%.*s%s", (int)task->id.size, task->id.data,
                (int)task->operation.size, task->operation.data, cause_of(&lost->loss)->word,
                (int)lost->held->holder.size, lost->held->holder.data, counts ? "" : ": it had not begun");
    if (lost->loss.is_claim)
        task_counts_add_external(worker_context->segment, call->ns, task->queue, EXTERNAL_COUNT_EXPIRED, 1);
    if (worker_queues_is(task->queue))
        backlog_offer(backlog_of(worker_context->segment, ns));
    return FAULT_NONE;
}

bool task_lost_is(struct worker_context *worker_context, const struct held_task *held,
                  struct task_loss *loss_r)
{
    if (!held->until)
        return task_owner_is_lost(worker_context->settings, worker_context->segment, held->holder,
                                  held->task.claim, held->task.id, loss_r);
    *loss_r = (struct task_loss){.loss = {.is_failure = true}, .was_begun = true, .is_claim = true};
    return held->until <= stamp_now();
}

enum fault task_lost_overdue(struct worker_context *worker_context, const struct call *call, int ns,
                             int queue)
{
    struct held_task *tasks;
    size_t count;
    struct pulse *pulse = metrics_pulse(worker_context->segment, segment_index(worker_context->segment));
    enum fault fault = store_tasks_overdue(documents_store(worker_context->documents), ns, call->arena, queue,
                                           OVERDUE_MOST, &tasks, &count);
    uint64_t changes = atomic_load(&pulse->may_have_changed);
    for (size_t i = 0; !fault && i < count; i++) {
        struct lost_task lost = {.held = &tasks[i]};
        if (!task_lost_is(worker_context, &tasks[i], &lost.loss))
            continue;
        fault = task_lost_put_back(worker_context, call, ns, &lost);
        pulse_count(&pulse->tasks_lost, !fault && lost.start);
        if (fault == FAULT_XUNKNOWN) /* it waits, or is found by the next look */
            fault = FAULT_NONE;
    }
    atomic_store(&pulse->may_have_changed, changes); /* upkeep: none of what the request is for */
    return fault;
}
