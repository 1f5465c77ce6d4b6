/* audited: the decision, and the words. */
#include "operation/access/audited.h"

#include "base/logging/audit.h"
#include "operation/access/access.h"
#include "operation/registry.h"

enum { VERB_MOST = 32, TARGET_MOST = 255 };

static const struct operation *audited_find(const struct call *call)
{
    if (call->resource)
        return registry_get_resource(call->resource->act);
    return call->operation.data ? registry_find(call->operation) : NULL;
}

/* In z even what everybody may call is administration: administrators sign in there. */
static bool is_administration(const struct call *call, const struct operation *operation)
{
    return operation->right == RIGHT_ADMIN || bytes_are(call->ns, "z");
}

/* Of somebody who may administer what only looks is not recorded. */
static bool is_recorded(const struct call *call, const struct reply *reply, const struct operation *operation)
{
    bool is_administrator = access_is_administrator(call), has_key = call->bearer.data || call->admin.data;
    if (!is_administrator && has_key && reply->fault == FAULT_SKEY)
        return true;
    if (!operation || !is_administration(call, operation))
        return false;
    return access_may_change(call, operation) || (!is_administrator && operation->right == RIGHT_ADMIN);
}

/* What the first member of param says: "set", and what it is about.  The param of a module's operation, and
 * of those that anybody may call, may have anything. */
static struct bytes find_verb(const struct call *call, const struct operation *operation,
                              struct bytes *target_r)
{
    static const char *const names[] = {"ns", "account", "id"};
    bool is_known = operation && operation->right == RIGHT_ADMIN && !operation->application;
    const struct json *param = is_known ? call->param : NULL;
    const struct json *first = param && param->kind == JSON_OBJECT ? param->first : NULL;
    if (!first || first->name.size > VERB_MOST)
        return NO_BYTES;
    if (first->kind == JSON_STRING)
        *target_r = first->value;
    for (size_t i = 0; first->kind == JSON_OBJECT && i < COUNT_OF(names) && !target_r->data; i++) {
        const struct json *named = json_member(first, names[i]);
        if (named && named->kind == JSON_STRING)
            *target_r = named->value;
    }
    if (target_r->size > TARGET_MOST)
        target_r->size = TARGET_MOST;
    return first->name;
}

static const char *describe_caller(const struct call *call)
{
    bool is_administrator = access_is_administrator(call);
    struct bytes account = is_administrator ? call->administrator : call->caller.account;
    if (account.data)
        return arena_printf(call->arena, "account %.*s", (int)account.size, account.data);
    return is_administrator ? "key" : "nobody";
}

static void audited_write(const struct settings *settings, const struct call *call, const struct reply *reply,
                          const struct operation *operation)
{
    bool is_administrator = access_is_administrator(call);
    struct bytes target = NO_BYTES, verb = is_administrator ? find_verb(call, operation, &target) : NO_BYTES;
    if (is_administrator && call->resource)
        target = bytes_of(arena_printf(call->arena, "%.*s/%.*s", (int)call->resource->class.size,
                                       call->resource->class.data, (int)call->resource->id.size,
                                       call->resource->id.data));
    const char *name = operation ? operation->name : "unknown";
    const struct audit_event event = {
        .who = bytes_of(describe_caller(call)),
        .operation = verb.size
                         ? bytes_of(arena_printf(call->arena, "%s %.*s", name, (int)verb.size, verb.data))
                         : bytes_of(name),
        .ns = call->ns.data ? call->ns : NO_BYTES,
        .target = target,
        .outcome = bytes_of(reply->fault ? reply_code(reply) : "done"),
        .is_of_stranger = !is_administrator,
    };
    audit_note(settings, &event);
}

void audited_note(const struct settings *settings, const struct call *call, const struct reply *reply)
{
    if (!reply->fault && !access_is_administrator(call) && !bytes_are(call->ns, "z"))
        return;
    if (reply->fault == FAULT_ELSEWHERE) /* another worker has it */
        return;
    const struct operation *operation = audited_find(call);
    if (is_recorded(call, reply, operation))
        audited_write(settings, call, reply, operation);
}
