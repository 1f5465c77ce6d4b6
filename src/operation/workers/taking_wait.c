/* taking_wait: looks at the database, then at shared memory until another look is worth it. */
#include "operation/workers/taking_wait.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/crash.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"
#include "operation/access/access.h"
#include "operation/workers/claim.h"
#include "operation/long_poll.h"

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
    enum fault fault = look_once(waiting);
    if (!fault)
        fault = taking_put_back(waiting->attempt, taking);
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
        fault = claim_check_queue(attempt, waiting->taking->take.queue);
    if (!fault)
        fault = taking_wait_look(waiting);
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
