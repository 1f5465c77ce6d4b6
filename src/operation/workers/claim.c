/* claim: the fence that a worker sends back, and rights. */
#include "operation/workers/claim.h"

#include "operation/tasks/task_external.h"
#include "operation/tasks/task_wakeup.h"

enum fault claim_check_queue(struct attempt *attempt, int queue)
{
    uint32_t queues = task_external_queues(attempt->call);
    bool is_number = worker_queues_is(queue) && queue < WORKER_QUEUES_END;
    if (is_number && (queues >> queue & 1))
        return FAULT_NONE;
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED,
                       "The caller is not declared as a worker of this queue.", attempt->operation->name,
                       NULL);
}

enum fault claim_read(const struct reader *reader, const struct json *object, struct task_fence *fence_r)
{
    struct bytes id;
    *fence_r = (struct task_fence){0};
    enum fault fault = reader_text(reader, object, "id", &id);
    if (!fault && (!id.data || !task_is_id(id)))
        fault = reader_wrong(reader, object, "id", "The name of a task is expected.");
    if (!fault)
        fault = reader_integer(reader, object, "starttime", STAMP_MIN, STAMP_MAX, 0, &fence_r->claim);
    if (!fault && !fence_r->claim)
        fault = reader_wrong(reader, object, "starttime", "The stamp that the claim was given is expected.");
    if (!fault)
        fault = reader_integer(reader, object, "retry", 0, INT32_MAX, 0, &fence_r->attempt);
    fence_r->id = id;
    return fault;
}

enum fault claim_refuse(struct attempt *attempt, struct bytes id)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_ACLAIM, NULL,
                       arena_copy(attempt->call->arena, id.data, id.size), NULL);
}

/* Whether a task exists is nothing for callers that serve no queue. */
static enum fault check_any_queue(struct attempt *attempt)
{
    return task_external_queues(attempt->call) ? FAULT_NONE : claim_check_queue(attempt, 0);
}

enum fault claim_name(struct attempt *attempt, const struct reader *reader, struct task_fence *fence_r)
{
    enum fault fault =
        FAULT_FIRST(check_any_queue(attempt), claim_read(reader, reader->call->param, fence_r));
    fence_r->queues = task_external_queues(attempt->call);
    return fault;
}

enum fault claim_find(struct attempt *attempt, const struct reader *reader, const struct json *object,
                      struct task_fence *fence_r, struct task_hold *hold_r)
{
    struct store *store = documents_store(attempt->worker_context->documents);
    enum fault fault =
        FAULT_FIRST(check_any_queue(attempt), claim_read(reader, object, fence_r),
                    store_tasks_hold(store, attempt->ns, attempt->call->arena, fence_r, hold_r));
    if (!fault && hold_r->queue >= 0)
        fault = claim_check_queue(attempt, hold_r->queue);
    if (fault)
        return fault;
    if (hold_r->is_held && hold_r->until <= stamp_now())
        hold_r->is_held = false;
    fence_r->queue = hold_r->queue;
    fence_r->domain = hold_r->task.domain;
    fence_r->period = hold_r->task.period;
    fence_r->start = hold_r->task.start;
    return FAULT_NONE;
}

void claim_count(const struct attempt *attempt, int queue, enum external_count count, uint64_t more)
{
    task_counts_add_external(attempt->worker_context->segment, attempt->call->ns, queue, count, more);
}

void claim_wake_next(const struct attempt *attempt, const struct task *next)
{
    if (next->id.data)
        task_wakeup_tasks(attempt->worker_context, attempt->ns, attempt->call->ns, next, 1);
}

enum fault claim_read_until(struct attempt *attempt, const struct reader *reader, const struct json *param,
                            int queue, int64_t *until_r)
{
    const struct worker_queue *declared = worker_queues_find(attempt->call->workers, queue);
    int64_t seconds;
    enum fault fault = reader_integer(reader, param, "claim", 1, WORKER_QUEUES_CLAIM_MOST_S,
                                      declared ? declared->claim_s : WORKER_QUEUES_CLAIM_S, &seconds);
    *until_r = stamp_add_ms(stamp_now(), seconds * 1000);
    return fault;
}
