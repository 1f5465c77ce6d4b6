/* done_take: reads, claims and answers. */
#include "operation/builtin/done_take.h"

#include "base/crash.h"
#include "base/log.h"
#include "operation/builtin/claim.h"
#include "operation/builtin/taking.h"
#include "operation/tasks/task_lost.h"

static const struct json *find_take(const struct attempt *attempt)
{
    const struct json *take = json_member(attempt->call->param, "take");
    return take && take->kind != JSON_NULL ? take : NULL;
}

enum fault done_take_read(struct attempt *attempt, const struct reader *reader, struct task_fence *fence)
{
    const struct json *param = find_take(attempt);
    struct task_take *take = ARENA_NEW(attempt->call->arena, struct task_take);
    int64_t claim_ms;
    if (!param)
        return FAULT_NONE;
    if (param->kind != JSON_OBJECT)
        return reader_wrong(reader, attempt->call->param, "take", "An object is expected.");
    enum fault fault = reader_members(reader, param, TAKING_MEMBERS);
    if (!fault)
        fault = taking_read(attempt, reader, param, take, &claim_ms);
    if (fault)
        return fault;
    taking_stamp(take, claim_ms);
    fence->take = take;
    fence->taken = ARENA_NEW(attempt->call->arena, struct task_taken);
    return FAULT_NONE;
}

/* Claims that have ended come back, as with `take`, since a worker that always gets a task calls none. */
static void note_taken(struct attempt *attempt, const struct task_fence *fence)
{
    taking_note(attempt, fence->take->queue, fence->taken);
    if (fence->taken->has_overdue &&
        task_lost_overdue(attempt->worker_context, attempt->call, attempt->ns, fence->take->queue))
        log_often(LOG_LEVEL_WARNING, "", "claims that have ended could not be put back");
}

/* Of an answer that was lost. */
static enum fault find_following(struct attempt *attempt, struct task_taken *taken_r)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_fence fence;
    struct task_take take = {0};
    int64_t claim_ms;
    enum fault fault = claim_read(&reader, &fence);
    if (!fault)
        fault = taking_read(attempt, &reader, find_take(attempt), &take, &claim_ms);
    return fault ? fault
                 : store_take_following(documents_store(attempt->worker_context->documents), attempt->ns,
                                        attempt->call->arena, take.queue, &fence, taken_r);
}

static enum fault find_taken(struct attempt *attempt, bool is_new, struct task_taken *taken_r)
{
    if (!is_new)
        return find_following(attempt, taken_r);
    const struct task_fence *fence = transaction_fence_of(attempt->transaction);
    crash_at(CRASH_TASK_TAKEN);
    note_taken(attempt, fence);
    *taken_r = *fence->taken;
    return store_take_open(documents_store(attempt->worker_context->documents), attempt->ns,
                           attempt->call->arena, taken_r);
}

enum fault done_take_afterwork(struct attempt *attempt, bool is_new)
{
    struct builder *body = attempt->reply->body;
    struct task_taken taken = {0};
    if (!find_take(attempt))
        return FAULT_NONE;
    enum fault fault = find_taken(attempt, is_new, &taken);
    if (fault) {
        log_often(LOG_LEVEL_WARNING, "", "what was claimed with the end of a task cannot be read: %s",
                  fault_code(fault));
        taken.count = 0;
        attempt->reply->fault = FAULT_NONE;
    }
    attempt->reply->is_secret = true; /* as the answer of take: no cache keeps claims */
    body->size--;                     /* its last brace */
    builder_add_text(body, ",");
    taking_write(attempt, &taken);
    builder_add_text(body, "}");
    return FAULT_NONE;
}
