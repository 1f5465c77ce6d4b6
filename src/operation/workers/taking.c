/* taking: what `take` and an end with `take` have in common. */
#include "operation/workers/taking.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "model/trace.h"
#include "operation/access/access.h"
#include "operation/builtin.h"
#include "operation/long_poll.h"
#include "operation/tasks/task_lost.h"
#include "operation/workers/claim.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"

enum { TASKS_MOST = 100, NAME_MOST = 64 };

/* --- the request --- */

static enum fault read_worker(const struct reader *reader, const struct json *param, struct bytes *holder_r)
{
    struct bytes name;
    enum fault fault = reader_text(reader, param, "worker", &name);
    if (fault || !name.data) {
        *holder_r = BYTES("external");
        return fault;
    }
    bool is_name = name.size && name.size <= NAME_MOST;
    for (size_t i = 0; is_name && i < name.size; i++)
        is_name = name.data[i] > ' ' && name.data[i] < '\x7f';
    if (!is_name)
        return reader_wrong(reader, param, "worker",
                            "A name of 1 to 64 visible ASCII characters is expected.");
    *holder_r = bytes_of(arena_printf(reader->call->arena, "external %.*s", (int)name.size, name.data));
    return FAULT_NONE;
}

enum fault taking_read(struct attempt *attempt, const struct reader *reader, const struct json *param,
                       const struct task_fence *after, struct task_taking *taking_r)
{
    struct task_take *take = &taking_r->take;
    int64_t queue, until, wait_s, most_s = reader->settings->task_wait_s;
    *taking_r = (struct task_taking){.take = {.after = after}};
    enum fault fault = FAULT_FIRST(
        reader_members(reader, param,
                       after ? "qn domain n claim worker wait apart" : "qn domain n claim worker wait after"),
        reader_integer(reader, param, "qn", WORKER_QUEUES_FIRST, WORKER_QUEUES_END - 1, 0, &queue));
    if (!fault && !queue)
        fault = reader_wrong(reader, param, "qn", "A queue of external workers is expected, 16 to 31.");
    if (!fault)
        fault = FAULT_FIRST(claim_check_queue(attempt, (int)queue),
                            reader_text(reader, param, "domain", &take->domain),
                            reader_integer(reader, param, "n", 1, TASKS_MOST, 1, &take->most),
                            claim_read_until(attempt, reader, param, (int)queue, &until),
                            read_worker(reader, param, &take->holder),
                            reader_integer(reader, param, "wait", 0, LONG_POLL_MOST_S, 0, &wait_s));
    if (!fault && after)
        fault = reader_boolean(reader, param, "apart", &taking_r->is_apart);
    if (fault)
        return fault;
    take->queue = (int)queue;
    taking_r->claim_ms = stamp_to_epoch_ms(until) - stamp_to_epoch_ms(stamp_now());
    taking_r->wait_ms = 1000 * (wait_s < most_s ? wait_s : most_s);
    return FAULT_NONE;
}

/* A task that was put back may be claimed again at once: that is another claim. */
void taking_stamp(struct task_taking *taking)
{
    struct task_take *take = &taking->take;
    int64_t first = take->after ? stamp_add_ms(take->after->claim, 1) : 0;
    take->claim = task_claim_stamp();
    if (take->claim < first)
        take->claim = first;
    take->until = stamp_add_ms(take->claim, taking->claim_ms);
}

/* --- the answer --- */

struct given {
    const struct task *task;
    int64_t until;
};

