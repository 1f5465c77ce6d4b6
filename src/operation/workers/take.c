/* take: gives tasks of a queue to an external worker (workers.md).
 * param {"qn","domain","n","wait":seconds,"claim":seconds,"worker":name,"after":{"id","starttime","retry"}} →
 * out {"t","tasks":[{"id","op","param","starttime","retry","until",…}],"next":stamp,"pause":milliseconds}.
 * When nothing is due the request waits (taking.h).  With `after`, it is the wait of an end that was
 * left to it (done.c): what the end has claimed comes first, and what is claimed now follows it. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "operation/workers/claim.h"
#include "operation/workers/taking.h"

/* The attempt that has ended, by a worker of a queue of the caller; no id: none is named. */
static enum fault read_after(struct attempt *attempt, const struct reader *reader, struct task_fence *fence_r)
{
    const struct json *after = json_member(attempt->call->param, "after");
    struct task_hold hold;
    *fence_r = (struct task_fence){0};
    if (!after || after->kind == JSON_NULL)
        return FAULT_NONE;
    if (after->kind != JSON_OBJECT)
        return reader_wrong(reader, attempt->call->param, "after", "An object is expected.");
    enum fault fault = reader_members(reader, after, CLAIM_MEMBERS);
    if (!fault)
        fault = claim_find(attempt, reader, after, fence_r, &hold);
    bool has_ended = !fault && !hold.is_held && (hold.is_done || hold.code.data);
    return fault || has_ended ? fault : claim_refuse(attempt, fence_r->id);
}

/* What the end has claimed already; nothing: what is due, perhaps after a wait. */
static enum fault take_after(struct attempt *attempt, struct task_taking *taking,
                             const struct task_fence *fence, int64_t *pause)
{
    *pause = 0;
    enum fault fault = taking_find_following(attempt, fence, taking);
    if (fault || taking->taken.count)
        return fault;
    taking->take.after = fence;
    return taking_wait(attempt, taking, pause);
}

static enum fault take_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct builder *out = attempt->reply->body;
    struct task_taking taking;
    struct task_fence fence;
    int64_t pause;
    enum fault fault = taking_read(attempt, &reader, attempt->call->param, NULL, &taking);
    if (!fault)
        fault = read_after(attempt, &reader, &fence);
    if (!fault)
        fault = fence.id.data ? take_after(attempt, &taking, &fence, &pause)
                              : taking_wait(attempt, &taking, &pause);
    if (fault)
        return fault;
    builder_printf(out, "{\"t\":%" PRId64 ",", stamp_now());
    taking_write(attempt, &taking.taken);
    taking_wait_write(attempt, &taking, pause);
    builder_add_text(out, "}");
    return FAULT_NONE;
}

const struct operation builtin_take = {.name = "take",
                                       .right = RIGHT_PUBLIC,
                                       .only_reads = true, /* no documents */
                                       .obeys_rules = true,
                                       .is_secret = true, /* a claim is not given twice */
                                       .is_for_workers = true,
                                       .work = take_work};
