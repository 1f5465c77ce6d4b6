/* push_judge: the account becomes the caller of the task while its matches are judged. */
#include "operation/push/push_judge.h"

#include "model/definition.h"
#include "operation/caller.h"
#include "operation/judge.h"
#include "operation/stored_caller.h"

enum {
    PAGE_MOST = 256,           /* documents of a class that are read together */
    PAGE_BYTES_MOST = 8 << 20, /* memory of these */
};

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

/* --- a class of which many documents were written --- */

static enum fault judge_page(struct attempt *attempt, const struct document_name *names, size_t count,
                             int64_t since, int64_t *version_r)
{
    const struct document **documents = ARENA_ARRAY(attempt->call->arena, const struct document *, count);
    size_t done = 0;
    enum fault fault = FAULT_NONE;
    while (done < count && !fault && !*version_r) {
        fault = documents_newest_part(attempt->worker_context->documents, attempt->ns, attempt->call->arena,
                                      names + done, count - done, PAGE_BYTES_MOST, documents + done);
        for (; done < count && !fault && !*version_r && documents[done]; done++)
            fault = judge_news(attempt, documents[done], since, true, version_r);
    }
    return fault;
}

/* `last`: the id before the page; then its last. */
static enum fault judge_next_page(struct attempt *attempt, struct bytes class, int64_t since,
                                  struct builder *last, int64_t *version_r, bool *is_end_r)
{
    struct arena *arena = attempt->call->arena;
    struct bytes *ids;
    size_t count;
    enum fault fault =
        store_subscriptions_written(documents_store(attempt->worker_context->documents), attempt->ns, arena,
                                    class, builder_bytes(last), since, PAGE_MOST, &ids, &count);
    if (fault)
        return fault;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, count);
    for (size_t i = 0; i < count; i++)
        names[i] = (struct document_name){class, ids[i]};
    fault = judge_page(attempt, names, count, since, version_r);
    *is_end_r = count < PAGE_MOST;
    if (count) {
        last->size = 0;
        builder_add_bytes(last, ids[count - 1]);
    }
    return fault;
}

/* Reads on until one may be known; the memory of a page is freed behind it. */
static enum fault judge_class(struct attempt *attempt, struct bytes class, int64_t since, int64_t *version_r)
{
    struct arena *arena = attempt->call->arena;
    struct builder last = {0};
    bool is_end = false;
    enum fault fault = FAULT_NONE;
    while (!is_end && !*version_r && !fault) {
        attempt->call->arena = arena_create("push");
        fault = judge_next_page(attempt, class, since, &last, version_r, &is_end);
        arena_destroy(attempt->call->arena);
        attempt->call->arena = arena;
    }
    builder_free(&last);
    return fault;
}

/* --- the matches --- */

static enum fault judge_match(struct attempt *attempt, const struct matched_definition *matched,
                              int64_t *version_r)
{
    struct definition definition;
    *version_r = 0;
    if (!definition_read(attempt->call->arena, matched->text, &definition) || definition.collection.data)
        return FAULT_NONE;
    if (definition.id.data)
        return judge_news_of(attempt, (struct document_name){definition.class, definition.id},
                             matched->version, false, version_r);
    if (matched->id.size)
        return judge_news_of(attempt, (struct document_name){definition.class, matched->id}, matched->version,
                             true, version_r);
    return judge_class(attempt, definition.class, matched->version, version_r);
}

/* Each definition once: those of one are neighbours. */
static enum fault reduce(struct attempt *attempt, struct matched_list *list)
{
    struct matched_definition *kept =
        ARENA_ARRAY(attempt->call->arena, struct matched_definition, list->count);
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct matched_definition matched = list->matched[i];
        if (count && bytes_equal(kept[count - 1].text, matched.text))
            continue;
        enum fault fault = call_is_judged(attempt->call)
                               ? judge_match(attempt, &list->matched[i], &matched.version)
                               : FAULT_NONE;
        if (fault)
            return fault;
        if (matched.version)
            kept[count++] = matched;
    }
    list->matched = kept;
    list->count = count;
    return FAULT_NONE;
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
    call->filters = rights.filters;
    if (call_is_judged(call))
        fault = judge_all(attempt, &rights.own->conf.accounts, subscription, list);
    else if (rights.level < LEVEL_READ)
        list->count = 0;
    else
        fault = reduce(attempt, list);
    call->rules = NULL;
    call->filters = NULL;
    call->caller = (struct rules_caller){0};
    return fault;
}