static int taking_compare(const void *one, const void *other)
{
    const struct task *a = ((const struct given *)one)->task, *b = ((const struct given *)other)->task;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

static void add_task(struct builder *out, const struct task *task, int64_t until)
{
    json_add_text(out, "{\"id\":", task->id);
    json_add_filled(out, "op", task->operation);
    builder_add_text(out, ",\"param\":");
    builder_add_bytes(out, task->param.data ? task->param : BYTES("null"));
    builder_printf(out,
                   ",\"qn\":%d,\"priority\":%d,\"startat\":%" PRId64 ",\"starttime\":%" PRId64
                   ",\"retry\":%" PRId64 ",\"until\":%" PRId64 ",\"created\":%" PRId64,
                   task->queue, task->priority, task->start, task->claim, task->attempt, until,
                   task->created);
    json_add_filled(out, "info", task->info);
    json_add_filled(out, "resource", task->resource);
    json_add_filled(out, "domain", task->domain);
    json_add_filled(out, "account", task->account);
    json_add_filled(out, "trace", trace_parent(task->trace));
    json_add_filled(out, "tracestate", trace_state(task->trace));
    builder_add_text(out, "}");
}

void taking_write(const struct attempt *attempt, const struct task_taken *taken)
{
    struct builder *out = attempt->reply->body;
    struct given *given = ARENA_ROOM(attempt->call->arena, struct given, taken->count);
    for (size_t i = 0; i < taken->count; i++)
        given[i] = (struct given){&taken->tasks[i], taken->untils[i]};
    if (taken->count)
        qsort(given, taken->count, sizeof *given, taking_compare);
    builder_add_text(out, "\"tasks\":[");
    for (size_t i = 0; i < taken->count; i++) {
        if (i)
            builder_add_text(out, ",");
        add_task(out, given[i].task, given[i].until);
    }
    builder_add_text(out, "]");
}

enum fault taking_put_back(const struct attempt *attempt, const struct task_taking *taking)
{
    enum fault fault = FAULT_NONE;
    if (taking->taken.has_overdue)
        fault = task_lost_overdue(attempt->worker_context, attempt->call, attempt->ns, taking->take.queue);
    if (!fault || !taking->taken.count)
        return fault;
    log_often(LOG_LEVEL_WARNING, "", "claims that have ended could not be put back: %s", fault_code(fault));
    return FAULT_NONE;
}

void taking_note(const struct attempt *attempt, int queue, const struct task_taken *taken)
{
    struct backlog *backlog = backlog_of(attempt->worker_context->segment, attempt->ns);
    for (size_t i = 0; i < taken->count; i++) {
        const struct task *task = &taken->tasks[i];
        backlog_begin_task(backlog, task->queue, task->start, task->created, clock_monotonic_ms());
    }
    claim_count(attempt, queue, EXTERNAL_COUNT_TAKEN, taken->count);
}

enum fault taking_find_following(const struct attempt *attempt, const struct task_fence *fence,
                                 struct task_taking *taking)
{
    return store_take_following(documents_store(attempt->worker_context->documents), attempt->ns,
                                attempt->call->arena, taking->take.queue, fence, &taking->taken);
}

/* Looks at the database, then at shared memory until another look is worth it. */

enum {
    LOOK_MS = 1000, /* between two looks at the database, where other servers write too */
    REST_TIMES = 4  /* as long as the last look of the wait: many tasks that may not begin make it long */
};

struct waiting {
    struct attempt *attempt;
    struct task_taking *taking;
    struct backlog *backlog;
    int64_t looked_ms, look_lasted_ms; /* 0: the first, which may have opened a session, is no measure */
    uint64_t offers;                   /* of the backlog, before the last look */
};

/* --- looking --- */

static enum fault look_once(struct waiting *waiting)
{
    struct attempt *attempt = waiting->attempt;
    waiting->offers = backlog_offers(waiting->backlog);
    taking_stamp(waiting->taking);
    enum fault fault = store_take(documents_store(attempt->worker_context->documents), attempt->ns,
                                  attempt->call->arena, &waiting->taking->take, &waiting->taking->taken);
    crash_at(CRASH_TASK_TAKEN);
    return fault;
}

/* Claims that have ended come back first. */
static enum fault taking_wait_look(struct waiting *waiting)
{
    const struct task_taking *taking = waiting->taking;
    enum fault fault = FAULT_FIRST(look_once(waiting), taking_put_back(waiting->attempt, taking));
    if (!fault && !taking->taken.count && taking->taken.has_overdue)
        fault = look_once(waiting);
    waiting->looked_ms = clock_monotonic_ms();
    return fault;
}

/* --- waiting --- */

static bool taking_wait_is_worth_a_look(void *context)
{
    const struct waiting *waiting = context;
    int64_t next = waiting->taking->taken.next, rested_ms = clock_monotonic_ms() - waiting->looked_ms;
    bool has_reason = backlog_offers(waiting->backlog) != waiting->offers || (next && next <= stamp_now());
    return rested_ms >= LOOK_MS || (has_reason && rested_ms >= REST_TIMES * waiting->look_lasted_ms);
}

/* The rights of the caller may have changed meanwhile. */
static enum fault look_again(void *context, bool *is_over_r)
{
    struct waiting *waiting = context;
    struct attempt *attempt = waiting->attempt;
    int64_t begun_ms = clock_monotonic_ms();
    enum fault fault =
        access_renew(attempt->worker_context, attempt->call, attempt->reply, attempt->operation);
    if (!fault)
        fault =
            FAULT_FIRST(claim_check_queue(attempt, waiting->taking->take.queue), taking_wait_look(waiting));
    waiting->look_lasted_ms = clock_monotonic_ms() - begun_ms;
    *is_over_r = waiting->taking->taken.count > 0;
    return fault;
}

/* When it makes sense to come again: at once after a wait or with work, else when something may be due. */
static int64_t choose_pause(const struct task_taken *taken, int64_t pauses_ms)
{
    int64_t next_ms = taken->next ? stamp_to_epoch_ms(taken->next) : INT64_MAX;
    int64_t pause = taken->count ? 0 : pauses_ms;
    int64_t until_next_ms = next_ms == INT64_MAX ? pause : next_ms - stamp_to_epoch_ms(stamp_now());
    return until_next_ms < 0 ? 0 : until_next_ms < pause ? until_next_ms : pause;
}

enum fault taking_wait(struct attempt *attempt, struct task_taking *taking, int64_t *pause_r)
{
    struct segment *segment = attempt->worker_context->segment;
    struct waiting waiting = {
        .attempt = attempt, .taking = taking, .backlog = backlog_of(segment, attempt->ns)};
    struct long_poll poll = {.kind = PULSE_WAITS_FOR_TASK,
                             .queue = 1 + task_counts_queue(segment, attempt->call->ns, taking->take.queue),
                             .wait_ms = taking->wait_ms,
                             .processes = attempt->worker_context->settings->task_waiters,
                             .context = &waiting,
                             .is_worth_a_look = taking_wait_is_worth_a_look,
                             .look = look_again};
    enum fault fault = taking_wait_look(&waiting);
    if (!fault && !taking->taken.count)
        fault = long_poll_wait(attempt, &poll);
    if (fault)
        return fault;
    taking_note(attempt, taking->take.queue, &taking->taken);
    *pause_r = choose_pause(&taking->taken, poll.pauses_ms);
    return FAULT_NONE;
}

void taking_wait_write(const struct attempt *attempt, const struct task_taking *taking, int64_t pause)
{
    struct builder *out = attempt->reply->body;
    if (taking->taken.next)
        builder_printf(out, ",\"next\":%" PRId64, taking->taken.next);
    builder_printf(out, ",\"pause\":%" PRId64, pause);
}

/* Gives tasks of a queue to an external worker (workers.md).
 * param {"qn","domain","n","wait":seconds,"claim":seconds,"worker":name,"after":{"id","starttime","retry"}} →
 * out {"t","tasks":[{"id","op","param","starttime","retry","until",…}],"next":stamp,"pause":milliseconds}.
 * When nothing is due the request waits (taking.h).  With `after`, it is the wait of an end that was
 * left to it (done.c): what the end has claimed comes first, and what is claimed now follows it. */

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
    enum fault fault = FAULT_FIRST(reader_members(reader, after, CLAIM_MEMBERS),
                                   claim_find(attempt, reader, after, fence_r, &hold));
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
    enum fault fault = FAULT_FIRST(taking_read(attempt, &reader, attempt->call->param, NULL, &taking),
                                   read_after(attempt, &reader, &fence),
                                   fence.id.data ? take_after(attempt, &taking, &fence, &pause)
                                                 : taking_wait(attempt, &taking, &pause));
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
