/* done, keep, fail: how external workers end and extend their claims (workers.md).  The claim is named by
 * {"id","starttime","retry"} as `take` gave it; one that has ended changes nothing: FAULT_ACLAIM.
 *
 * done {…,"result":json,"docs":[as put],"take":{as take}} → {"result":"done"}, what put returns, and "tasks":
 * the task ends in the commit that makes the changes, which are judged as those of a put of the caller, and
 * claims.  Repeated after an answer that was lost: {"result":"done"}, the claims again, and
 * nothing is changed a second time.
 *
 * keep {…,"claim":seconds,"progress":text} → {"until":stamp}
 *
 * fail {…,"code","report","delay":seconds,"final":true | "release":true,"take"} →
 * {"result":"failed"|"released", "retry","startat"}, and "tasks"; repeated, it changes nothing either. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "base/crash.h"
#include "base/log.h"
#include "document/transaction.h"
#include "operation/attempt.h"
#include "operation/documents/put.h"
#include "operation/reader.h"
#include "operation/tasks/task_retry.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/workers/claim.h"
#include "operation/workers/taking.h"
#include "segment/counts/metrics.h"

/* --- taking the next --- */

/* The member take of `done` and `fail`: the next tasks for the worker, claimed by the commit that
 * ends one, or after it, when none was due and the worker waits (workers.md).  Reads, claims, waits and
 * answers. */

enum { FAULT_PAUSE_MS = 1000 };

static const struct json *find_take(const struct attempt *attempt)
{
    const struct json *take = json_member(attempt->call->param, "take");
    return take && take->kind != JSON_NULL ? take : NULL;
}

/* In work: the commit that ends the attempt of the fence claims what the member asks for. */
static enum fault end_take_read(struct attempt *attempt, const struct reader *reader,
                                struct task_fence *fence)
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
    enum fault fault = FAULT_FIRST(claim_read(&reader, attempt->call->param, fence),
                                   taking_read(attempt, &reader, find_take(attempt), fence, taking));
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

/* In afterwork, of an answer that is one object with members: adds "tasks", if they were requested, and waits
 * for some.  is_new false: the attempt had ended before, by the same request or another: what that has
 * claimed and what still lasts, nothing new, and no wait.  A wait that is left to another request is in the
 * answer, as "wait".  A failure hides no end: a fault is returned only
 * when the caller may have lost the rights by which the rest of the answer would be judged. */
static enum fault end_take_afterwork(struct attempt *attempt, bool is_new)
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

/* --- the operations --- */

enum { REPORT_MOST = 2000, CODE_MOST = 32 };

static struct pulse *done_pulse_of(const struct attempt *attempt)
{
    struct segment *segment = attempt->worker_context->segment;
    return metrics_pulse(segment, segment_index(segment));
}

/* --- done --- */

static enum fault read_result(const struct reader *reader, struct task_fence *fence)
{
    const struct json *result = json_member(reader->call->param, "result");
    int64_t most = reader->settings->limit_task_param_bytes;
    if (!result || result->kind == JSON_NULL)
        return FAULT_NONE;
    if ((int64_t)result->text.size > most)
        return reader_over(reader, result, "limit_task_param_bytes", most, (int64_t)result->text.size);
    fence->result = result->text;
    return FAULT_NONE;
}

/* Without documents, the first try ends the task unread: one statement does both.  When that is refused, the
 * next finds out why. */
static enum fault done_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_fence *fence = ARENA_NEW(attempt->call->arena, struct task_fence);
    struct call *put = put_beside_find(attempt);
    struct task_hold hold = {.is_held = true};
    bool is_blind = !put && !attempt->kept;
    enum fault fault = reader_members(&reader, attempt->call->param, CLAIM_MEMBERS " result docs take");
    if (!fault && is_blind)
        fault = claim_name(attempt, &reader, fence);
    else if (!fault)
        fault = claim_find(attempt, &reader, attempt->call->param, fence, &hold);
    if (!fault && !hold.is_held && !hold.is_done)
        fault = claim_refuse(attempt, fence->id);
    if (!fault)
        fault = FAULT_FIRST(read_result(&reader, fence), put_beside_check(attempt, put),
                            end_take_read(attempt, &reader, fence));
    if (fault)
        return fault;
    if (!hold.is_held) {
        builder_add_text(attempt->reply->body, "{\"result\":\"done\"}");
        return FAULT_NONE;
    }
    transaction_fence(attempt->transaction, fence, 1);
    attempt->kept = put ? attempt->kept : fence;
    if (put)
        return put_beside_work(attempt, put);
    builder_add_text(attempt->reply->body, "{\"result\":\"done\"}");
    return FAULT_NONE;
}

