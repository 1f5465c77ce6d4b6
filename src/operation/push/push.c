/* push: notifies a session that is closed of the matches of its definitions (push.md): the task of the
 * commits that have matched them (subscriptions.md). param {"session", "again"} → nothing.
 *
 * A message that is sent cannot be taken back, so it is sent before the commit, which only ends the task: a
 * message may come twice, none is lost.  Matches are deleted as soon as they are sent; a repeated run finds
 * nothing more.  While there is an address no match is deleted unsent: an open connection does not prove that
 * a client reads from it. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "model/schema/definition.h"
#include "operation/access/caller.h"
#include "operation/access/stored_caller.h"
#include "operation/attempt.h"
#include "operation/judge/judge.h"
#include "operation/judge/judge_losses.h"
#include "operation/judge/judge_matches.h"
#include "operation/push/push_send.h"
#include "operation/reader.h"
#include "operation/reply.h"
#include "operation/signed_text.h"
#include "operation/tasks/task_request.h"
#include "segment/feed.h"
#include "store/collections/store_subscriptions.h"
#include "store/documents/store_commit.h"

/* --- who may see it --- */

/* What may the caller that declared a subscription know of the noted matches at this moment?
 *
 * A message is sent to a browser that is closed, for an account that may have lost its rights since.  Where
 * access rules decide, each match is judged before anything is sent, with the present roles of the account: a
 * definition of a document by that document, one of a class by the documents of the class that were written.
 * A change that the caller may not see, a document that it may no longer read, and one that is gone wake
 * nobody.  Collections are not judged: they match nothing.  The account becomes the caller of the task while
 * its matches are judged. */

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
    enum fault fault = FAULT_FIRST(judge_matches(attempt, list->matched, list->count, versions),
                                   judge_losses(attempt, list->matched, list->count, versions));
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

