/* judge: a question for each document; teams are loaded as the newest. */
#include "operation/judge.h"

#include "operation/reply.h"

static enum fault load(void *context, struct bytes class, struct bytes id, const struct document **document_r)
{
    struct attempt *attempt = context;
    const struct document_name name = {class, id};
    if (attempt->is_open)
        return transaction_consult(attempt->transaction, name, document_r);
    return documents_newest(attempt->worker_context->documents, attempt->ns, attempt->call->arena, &name, 1,
                            document_r);
}

static struct rules_question ask(struct attempt *attempt)
{
    struct call *call = attempt->call;
    return (struct rules_question){.rules = call->rules,
                                   .caller = &call->caller,
                                   .load = load,
                                   .context = attempt,
                                   .arena = call->arena};
}

enum fault judge_read(struct attempt *attempt, const struct document *document, bool *may_r,
                      struct rules_view *view_r)
{
    *view_r = (struct rules_view){0};
    *may_r = true;
    if (!attempt->call->rules)
        return FAULT_NONE;
    struct rules_question question = ask(attempt);
    *may_r = rules_may_read(&question, document, view_r);
    return question.fault;
}

enum fault judge_list(struct attempt *attempt, const struct document *document, bool *may_r,
                      struct rules_view *view_r)
{
    *view_r = (struct rules_view){0};
    *may_r = true;
    if (!attempt->call->rules)
        return FAULT_NONE;
    struct rules_question question = ask(attempt);
    *may_r = rules_may_list(&question, document, view_r);
    return question.fault;
}

enum fault judge_name(struct attempt *attempt, const struct draft *draft, struct bytes item_class,
                      bool *may_r)
{
    *may_r = true;
    if (!attempt->call->rules)
        return FAULT_NONE;
    struct rules_question question = ask(attempt);
    *may_r = rules_may_name(&question, draft, item_class);
    return question.fault;
}

enum fault judge_changes(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct draft *draft;
    if (!call->rules || !attempt->operation->obeys_rules)
        return FAULT_NONE;
    for (size_t i = 0; (draft = transaction_draft(attempt->transaction, i)); i++) {
        struct rules_question question = ask(attempt);
        if (rules_may_change(&question, draft))
            continue;
        if (question.fault)
            return question.fault;
        const struct header *header = &draft_base(draft)->header;
        return reply_fault(call, attempt->reply, FAULT_SRULE, NULL,
                           arena_copy(call->arena, header->class.data, header->class.size),
                           arena_copy(call->arena, header->id.data, header->id.size), NULL);
    }
    return FAULT_NONE;
}