/* Completes what put has left. */
static enum fault complete_put(struct attempt *attempt)
{
    struct builder *body = attempt->reply->body;
    enum fault fault = put_beside_afterwork(attempt);
    if (fault)
        return fault;
    size_t size = body->size - attempt->out - 1; /* without its first brace */
    const char *rest = arena_copy(attempt->call->arena, body->data + attempt->out + 1, size);
    body->size = attempt->out;
    builder_add_text(body, "{\"result\":\"done\",");
    builder_add_bytes(body, (struct bytes){rest, size});
    return FAULT_NONE;
}

/* The domain of a task that was ended unread. */
static void wake_left(const struct attempt *attempt)
{
    const struct task_fence *fence = put_beside_find(attempt) ? NULL : attempt->kept;
    struct task next;
    if (fence && fence->left.data &&
        !store_tasks_next(documents_store(attempt->worker_context->documents), attempt->ns,
                          attempt->call->arena, fence->left, &next))
        claim_wake_next(attempt, &next);
}

static enum fault done_afterwork(struct attempt *attempt)
{
    bool is_new =
        !attempt->reply->is_replayed && attempt->transaction && transaction_fence_of(attempt->transaction);
    if (is_new) {
        pulse_count(&done_pulse_of(attempt)->tasks_done, 1);
        claim_count(attempt, transaction_fence_of(attempt->transaction)->queue, EXTERNAL_COUNT_DONE, 1);
        claim_wake_next(attempt, transaction_next_task(attempt->transaction));
        wake_left(attempt);
    }
    return FAULT_FIRST(put_beside_is_left(attempt) ? complete_put(attempt) : FAULT_NONE,
                       end_take_afterwork(attempt, is_new));
}

const struct operation builtin_done = {.name = "done",
                                       .right = RIGHT_PUBLIC,
                                       .obeys_rules = true,
                                       .is_for_workers = true,
                                       .work = done_work,
                                       .afterwork = done_afterwork};

/* --- keep --- */

static enum fault keep_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    struct task_fence fence;
    struct task_hold hold;
    struct bytes progress;
    int64_t until;
    bool is_kept;
    enum fault fault = FAULT_FIRST(reader_members(&reader, param, CLAIM_MEMBERS " claim progress"),
                                   reader_text(&reader, param, "progress", &progress));
    if (!fault && progress.size > TASK_PROGRESS_MOST)
        fault = reader_wrong(&reader, param, "progress", "A text of at most 500 bytes is expected.");
    if (!fault)
        fault = claim_find(attempt, &reader, param, &fence, &hold);
    if (!fault && !hold.is_held)
        fault = claim_refuse(attempt, fence.id);
    if (!fault)
        fault = FAULT_FIRST(claim_read_until(attempt, &reader, param, hold.queue, &until),
                            store_tasks_keep(documents_store(attempt->worker_context->documents), attempt->ns,
                                             attempt->call->arena, &fence, until, progress, &is_kept));
    if (fault)
        return fault;
    if (!is_kept)
        return claim_refuse(attempt, fence.id);
    claim_count(attempt, fence.queue, EXTERNAL_COUNT_KEPT, 1);
    builder_printf(attempt->reply->body, "{\"until\":%" PRId64 "}", until);
    return FAULT_NONE;
}

const struct operation builtin_keep = {.name = "keep",
                                       .right = RIGHT_PUBLIC,
                                       .only_reads = true, /* no documents */
                                       .obeys_rules = true,
                                       .is_secret = true,
                                       .is_for_workers = true,
                                       .work = keep_work};

/* --- fail --- */

struct failure {
    struct bytes code, report;
    int64_t delay_s; /* -1: as in the settings */
    bool is_final, is_release;
};

/* Words of the history that are no failures of workers. */
static bool is_code(struct bytes code)
{
    static const char *const taken[] = {"LOST", "HELD", "MORE", "DROPPED", "CANCELLED", "EXPIRED"};
    bool is_one = code.size && code.size <= CODE_MOST && *code.data >= 'A' && *code.data <= 'Z';
    for (size_t i = 0; is_one && i < code.size; i++)
        is_one = (code.data[i] >= 'A' && code.data[i] <= 'Z') || (code.data[i] >= '0' && code.data[i] <= '9');
    for (size_t i = 0; is_one && i < COUNT_OF(taken); i++)
        is_one = !bytes_equal(code, bytes_of(taken[i]));
    return is_one;
}

