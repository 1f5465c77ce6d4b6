/* take: gives tasks of a queue to an external worker (workers.md).
 * param {"qn","domain","n","wait":seconds,"claim":seconds,"worker":name} → out {"t","tasks":[{"id","op",
 * "param","starttime","retry","until",…}],"next":stamp,"pause":milliseconds}.  When nothing is due the
 * request waits; the process serves every other request that comes first, so a wait costs nobody anything. */
#include "operation/builtin/builtin.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/crash.h"
#include "segment/backlog.h"
#include "segment/metrics.h"
#include "operation/access.h"
#include "operation/builtin/claim.h"
#include "operation/builtin/taking.h"
#include "operation/long_poll.h"
#include "operation/tasks/task_lost.h"

enum { LOOK_MS = 1000 }; /* between two looks at the database, where other servers write too */

struct take_request {
    struct attempt *attempt;
    struct store *store;
    struct backlog *backlog;
    struct task_take take;
    struct task_taken taken;
    int64_t claim_ms, looked_ms;
    uint64_t offers; /* of the backlog, before the last look */
    struct long_poll poll;
};

static enum fault read_request(struct take_request *taking, const struct reader *reader)
{
    const struct json *param = reader->call->param;
    int64_t wait_s;
    enum fault fault = reader_members(reader, param, TAKING_MEMBERS " wait");
    if (!fault)
        fault = taking_read(taking->attempt, reader, param, &taking->take, &taking->claim_ms);
    if (!fault)
        fault = reader_integer(reader, param, "wait", 0, 3600, 0, &wait_s);
    if (fault)
        return fault;
    taking->poll.wait_ms =
        1000 * (wait_s < reader->settings->task_wait_s ? wait_s : reader->settings->task_wait_s);
    return FAULT_NONE;
}

/* --- looking --- */

static enum fault look_once(struct take_request *taking)
{
    struct attempt *attempt = taking->attempt;
    taking->offers = backlog_offers(taking->backlog);
    taking_stamp(&taking->take, taking->claim_ms);
    enum fault fault =
        store_take(taking->store, attempt->ns, attempt->call->arena, &taking->take, &taking->taken);
    crash_at(CRASH_TASK_TAKEN);
    return fault;
}

/* Claims that have ended come back first. */
static enum fault look(struct take_request *taking)
{
    struct attempt *attempt = taking->attempt;
    enum fault fault = look_once(taking);
    if (fault || !taking->taken.has_overdue)
        return fault;
    fault = task_lost_overdue(attempt->worker_context, attempt->call, attempt->ns, taking->take.queue);
    return fault || taking->taken.count ? fault : look_once(taking);
}

/* --- waiting --- */

static bool is_worth_a_look(void *context)
{
    const struct take_request *taking = context;
    const struct task_taken *taken = &taking->taken;
    return backlog_offers(taking->backlog) != taking->offers || (taken->next && taken->next <= stamp_now()) ||
           clock_monotonic_ms() - taking->looked_ms >= LOOK_MS;
}

/* The rights of the caller may have changed meanwhile. */
static enum fault look_again(void *context, bool *is_over_r)
{
    struct take_request *taking = context;
    struct attempt *attempt = taking->attempt;
    enum fault fault =
        access_renew(attempt->worker_context, attempt->call, attempt->reply, attempt->operation);
    if (!fault)
        fault = claim_check_queue(attempt, taking->take.queue);
    if (!fault)
        fault = look(taking);
    *is_over_r = taking->taken.count > 0;
    taking->looked_ms = clock_monotonic_ms();
    return fault;
}

/* --- the answer --- */

/* When it makes sense to come again: at once after a wait or with work, else when something may be due. */
static int64_t choose_pause(const struct take_request *taking)
{
    int64_t next_ms = taking->taken.next ? stamp_to_epoch_ms(taking->taken.next) : INT64_MAX;
    int64_t pause = taking->taken.count ? 0 : taking->poll.pauses_ms;
    int64_t until_next_ms = next_ms == INT64_MAX ? pause : next_ms - stamp_to_epoch_ms(stamp_now());
    return until_next_ms < 0 ? 0 : until_next_ms < pause ? until_next_ms : pause;
}

static void write_answer(const struct take_request *taking)
{
    struct builder *out = taking->attempt->reply->body;
    const struct task_taken *taken = &taking->taken;
    builder_printf(out, "{\"t\":%" PRId64 ",", stamp_now());
    taking_write(taking->attempt, &taking->taken);
    if (taken->next)
        builder_printf(out, ",\"next\":%" PRId64, taken->next);
    builder_printf(out, ",\"pause\":%" PRId64 "}", choose_pause(taking));
}

static enum fault wait_for_work(struct take_request *taking)
{
    struct attempt *attempt = taking->attempt;
    taking->poll.context = taking;
    taking->poll.queue =
        1 + task_counts_queue(attempt->worker_context->segment, attempt->call->ns, taking->take.queue);
    taking->looked_ms = clock_monotonic_ms();
    return long_poll_wait(attempt, &taking->poll);
}

static enum fault take_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct take_request taking = {.attempt = attempt,
                                  .store = documents_store(attempt->worker_context->documents),
                                  .backlog = backlog_of(attempt->worker_context->segment, attempt->ns),
                                  .poll = {.kind = PULSE_WAITS_FOR_TASK,
                                           .processes = attempt->worker_context->settings->task_waiters,
                                           .is_worth_a_look = is_worth_a_look,
                                           .look = look_again}};
    enum fault fault = read_request(&taking, &reader);
    if (!fault)
        fault = look(&taking);
    if (!fault && !taking.taken.count)
        fault = wait_for_work(&taking);
    if (fault)
        return fault;
    taking_note(attempt, taking.take.queue, &taking.taken);
    write_answer(&taking);
    return FAULT_NONE;
}

const struct operation builtin_take = {.name = "take",
                                       .right = RIGHT_PUBLIC,
                                       .only_reads = true, /* no documents */
                                       .obeys_rules = true,
                                       .is_secret = true, /* a claim is not given twice */
                                       .is_for_workers = true,
                                       .work = take_work};
