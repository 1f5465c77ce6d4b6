/* matches: the commit has found them; the answer reports them. */
#include "operation/matches.h"

#include "model/definition.h"
#include "store/store_commit.h"
#include "operation/reply.h"
#include "document/transaction.h"

enum fault matches_check_session(struct call *call, struct reply *reply)
{
    if (!call->session.data || definition_is_session(call->session))
        return FAULT_NONE;
    return reply_wrong_argument(call, reply, "session",
                                "16 to 64 letters, digits, '-' and '_' are expected.");
}

void matches_write(const struct attempt *attempt, struct builder *body)
{
    const struct match *match = attempt->transaction ? transaction_match(attempt->transaction) : NULL;
    if (!attempt->call->session.data || !match || !match->is_known)
        return;
    if (body->size > 1)
        builder_add_text(body, ",");
    builder_add_text(body, "\"subs\":");
    if (!match->has_own) {
        builder_add_text(body, "null");
        return;
    }
    builder_add_text(body, "[");
    for (size_t i = 0; i < match->count; i++) {
        builder_printf(body, "%s[", i ? "," : "");
        json_add_string(body, match->definitions[i].text);
        builder_add_text(body, ",");
        builder_add_i64(body, match->definitions[i].version);
        builder_add_text(body, "]");
    }
    builder_add_text(body, "]");
}
