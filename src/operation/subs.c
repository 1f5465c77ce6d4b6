/* subs: the commit has found out; here it is told. */
#include "operation/subs.h"

#include "document/definition.h"

enum fault subs_check_session(struct call *call, struct reply *reply)
{
    if (!call->session.data || definition_is_session(call->session))
        return FAULT_NONE;
    return reply_wrong_argument(call, reply, "session",
                                "16 to 64 letters, digits, '-' and '_' are expected.");
}

void subs_write(const struct attempt *attempt, struct builder *body)
{
    const struct touch *touch = attempt->transaction ? transaction_touch(attempt->transaction) : NULL;
    if (!attempt->call->session.data || !touch || !touch->is_known)
        return;
    if (body->size > 1)
        builder_add_text(body, ",");
    builder_add_text(body, "\"subs\":");
    if (!touch->has_own) {
        builder_add_text(body, "null");
        return;
    }
    builder_add_text(body, "[");
    for (size_t i = 0; i < touch->count; i++) {
        builder_printf(body, "%s[", i ? "," : "");
        json_add_string(body, touch->definitions[i].text);
        builder_add_text(body, ",");
        builder_add_i64(body, touch->definitions[i].version);
        builder_add_text(body, "]");
    }
    builder_add_text(body, "]");
}