static enum fault read_failure(const struct reader *reader, struct failure *failure)
{
    const struct json *param = reader->call->param;
    *failure = (struct failure){0};
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, CLAIM_MEMBERS " code report delay final release take"),
                    reader_text(reader, param, "code", &failure->code));
    if (!fault && failure->code.data && !is_code(failure->code))
        fault = reader_wrong(reader, param, "code", "At most 32 capital letters and digits are expected.");
    if (!fault)
        fault = reader_text(reader, param, "report", &failure->report);
    if (!fault && failure->report.size > REPORT_MOST)
        fault = reader_wrong(reader, param, "report", "A text of at most 2000 bytes is expected.");
    if (!fault)
        fault = FAULT_FIRST(reader_integer(reader, param, "delay", 0, 366 * 86400, -1, &failure->delay_s),
                            reader_boolean(reader, param, "final", &failure->is_final),
                            reader_boolean(reader, param, "release", &failure->is_release));
    if (!fault && failure->is_final && (failure->is_release || failure->delay_s >= 0))
        fault = reader_wrong(reader, param, "final", "One of final, release and delay is expected.");
    return fault;
}

/* One that is given back keeps its place. */
static int64_t choose_start(const struct attempt *attempt, const struct failure *failure,
                            const struct task *task)
{
    if (failure->is_final)
        return TASK_PARKED;
    if (failure->delay_s >= 0)
        return stamp_add_ms(stamp_now(), failure->delay_s * 1000);
    return failure->is_release ? task->start
                               : task_retry_start(attempt->worker_context->settings, attempt->call->workers,
                                                  task->operation, task->attempt + 1);
}

/* What work leaves for afterwork. */
struct failing {
    struct task_fence fence;
    struct task_end end;
    struct task_hold hold;
};

/* A code of `fail`, or what it writes for a release. */
static bool has_failed(struct bytes code)
{
    return code.data && (is_code(code) || bytes_equal(code, BYTES("MORE")));
}

static void plan_end(const struct attempt *attempt, const struct failure *failure, struct failing *failing)
{
    failing->end = (struct task_end){
        .start = choose_start(attempt, failure, &failing->hold.task),
        .is_failure = !failure->is_release,
        .code = failure->is_release  ? BYTES("MORE")
                : failure->code.data ? failure->code
                                     : BYTES("FAILED"),
        .report = failure->report,
    };
    failing->fence.end = &failing->end;
}

static enum fault fail_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct failing *failing = ARENA_NEW(attempt->call->arena, struct failing);
    struct failure failure;
    enum fault fault =
        FAULT_FIRST(read_failure(&reader, &failure),
                    claim_find(attempt, &reader, attempt->call->param, &failing->fence, &failing->hold));
    if (!fault && !failing->hold.is_held && !has_failed(failing->hold.code))
        fault = claim_refuse(attempt, failing->fence.id);
    if (!fault)
        fault = end_take_read(attempt, &reader, &failing->fence);
    if (fault)
        return fault;
    attempt->kept = failing;
    if (!failing->hold.is_held) /* the answer was lost */
        return FAULT_NONE;
    plan_end(attempt, &failure, failing);
    transaction_fence(attempt->transaction, &failing->fence, 1);
    return FAULT_NONE;
}

/* The domain's next, or the task itself, may be taken now. */
static void note_failure(struct attempt *attempt, const struct failing *failing, const struct task *task)
{
    bool is_failure = failing->end.is_failure;
    pulse_count(&done_pulse_of(attempt)->tasks_failed, is_failure);
    claim_count(attempt, failing->fence.queue, is_failure ? EXTERNAL_COUNT_FAILED : EXTERNAL_COUNT_RELEASED,
                1);
    task_wakeup_tasks(attempt->worker_context, attempt->ns, attempt->call->ns, task, 1);
    claim_wake_next(attempt, transaction_next_task(attempt->transaction));
}

static enum fault fail_afterwork(struct attempt *attempt)
{
    const struct failing *failing = attempt->kept;
    struct builder *body = attempt->reply->body;
    struct task task = failing->hold.task;
    bool is_new = failing->hold.is_held;
    bool is_release = bytes_equal(is_new ? failing->end.code : failing->hold.code, BYTES("MORE"));
    task.attempt += !is_release;
    if (is_new) {
        task.start = failing->fence.again;
        note_failure(attempt, failing, &task);
    }
    builder_printf(body, "{\"result\":\"%s\",\"retry\":%" PRId64, is_release ? "released" : "failed",
                   task.attempt);
    if (task.start)
        builder_printf(body, ",\"startat\":%" PRId64, task.start);
    builder_add_text(body, "}");
    return end_take_afterwork(attempt, is_new);
}

const struct operation builtin_fail = {.name = "fail",
                                       .right = RIGHT_PUBLIC,
                                       .only_reads = true, /* no documents */
                                       .obeys_rules = true,
                                       .is_secret = true,
                                       .is_for_workers = true,
                                       .work = fail_work,
                                       .afterwork = fail_afterwork};