/* Reduces the list to what may be sent, each definition once, with a version that the caller may know. */
static enum fault push_judge(struct attempt *attempt, const struct subscription *subscription,
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

/* --- push --- */

enum {
    MESSAGE_MOST = 3800, /* bytes of JSON; a larger message only states that there are matches */
    TOPIC_BYTES = 32,
    LIMIT_S = 60,
    LISTENER_MS = 60000, /* the delay for a session that seems to be connected */
};

/* One run. */
struct pushing {
    struct attempt *attempt;
    struct arena *arena;
    struct store *store;
    struct bytes session, context; /* of the subscription; NO_BYTES: it has none */
    bool is_again;                 /* send it now, even to a connected session */
    struct matched_list list;
};

static struct bytes push_compose(const struct pushing *pushing, bool with_all)
{
    struct builder text = {0};
    json_add_text(&text, "{\"ns\":", pushing->attempt->call->ns);
    json_add_text(&text, ",\"session\":", pushing->session);
    if (pushing->context.data)
        json_add_text(&text, ",\"context\":", pushing->context);
    builder_add_text(&text, ",\"changed\":[");
    for (size_t i = 0; with_all && i < pushing->list.count && text.size <= MESSAGE_MOST; i++) {
        const struct matched_definition *matched = &pushing->list.matched[i];
        builder_printf(&text, "%s", i ? ",[" : "[");
        json_add_string(&text, matched->text);
        builder_printf(&text, ",%" PRId64 "]", matched->version);
    }
    builder_add_text(&text, "]}");
    return builder_take(&text, pushing->arena);
}

/* Messages about the same definitions replace each other; no definitions: about all.  The topic includes the
 * session's name, which the push service does not know, so it reveals nothing about them. */
static const char *make_topic(const struct pushing *pushing, bool with_all)
{
    struct builder names = {0};
    char digest[CRYPTO_SHA256_HEX + 1];
    signed_text_add_part(&names, pushing->session);
    for (size_t i = 0; with_all && i < pushing->list.count; i++)
        signed_text_add_part(&names, pushing->list.matched[i].text);
    crypto_sha256_hex(builder_bytes(&names), digest);
    builder_free(&names);
    return arena_copy(pushing->arena, digest, TOPIC_BYTES);
}

static enum fault push_forget(const struct pushing *pushing)
{
    return store_subscriptions_forget_matched(pushing->store, pushing->attempt->ns, pushing->arena,
                                              pushing->session, pushing->list.taking);
}

/* Requests a task that sends the recorded matches later. */
static enum fault run_again(const struct pushing *pushing, int64_t delay_ms)
{
    struct task_excess excess;
    struct builder param = {0};
    json_add_text(&param, "{\"session\":", pushing->session);
    builder_add_text(&param, ",\"again\":true}");
    const struct task_request request = {
        .operation = &builtin_push,
        .param = {arena_copy(pushing->arena, param.data, param.size), param.size},
        .resource = pushing->session,
        .delay_ms = delay_ms,
        .priority = TASK_PRIORITY,
    };
    builder_free(&param);
    return task_request_add(pushing->attempt, &request, &excess);
}

/* The subscription has ended, unless the page has declared another address meanwhile: then the message is
 * sent there at once. */
static enum fault end_address(const struct pushing *pushing, const struct webpush_target *target)
{
    bool is_gone;
    return FAULT_FIRST(store_subscriptions_forget_push(pushing->store, pushing->attempt->ns, pushing->arena,
                                                       pushing->session, target->endpoint, &is_gone),
                       is_gone ? push_forget(pushing) : run_again(pushing, 0));
}

static enum fault push_refuse(const struct pushing *pushing, const struct push_outcome *outcome)
{
    struct attempt *attempt = pushing->attempt;
    attempt->is_final = outcome->verdict != PUSH_LATER;
    attempt->retry_after_s = outcome->retry_after_s;
    return reply_fault(attempt->call, attempt->reply, FAULT_XPUSH, outcome->words, NULL);
}

static enum fault send_push(const struct pushing *pushing, const struct webpush_target *target,
                            const struct curve_key *key)
{
    const struct settings *settings = pushing->attempt->worker_context->settings;
    struct push_outcome outcome = {.verdict = PUSH_TOO_LARGE};
    struct bytes text = push_compose(pushing, true);
    if (text.size <= MESSAGE_MOST)
        push_send(settings, pushing->arena, target, key, text, make_topic(pushing, true), &outcome);
    if (outcome.verdict == PUSH_TOO_LARGE)
        push_send(settings, pushing->arena, target, key, push_compose(pushing, false),
                  make_topic(pushing, false), &outcome);
    switch (outcome.verdict) {
    case PUSH_TAKEN:
        return push_forget(pushing);
    case PUSH_GONE:
        return end_address(pushing, target);
    default:
        return push_refuse(pushing, &outcome);
    }
}

static enum fault send_to(const struct pushing *pushing, const struct push_address *address)
{
    struct attempt *attempt = pushing->attempt;
    const struct settings *settings = attempt->worker_context->settings;
    struct webpush_target target = {.endpoint = address->endpoint};
    struct curve_key key;
    const char *refusal = webpush_read_target(pushing->arena, address->endpoint, address->p256dh,
                                              address->auth, push_send_may_be_local(settings), &target);
    if (!refusal)
        refusal = push_send_refuse_service(settings, target.origin);
    if (refusal) {
        log_often(LOG_LEVEL_WARNING, refusal, "push address dropped: %s", refusal);
        return end_address(pushing, &target);
    }
    enum fault fault = push_key_fetch(settings, &key);
    if (fault)
        return reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
    fault = send_push(pushing, &target, &key);
    explicit_bzero(&key, sizeof key);
    return fault;
}

static enum fault push_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct pushing pushing = {.attempt = attempt,
                              .arena = attempt->call->arena,
                              .store = documents_store(attempt->worker_context->documents)};
    const struct subscription_caller anybody = {.is_administrator = true};
    struct subscription subscription;
    bool is_there;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "session again"),
                                   reader_text(&reader, attempt->call->param, "session", &pushing.session));
    if (!fault && !definition_is_session(pushing.session))
        fault = reader_wrong(&reader, NULL, "session", "The name of a session is expected.");
    if (!fault)
        fault = FAULT_FIRST(reader_boolean(&reader, attempt->call->param, "again", &pushing.is_again),
                            store_subscriptions_take_matched(pushing.store, attempt->ns, pushing.arena,
                                                             pushing.session, &pushing.list));
    if (fault || !pushing.list.count)
        return fault;
    fault = store_subscriptions_read(pushing.store, attempt->ns, pushing.arena, pushing.session, &anybody,
                                     false, &subscription, &is_there);
    if (fault)
        return fault;
    pushing.context = subscription.context;
    if (is_there && subscription.push.endpoint.data)
        fault = push_judge(attempt, &subscription, &pushing.list);
    else
        pushing.list.count = 0;
    if (fault)
        return attempt->reply->fault == fault ? fault
                                              : reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
    if (!pushing.list.count)
        return push_forget(&pushing);
    if (!pushing.is_again &&
        feed_session_listens(attempt->worker_context->segment, attempt->ns, pushing.session))
        return run_again(&pushing, LISTENER_MS);
    return send_to(&pushing, &subscription.push);
}

const struct operation builtin_push = {.name = PUSH_OPERATION,
                                       .right = RIGHT_ADMIN,
                                       .work = push_work,
                                       .task = {.queue = PUSH_QUEUE, .limit_s = LIMIT_S}};
