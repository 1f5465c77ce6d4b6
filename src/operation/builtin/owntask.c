/* owntask: shows and cancels a task for whoever requested it (tasks.md).
 * param {"show":id} → out {"id","state","op","retry","startat","exc","report","progress","result"};
 * {"cancel":id} → {"id","result":"cancelled"|"gone"}.  A task of somebody else is one that does not exist. */
#include "operation/builtin/builtin.h"

#include <inttypes.h>

#include "store/store_tasks.h"
#include "operation/access.h"
#include "operation/reader.h"

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

static void add_text(struct builder *out, const char *name, struct bytes text)
{
    if (!text.data)
        return;
    builder_printf(out, ",\"%s\":", name);
    json_add_string(out, text);
}

static enum fault show(struct attempt *attempt, struct bytes id, struct bytes owner)
{
    struct builder *out = attempt->reply->body;
    struct task_own own;
    enum fault fault = store_tasks_own(documents_store(attempt->worker_context->documents), attempt->ns,
                                       attempt->call->arena, id, owner, &own);
    if (fault)
        return fault;
    builder_add_text(out, "{\"id\":");
    json_add_string(out, id);
    add_text(out, "state", own.is_there ? own.state : BYTES("gone"));
    if (own.is_there) {
        add_text(out, "op", own.operation);
        builder_printf(out, ",\"retry\":%" PRId64 ",\"startat\":%" PRId64, own.attempt, own.start);
        add_text(out, "exc", own.code);
        add_text(out, "report", own.report);
        add_text(out, "progress", own.progress);
    }
    if (own.result.data) {
        builder_add_text(out, ",\"result\":");
        builder_add_bytes(out, own.result);
    }
    builder_add_text(out, "}");
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
    builder_add_text(out, "{\"id\":");
    json_add_string(out, id);
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
    enum fault fault = reader_members(&reader, param, "show cancel");
    if (!fault && is_cancel && json_member(param, "show"))
        fault = reader_wrong(&reader, param, "show", "Exactly one member is expected.");
    if (!fault)
        fault = reader_text(&reader, param, member, &id);
    if (!fault && (!id.data || !task_is_id(id)))
        fault = reader_wrong(&reader, param, member, "The name of a task is expected.");
    if (!fault)
        fault = find_owner(attempt, &owner);
    if (fault)
        return fault;
    return is_cancel ? cancel(attempt, id, owner) : show(attempt, id, owner);
}

static bool is_look(const struct call *call)
{
    return !json_member(call->param, "cancel");
}

const struct operation builtin_owntask = {.name = "owntask",
                                          .right = RIGHT_PUBLIC,
                                          .only_reads = true, /* no documents */
                                          .obeys_rules = true,
                                          .work = owntask_work,
                                          .is_look = is_look};
