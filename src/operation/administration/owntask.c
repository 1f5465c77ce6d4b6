/* owntask: shows and cancels a task for whoever requested it (tasks.md).
 * param {"show":id,"wait":seconds} → out
 * {"id","state","op","retry","startat","exc","report","progress","result","pause"};
 * {"cancel":id} → {"id","result":"cancelled"|"gone"}.  A task of somebody else is one that does not exist. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "base/clock.h"
#include "store/tasks/store_tasks.h"
#include "operation/access/access.h"
#include "operation/long_poll.h"
#include "operation/reader.h"

enum {
    REST_LEAST_MS = 50, /* between two looks at the database */
    REST_MOST_MS = 1000,
    REST_PARTS = 4 /* of the time that has passed */
};

/* A task, and who asks for it. */
struct own {
    struct attempt *attempt;
    struct bytes id, owner;
    struct task_own task;
    int64_t begun_ms, looked_ms, look_lasted_ms;
};

/* As the history names owners; NO_BYTES with the administrator's key: anybody. */
static enum fault find_owner(struct attempt *attempt, struct bytes *owner_r)
{
    struct call *call = attempt->call;
    *owner_r = NO_BYTES;
    if (access_is_administrator(call))
        return FAULT_NONE;
    if (call->caller.account.data)
        *owner_r = call->caller.account;
    else if (call->client)
        *owner_r = bytes_of(arena_printf(call->arena, "#%" PRId64, (int64_t)(call->client & INT64_MAX)));
    else
        return reply_fault(call, attempt->reply, FAULT_SCLOSED,
                           "Sign in: a client of exempt_clients that has not signed in owns no tasks.",
                           "owntask", NULL);
    return FAULT_NONE;
}

static enum fault owntask_look(struct own *own)
{
    const struct attempt *attempt = own->attempt;
    int64_t begun_ms = clock_monotonic_ms();
    enum fault fault = store_tasks_own(documents_store(attempt->worker_context->documents), attempt->ns,
                                       attempt->call->arena, own->id, own->owner, &own->task);
    own->looked_ms = clock_monotonic_ms();
    own->look_lasted_ms = own->looked_ms - begun_ms;
    return fault;
}

/* --- waiting for the end --- */

/* What is parked or held ends only after an administrator has moved it. */
static bool is_under_way(const struct own *own)
{
    return own->task.is_there &&
           (bytes_equal(own->task.state, BYTES("waiting")) || bytes_equal(own->task.state, BYTES("running")));
}

/* No shared memory has the end of a task, which may happen on another host: the database is asked, the less
 * often the longer it lasts. */
static bool owntask_is_worth_a_look(void *context)
{
    const struct own *own = context;
    int64_t rest_ms = (own->looked_ms - own->begun_ms) / REST_PARTS;
    rest_ms = rest_ms < REST_LEAST_MS ? REST_LEAST_MS : rest_ms > REST_MOST_MS ? REST_MOST_MS : rest_ms;
    int64_t rested_ms = clock_monotonic_ms() - own->looked_ms;
    return rested_ms >= rest_ms && rested_ms >= REST_PARTS * own->look_lasted_ms;
}

/* The rights of the caller may have changed meanwhile. */
static enum fault look_again(void *context, bool *is_over_r)
{
    struct own *own = context;
    struct attempt *attempt = own->attempt;
    enum fault fault =
        access_renew(attempt->worker_context, attempt->call, attempt->reply, attempt->operation);
    if (!fault)
        fault = FAULT_FIRST(find_owner(attempt, &own->owner), owntask_look(own));
    *is_over_r = !fault && !is_under_way(own);
    return fault;
}

