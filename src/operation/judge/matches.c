/* matches: the commit has found them; the answer reports them. */
#include "operation/judge/matches.h"

#include "model/schema/definition.h"
#include "operation/access/access.h"
#include "operation/judge/judge_matches.h"
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
                (struct document_name){arena_keep(arena, header->class), arena_keep(arena, header->id)};
    }
}

/* The matches of the answer, each with the documents that were written and may be of it. */
struct expanded {
    struct matched_definition *matches;
    size_t *places; /* of the definitions */
    size_t count, room, place_room;
};

static void expand(const struct attempt *attempt, const struct matched_definition *match, size_t place,
                   struct expanded *expanded)
{
    struct arena *arena = attempt->call->arena;
    struct definition definition;
    if (!definition_read(arena, match->text, &definition))
        return;
    for (size_t i = 0; i < attempt->written_count; i++) {
        const struct document_name *name = &attempt->written[i];
        if (!bytes_equal(name->class, definition.class) ||
            (definition.id.data && !bytes_equal(name->id, definition.id)))
            continue;
        ARENA_GROW(arena, expanded->matches, expanded->count, expanded->room);
        ARENA_GROW(arena, expanded->places, expanded->count, expanded->place_room);
        expanded->matches[expanded->count] =
            (struct matched_definition){.text = match->text, .version = match->version, .id = name->id};
        expanded->places[expanded->count++] = place;
    }
}

enum { EXPANDED_MOST = 4096 }; /* judged at once */

/* Of which definitions may the caller know? */
static enum fault judge_definitions(struct attempt *attempt, const struct match *match, bool *may_r)
{
    struct expanded expanded = {0};
    enum fault fault = FAULT_NONE;
    memset(may_r, 0, match->count * sizeof *may_r);
    for (size_t i = 0; i < match->count && !fault; i++) {
        expand(attempt, &match->definitions[i], i, &expanded);
        if (expanded.count < EXPANDED_MOST && i + 1 < match->count)
            continue;
        int64_t *versions = ARENA_ARRAY(attempt->call->arena, int64_t, expanded.count);
        fault = judge_matches(attempt, expanded.matches, expanded.count, versions);
        for (size_t k = 0; k < expanded.count && !fault; k++)
            may_r[expanded.places[k]] |= versions[k] > 0;
        expanded.count = 0;
    }
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
    reply_enter(attempt->reply, PHASE_SYNC); /* the commit has happened: a fault must not deny it */
    bool *may = is_judged(attempt) ? ARENA_ARRAY(attempt->call->arena, bool, match->count) : NULL;
    enum fault fault = may ? judge_definitions(attempt, match, may) : FAULT_NONE;
    if (fault)
        return fault;
    builder_add_text(body, "[");
    for (size_t i = 0; i < match->count; i++) {
        if (may && !may[i])
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
