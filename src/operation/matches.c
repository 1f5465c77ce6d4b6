/* matches: the commit has found them; the answer reports them. */
#include "operation/matches.h"

#include "model/definition.h"
#include "operation/access.h"
#include "operation/judge.h"
#include "operation/reply.h"
#include "document/transaction.h"

enum fault matches_check_session(struct call *call, struct reply *reply)
{
    if (!call->session.data || definition_is_session(call->session))
        return FAULT_NONE;
    return reply_wrong_argument(call, reply, "session",
                                "16 to 64 letters, digits, '-' and '_' are expected.");
}

struct subscription_caller matches_caller(const struct call *call)
{
    return (struct subscription_caller){.is_administrator = access_is_administrator(call),
                                        .is_ruled = call_is_judged(call),
                                        .account = call->caller.account,
                                        .credential = call->caller_session};
}

/* What a caller changes by an operation that obeys rules it knows: each change has been judged. */
static bool is_judged(const struct attempt *attempt)
{
    return call_is_judged(attempt->call) && !attempt->operation->obeys_rules;
}

static struct bytes keep(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}

void matches_note(struct attempt *attempt)
{
    struct arena *arena = attempt->call->arena;
    const struct transaction *transaction = attempt->transaction;
    const struct draft *draft;
    size_t count = 0;
    attempt->written_count = 0;
    if (!attempt->call->session.data || !is_judged(attempt))
        return;
    for (size_t position = 0; transaction_next_draft(transaction, &position);)
        count++;
    attempt->written = ARENA_ARRAY(arena, struct document_name, count);
    for (size_t position = 0; (draft = transaction_next_draft(transaction, &position));) {
        const struct header *header = &draft_base(draft)->header;
        if (draft_is_changed(draft))
            attempt->written[attempt->written_count++] =
                (struct document_name){keep(arena, header->class), keep(arena, header->id)};
    }
}

/* Has the caller's sight of a document of the definition changed with the commit? */
static enum fault judge_match(struct attempt *attempt, const struct matched_definition *match, bool *may_r)
{
    struct definition definition;
    enum fault fault = FAULT_NONE;
    int64_t version = 0;
    *may_r = false;
    if (!definition_read(attempt->call->arena, match->text, &definition) || definition.collection.data)
        return FAULT_NONE;
    for (size_t i = 0; i < attempt->written_count && !version && !fault; i++) {
        const struct document_name *name = &attempt->written[i];
        bool is_named = definition.id.data != NULL;
        if (bytes_equal(name->class, definition.class) && (!is_named || bytes_equal(name->id, definition.id)))
            fault = judge_news_of(attempt, *name, match->version, !is_named, &version);
    }
    *may_r = version > 0;
    return fault;
}

enum fault matches_write(struct attempt *attempt, struct builder *body)
{
    const struct match *match = attempt->transaction ? transaction_match(attempt->transaction) : NULL;
    const char *separator = "";
    if (!attempt->call->session.data || !match || !match->is_known)
        return FAULT_NONE;
    if (body->size > 1)
        builder_add_text(body, ",");
    builder_add_text(body, "\"subs\":");
    if (!match->has_own) {
        builder_add_text(body, "null");
        return FAULT_NONE;
    }
    builder_add_text(body, "[");
    for (size_t i = 0; i < match->count; i++) {
        bool may = true;
        enum fault fault =
            is_judged(attempt) ? judge_match(attempt, &match->definitions[i], &may) : FAULT_NONE;
        if (fault)
            return fault;
        if (!may)
            continue;
        builder_printf(body, "%s[", separator);
        json_add_string(body, match->definitions[i].text);
        builder_add_text(body, ",");
        builder_add_i64(body, match->definitions[i].version);
        builder_add_text(body, "]");
        separator = ",";
    }
    builder_add_text(body, "]");
    return FAULT_NONE;
}
