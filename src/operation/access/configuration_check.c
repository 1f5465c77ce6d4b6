/* configuration_check: compares each draft with its base. */
#include "operation/access/configuration_check.h"

#include "document/transaction.h"
#include "model/namespace.h"
#include "model/rules/rules.h"
#include "operation/reply.h"

static struct bytes content_of(const struct item *item)
{
    return item && !item_is_tombstone(item) ? item->content : NO_BYTES;
}

/* `problem`: what is expected of the member, or what is at the path in the rules. */
static enum fault configuration_check_refuse(struct attempt *attempt, const struct draft *draft,
                                             const char *item, const char *place, const char *problem)
{
    struct arena *arena = attempt->call->arena;
    struct bytes id = draft_base(draft)->header.id;
    return reply_wrong_argument(attempt->call, attempt->reply, "items",
                                arena_printf(arena, "%s of Namespace/%.*s%s%s: %s", item, (int)id.size,
                                             id.data, *place ? ": " : "", place, problem));
}

static enum fault check_conf(struct attempt *attempt, const struct draft *draft, const struct item *before,
                             const struct item *after)
{
    struct arena *arena = attempt->call->arena;
    const char *member,
        *expected = namespace_refuse_content(arena, content_of(before), content_of(after), &member);
    return expected ? configuration_check_refuse(attempt, draft, "Conf", member, expected) : FAULT_NONE;
}

static enum fault check_rules(struct attempt *attempt, const struct draft *draft, const struct item *after)
{
    struct rules *rules;
    struct rules_problem problem;
    struct bytes text = content_of(after);
    if (!text.data || !rules_read(attempt->call->arena, text, &rules, &problem))
        return FAULT_NONE;
    return configuration_check_refuse(attempt, draft, "Rules", problem.path, problem.expected);
}

static enum fault configuration_check_check(struct attempt *attempt, const struct draft *draft)
{
    static const struct bytes conf = BYTES("Conf"), rules = BYTES("Rules");
    const struct document *base = draft_base(draft);
    const struct item *conf_before = document_find_item(base, conf, BYTES("")),
                      *conf_after = draft_find_item(draft, conf, BYTES("")),
                      *rules_before = document_find_item(base, rules, BYTES("")),
                      *rules_after = draft_find_item(draft, rules, BYTES(""));
    enum fault fault = check_conf(attempt, draft, conf_before, conf_after);
    if (!fault && !bytes_equal(content_of(rules_before), content_of(rules_after)))
        fault = check_rules(attempt, draft, rules_after);
    return fault;
}

enum fault configuration_check(struct attempt *attempt)
{
    const struct draft *draft;
    enum fault fault = FAULT_NONE;
    if (!bytes_equal(attempt->call->ns, BYTES("z")))
        return FAULT_NONE;
    for (size_t position = 0; !fault && (draft = transaction_next_draft(attempt->transaction, &position));)
        if (draft_is_changed(draft) && draft_exists(draft) &&
            bytes_equal(draft_base(draft)->header.class, BYTES("Namespace")))
            fault = configuration_check_check(attempt, draft);
    return fault;
}
