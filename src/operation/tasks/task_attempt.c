/* task_attempt: attempts that fail, are interrupted or end unknown; the task is put back. */
#include "operation/tasks/task_attempt.h"

#include <inttypes.h>

#include "base/crash.h"
#include "base/log.h"
#include "segment/counts/losses.h"
#include "model/task/worker_queues.h"
#include "operation/tasks/task_owner.h"
#include "operation/tasks/task_result.h"
#include "operation/tasks/task_retry.h"
#include "operation/tasks/task_wakeup.h"

struct task_attempt *task_attempt_of(struct attempt *attempt)
{
    return (struct task_attempt *)((char *)attempt - offsetof(struct task_attempt, attempt));
}

struct store *task_attempt_store(const struct task_run *run)
{
    return documents_store(run->worker_context->documents);
}

void task_attempt_end(struct task_attempt *work, const char *result)
{
    work->outcome->result = result;
    work->is_over = true;
}

void task_attempt_set_next(const struct task_run *run, struct task_attempt *work, const struct task *next)
{
    bool is_external = next->id.data && worker_queues_is(next->queue);
    work->outcome->next = is_external ? (struct task){0} : *next;
    if (is_external)
        task_wakeup_tasks(run->worker_context, run->ns, run->call->ns, next, 1);
}

static void find_next(const struct task_run *run, struct task_attempt *work)
{
    struct task next;
    if (work->task->domain.data &&
        !store_tasks_next(task_attempt_store(run), run->ns, run->call->arena, work->task->domain, &next))
        task_attempt_set_next(run, work, &next);
}

static void put_back(const struct task_run *run, struct task_attempt *work, const struct task_end *how,
                     const char *result)
{
    struct task_outcome *outcome = work->outcome;
    crash_at(CRASH_TASK_FAILED);
    enum fault fault = store_tasks_put_back(task_attempt_store(run), run->ns, run->call->arena, &work->fence,
                                            how, &outcome->start);
    crash_at(CRASH_TASK_PUT_BACK);
    if (fault)
        task_owner_note(run->worker_context->segment, work->fence.claim, work->task->id,
                        &(struct loss){.cause = LOSS_UNRECORDED,
                                       .is_final = how->start == TASK_PARKED,
                                       .is_failure = how->is_failure});
    if (fault)
        log_error("task id=%.*s cannot be put back code=%s: it will be found lost", (int)work->task->id.size,
                  work->task->id.data, fault_code(fault));
    else if (!outcome->start)
        return task_attempt_end(work, "late");
    outcome->attempt = work->task->attempt + how->is_failure;
    task_attempt_end(work, result);
    if (fault)
        return;
    struct task waiting = *work->task;
    waiting.start = outcome->start;
    waiting.attempt = outcome->attempt;
    task_wakeup_tasks(run->worker_context, run->ns, run->call->ns, &waiting, 1);
    find_next(run, work);
}

/* When a failed attempt is repeated: as the settings define, but not sooner than the operation wants. */
static int64_t next_start(const struct task_run *run, const struct task_attempt *work)
{
    int64_t start = task_retry_start(run->worker_context->settings, run->call->workers, work->task->operation,
                                     work->task->attempt + 1);
    int64_t least = stamp_add_ms(stamp_now(), work->attempt.retry_after_s * 1000);
    return start > least ? start : least;
}

void task_attempt_fail(const struct task_run *run, struct task_attempt *work, enum fault fault)
{
    struct reply *reply = &work->outcome->reply;
    const struct task *task = work->task;
    log_set_trace(task->trace.data);
    if (reply->fault != fault)
        reply_fault(&work->call, reply, fault, NULL, NULL);
    attempt_note_fault(&work->attempt);
    bool is_final = !work->operation || work->operation->task.is_never_retried || work->attempt.is_final;
    const struct task_end how = {
        .start = is_final ? TASK_PARKED : next_start(run, work),
        .is_failure = true,
        .code = bytes_of(reply_code(reply)),
        .report = task_result_report(run->call->arena, reply),
    };
    work->outcome->code = reply_code(reply);
    log_info("task failed id=%.*s operation=%.*s code=%s retry=%" PRId64 "%s", (int)task->id.size,
             task->id.data, (int)task->operation.size, task->operation.data, work->outcome->code,
             task->attempt + 1, how.start == TASK_PARKED ? " parked" : "");
    put_back(run, work, &how, "failed");
    log_set_trace(NULL);
}

void task_attempt_wait(const struct task_run *run, struct task_attempt *work)
{
    int64_t wait_ms = work->wait_s ? work->wait_s * 1000 : TASK_WAIT_MS;
    const struct task_end how = {.start = stamp_add_ms(stamp_now(), wait_ms), .code = BYTES("MORE")};
    put_back(run, work, &how, "more");
}

void task_attempt_interrupt(const struct task_run *run, struct task_attempt *work)
{
    bool keeps_place = !work->cycles || work->task->domain.data;
    const struct task_end how = {.start = keeps_place ? work->task->start : stamp_now(),
                                 .code = BYTES("MORE")};
    put_back(run, work, &how, "more");
}

void task_attempt_end_unknown(const struct task_run *run, struct task_attempt *work)
{
    task_owner_note(run->worker_context->segment, work->fence.claim, work->task->id,
                    &(struct loss){.cause = LOSS_OUTCOME, .is_failure = true});
    work->outcome->code = fault_code(FAULT_XUNKNOWN);
    task_attempt_end(work, "failed");
}
