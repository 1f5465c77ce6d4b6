/* end_take: reads, claims, waits and answers. */
#include "operation/workers/end_take.h"

#include <inttypes.h>

#include "base/crash.h"
#include "base/log.h"
#include "operation/workers/claim.h"
#include "operation/workers/taking_wait.h"

enum { FAULT_PAUSE_MS = 1000 };

static const struct json *find_take(const struct attempt *attempt)
{
    const struct json *take = json_member(attempt->call->param, "take");
    return take && take->kind != JSON_NULL ? take : NULL;
}

enum fault end_take_read(struct attempt *attempt, const struct reader *reader, struct task_fence *fence)
{
    const struct json *param = find_take(attempt);
    struct task_taking *taking = ARENA_NEW(attempt->call->arena, struct task_taking);
    if (!param)
        return FAULT_NONE;
    if (param->kind != JSON_OBJECT)
        return reader_wrong(reader, attempt->call->param, "take", "An object is expected.");
    enum fault fault = taking_read(attempt, reader, param, fence, taking);
    if (fault)
        return fault;
    taking_stamp(taking);
    fence->take = &taking->take;
    fence->taken = &taking->taken;
    return FAULT_NONE;
}

/* A claim of unknown outcome names the attempt: it is given if it was made. */
static enum fault wait_for_tasks(struct attempt *attempt, const struct task_fence *fence,
                                 struct task_taking *taking, int64_t *pause)
{
    enum fault fault = taking_wait(attempt, taking, pause);
    if (fault != FAULT_XUNKNOWN || taking_find_following(attempt, fence, taking))
        return fault;
    taking_note(attempt, taking->take.queue, &taking->taken);
    *pause = taking->taken.count ? 0 : FAULT_PAUSE_MS;
    return FAULT_NONE;
}

/* What the commit has claimed; if nothing was due, what is within the wait.  The end is durable, and visible
 * to all, before: another request for its attempt finds it. */
static enum fault find_new(struct attempt *attempt, const struct task_fence *fence,
                           struct task_taking *taking, int64_t *pause)
{
    crash_at(CRASH_TASK_TAKEN);
    taking->taken = *fence->taken;
    if (taking->taken.count)
        taking->is_apart = false;
    else if (taking->wait_ms)
        return taking->is_apart ? FAULT_NONE : wait_for_tasks(attempt, fence, taking, pause);
    taking_note(attempt, taking->take.queue, &taking->taken);
    /* as with `take`, since a worker that always gets a task calls none */
    enum fault fault = taking_put_back(attempt, taking);
    return fault ? fault
                 : store_take_open(documents_store(attempt->worker_context->documents), attempt->ns,
                                   attempt->call->arena, &taking->taken);
}

static enum fault find_taken(struct attempt *attempt, bool is_new, struct task_taking *taking, int64_t *pause)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_fence *fence = ARENA_NEW(attempt->call->arena, struct task_fence);
    enum fault fault = claim_read(&reader, attempt->call->param, fence);
    if (!fault)
        fault = taking_read(attempt, &reader, find_take(attempt), fence, taking);
    if (fault)
        return fault;
    if (!is_new) { /* the answer was lost */
        taking->is_apart = false;
        return taking_find_following(attempt, fence, taking);
    }
    return find_new(attempt, transaction_fence_of(attempt->transaction), taking, pause);
}

/* Rights that could not be judged again are gone: nothing that depends on them may be added to the answer. */
static bool must_refuse(const struct call *call)
{
    return !call->is_entered && (call->syncs || call->client_copies || call->session.data);
}

enum fault end_take_afterwork(struct attempt *attempt, bool is_new)
{
    struct builder *body = attempt->reply->body;
    const struct reply before = *attempt->reply;
    struct task_taking taking = {0};
    int64_t pause = 0;
    if (!find_take(attempt))
        return FAULT_NONE;
    enum fault fault = find_taken(attempt, is_new, &taking, &pause);
    if (fault && must_refuse(attempt->call))
        return fault;
    if (fault) {
        log_often(LOG_LEVEL_WARNING, "", "no tasks can be given with the end of one: %s", fault_code(fault));
        taking.taken = (struct task_taken){0};
        taking.is_apart = false;
        pause = FAULT_PAUSE_MS;
        *attempt->reply = before;
    }
    attempt->reply->is_secret = true; /* as the answer of take: no cache keeps claims */
    body->size--;                     /* its last brace */
    builder_add_text(body, ",");
    taking_write(attempt, &taking.taken);
    if (taking.wait_ms && taking.is_apart)
        builder_printf(body, ",\"wait\":%" PRId64, taking.wait_ms / 1000);
    else if (taking.wait_ms)
        taking_wait_write(attempt, &taking, pause);
    builder_add_text(body, "}");
    return FAULT_NONE;
}