static enum fault wait_for_end(struct own *own, int64_t wait_ms, int64_t *pause_r)
{
    const struct attempt *attempt = own->attempt;
    struct long_poll poll = {.kind = PULSE_WAITS_FOR_END,
                             .wait_ms = wait_ms,
                             .processes = attempt->worker_context->settings->task_waiters,
                             .context = own,
                             .is_worth_a_look = owntask_is_worth_a_look,
                             .look = look_again};
    own->begun_ms = own->looked_ms;
    enum fault fault = long_poll_wait(own->attempt, &poll);
    *pause_r = is_under_way(own) ? poll.pauses_ms : 0;
    return fault;
}

/* --- */

static void write_own(struct builder *out, struct bytes id, const struct task_own *task)
{
    json_add_text(out, "{\"id\":", id);
    json_add_member(out, "state", task->is_there ? task->state : BYTES("gone"));
    if (task->is_there) {
        json_add_member(out, "op", task->operation);
        builder_printf(out, ",\"retry\":%" PRId64 ",\"startat\":%" PRId64, task->attempt, task->start);
        json_add_member(out, "exc", task->code);
        json_add_member(out, "report", task->report);
        json_add_member(out, "progress", task->progress);
    }
    if (task->result.data) {
        builder_add_text(out, ",\"result\":");
        builder_add_bytes(out, task->result);
    }
}

static enum fault owntask_show(struct attempt *attempt, struct bytes id, struct bytes owner, int64_t wait_ms)
{
    struct own own = {.attempt = attempt, .id = id, .owner = owner};
    int64_t pause = 0;
    enum fault fault = owntask_look(&own);
    if (!fault && wait_ms && is_under_way(&own))
        fault = wait_for_end(&own, wait_ms, &pause);
    if (fault)
        return fault;
    write_own(attempt->reply->body, id, &own.task);
    if (wait_ms)
        builder_printf(attempt->reply->body, ",\"pause\":%" PRId64, pause);
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

static enum fault cancel(struct attempt *attempt, struct bytes id, struct bytes owner)
{
    struct builder *out = attempt->reply->body;
    bool is_cancelled;
    enum fault fault = store_tasks_cancel(documents_store(attempt->worker_context->documents), attempt->ns,
                                          attempt->call->arena, id, owner, &is_cancelled);
    if (fault)
        return fault;
    attempt->has_acted = true;
    json_add_text(out, "{\"id\":", id);
    builder_printf(out, ",\"result\":\"%s\"}", is_cancelled ? "cancelled" : "gone");
    return FAULT_NONE;
}

static enum fault owntask_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    bool is_cancel = json_member(param, "cancel") != NULL;
    const char *member = is_cancel ? "cancel" : "show";
    struct bytes id, owner;
    int64_t wait_s = 0, most_s = reader.settings->task_wait_s;
    enum fault fault = reader_members(&reader, param, "show cancel wait");
    if (!fault && is_cancel && json_member(param, "show"))
        fault = reader_wrong(&reader, param, "show", "Exactly one of show and cancel is expected.");
    if (!fault && is_cancel && json_member(param, "wait"))
        fault = reader_wrong(&reader, param, "wait", "Only show waits.");
    if (!fault)
        fault = FAULT_FIRST(reader_integer(&reader, param, "wait", 0, LONG_POLL_MOST_S, 0, &wait_s),
                            reader_text(&reader, param, member, &id));
    if (!fault && (!id.data || !task_is_id(id)))
        fault = reader_wrong(&reader, param, member, "The name of a task is expected.");
    if (!fault)
        fault = find_owner(attempt, &owner);
    if (fault)
        return fault;
    if (is_cancel)
        return cancel(attempt, id, owner);
    return owntask_show(attempt, id, owner, 1000 * (wait_s < most_s ? wait_s : most_s));
}

static bool owntask_is_look(const struct call *call)
{
    return !json_member(call->param, "cancel");
}

const struct operation builtin_owntask = {.name = "owntask",
                                          .right = RIGHT_PUBLIC,
                                          .only_reads = true, /* no documents */
                                          .obeys_rules = true,
                                          .work = owntask_work,
                                          .is_look = owntask_is_look};
