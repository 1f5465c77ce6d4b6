/* push_judge: the account becomes the caller of the task while its matches are judged. */
#include "operation/push/push_judge.h"

#include "operation/access/caller.h"
#include "operation/judge/judge.h"
#include "operation/judge/judge_losses.h"
#include "operation/judge/judge_matches.h"
#include "operation/access/stored_caller.h"

/* The session or service key, if one is stored: of a provider's account it is a token, which is not one. */
static bool is_signed_in(struct arena *arena, const struct document *account, struct bytes credential)
{
    struct caller_proof proof;
    const struct caller_claim session = {.digest = credential},
                              key = {.is_service = true, .digest = credential};
    return !credential.data || issuer_is_account(account->header.id) ||
           caller_is_admitted(arena, account, &session, &proof) ||
           caller_is_admitted(arena, account, &key, &proof);
}

/* Is the account, and what it had signed in with, still valid?  Sets the caller. */
static enum fault find_caller(struct attempt *attempt, const struct ns_accounts *accounts,
                              const struct subscription *subscription, bool *is_r)
{
    struct call *call = attempt->call;
    const struct document_name name = {BYTES("Account"), subscription->account};
    const struct document *account;
    *is_r = true;
    if (!subscription->account.size)
        return FAULT_NONE;
    enum fault fault = judge_newest(attempt, &name, 1, SIZE_MAX, &account);
    *is_r = !fault &&
            stored_caller_is_served(call->arena, accounts, subscription->credential, account, false,
                                    &call->caller) &&
            is_signed_in(call->arena, account, subscription->credential);
    return fault;
}

/* --- the matches --- */

/* Each definition once, with its first version: those of one are neighbours. */
static enum fault reduce(struct attempt *attempt, struct matched_list *list)
{
    struct arena *arena = attempt->call->arena;
    struct matched_definition *kept = ARENA_ARRAY(arena, struct matched_definition, list->count);
    int64_t *versions = ARENA_ARRAY(arena, int64_t, list->count);
    size_t count = 0;
    enum fault fault = judge_matches(attempt, list->matched, list->count, versions);
    if (!fault)
        fault = judge_losses(attempt, list->matched, list->count, versions);
    for (size_t i = 0; !fault && i < list->count; i++) {
        const struct matched_definition *matched = &list->matched[i];
        if (!versions[i] || (count && bytes_equal(kept[count - 1].text, matched->text)))
            continue;
        kept[count] = *matched;
        kept[count++].version = versions[i];
    }
    list->matched = kept;
    list->count = count;
    return fault;
}

static enum fault judge_all(struct attempt *attempt, const struct ns_accounts *accounts,
                            const struct subscription *subscription, struct matched_list *list)
{
    bool is_caller;
    enum fault fault = find_caller(attempt, accounts, subscription, &is_caller);
    if (!fault && is_caller)
        return reduce(attempt, list);
    list->count = 0;
    return fault;
}

enum fault push_judge(struct attempt *attempt, const struct subscription *subscription,
                      struct matched_list *list)
{
    struct call *call = attempt->call;
    struct stored_caller_rights rights;
    if (subscription->is_vouched)
        return reduce(attempt, list);
    enum fault fault = stored_caller_find_rights(attempt->worker_context, call, &rights);
    if (fault)
        return fault;
    call->rules = rights.own->rules;
    call->rules_version = call->rules ? rights.own->rules_version : 0;
    call->filters = rights.filters;
    if (call_is_judged(call))
        fault = judge_all(attempt, &rights.own->conf.accounts, subscription, list);
    else if (rights.level < LEVEL_READ)
        list->count = 0;
    else
        fault = reduce(attempt, list);
    call->rules = NULL;
    call->rules_version = 0;
    call->filters = NULL;
    call->caller = (struct rules_caller){0};
    return fault;
}
