/* subs: a session declares its subscriptions (subscriptions.md).  The session is the argument of that
 * name.  param {"defs":[…]} | {"add":[…],"drop":[…]}, with "life", "push", "context"; {"delete":true};
 * nothing: only reads → out {"v","until","defs":[…],"push":bool,"context"}.  Changes take effect at once,
 * outside the commit of the operation, and may be repeated. */
#include "operation/builtin.h"

#include <inttypes.h>
#include <stdlib.h>

#include "model/schema/definition.h"
#include "operation/access/access.h"
#include "operation/access/stored_caller.h"
#include "operation/classes.h"
#include "operation/judge/matches.h"
#include "operation/judge/sight.h"
#include "operation/push/push_send.h"
#include "operation/quota.h"
#include "operation/reader.h"
#include "operation/reply.h"
#include "store/collections/store_subscriptions.h"

enum {
    LIFE_STANDARD = 1440, /* minutes */
    MINUTES_A_DAY = 1440,
    CONTEXT_MOST = 2048,
};

struct subs_request {
    struct attempt *attempt;
    struct reader reader;
    struct arena *arena;
    const struct json *param;
    struct subscription_change change;
    struct push_address push;
    struct bytes context;
};

/* --- definitions --------------------------------------------------------------------------------- */

struct keyed {
    struct bytes key, text;
    size_t value_count;
};

/* As struct subscription_change has them. */
struct keyed_list {
    struct bytes *keys, *texts;
    size_t *value_counts, count;
};

static int compare_keys(const void *a, const void *b)
{
    return bytes_compare(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* Is there such a collection, of so many properties? */
static enum fault check_collection(const struct subs_request *request, const char *member,
                                   const struct json *element, const struct definition *definition)
{
    const struct schema *schema;
    enum fault fault = classes_schema(request->attempt, &schema);
    if (fault)
        return fault;
    const struct schema_collection *collection =
        schema_find_collection(schema_find_class(schema, definition->class), definition->collection);
    if (collection && collection->key_count == (size_t)definition->value_count)
        return FAULT_NONE;
    if (!sight_discloses_collection(request->attempt, definition->class, collection))
        return FAULT_NONE;
    fault = classes_confirm(request->attempt, FAULT_NONE);
    if (fault)
        return fault;
    if (collection)
        return reader_wrong_value(
            &request->reader, element, member,
            arena_printf(request->arena, "Number of values expected: %zu.", collection->key_count));
    return reply_fault(request->reader.call, request->reader.reply, FAULT_NCOLLECTION, NULL,
                       arena_copy(request->arena, definition->class.data, definition->class.size),
                       arena_copy(request->arena, definition->collection.data, definition->collection.size),
                       NULL);
}

static enum fault read_definition(const struct subs_request *request, const char *member,
                                  const struct json *element, bool is_checked, struct keyed *keyed_r)
{
    struct definition definition;
    int64_t most = request->reader.settings->limit_definition_bytes;
    if (element->kind == JSON_STRING && element->value.size > (size_t)most)
        return reader_over(&request->reader, element, "limit_definition_bytes", most,
                           (int64_t)element->value.size);
    if (element->kind == JSON_STRING && definition_is_of_records(element->value))
        return reader_wrong_value(&request->reader, element, member,
                                  "Records have no versions: they can be followed by live events only.");
    if (element->kind != JSON_STRING || !definition_read(request->arena, element->value, &definition))
        return reader_wrong_value(&request->reader, element, member,
                                  "Class, Class/id or Class/collection@value is expected.");
    if (is_checked && definition.collection.data) {
        enum fault fault = check_collection(request, member, element, &definition);
        if (fault)
            return fault;
    }
    struct builder key = {0};
    definition_add_key(&definition, &key);
    *keyed_r = (struct keyed){.key = {arena_copy(request->arena, key.data, key.size), key.size},
                              .text = definition.text,
                              .value_count = (size_t)definition.value_count};
    builder_free(&key);
    return FAULT_NONE;
}

/* A list of definitions, each once, in the order of their keys; absent: none. */
static enum fault read_definitions(const struct subs_request *request, const char *member, bool is_checked,
                                   struct keyed_list *keyed_r)
{
    const struct json *list;
    *keyed_r = (struct keyed_list){0};
    if (!json_member(request->param, member))
        return FAULT_NONE;
    enum fault fault = reader_array(&request->reader, request->param, member, "limit_definitions",
                                    request->reader.settings->limit_definitions, &list);
    if (fault)
        return fault;
    struct keyed *keyed = ARENA_ARRAY(request->arena, struct keyed, list->count);
    size_t number = 0;
    for (const struct json *element = list->first; element; element = element->next, number++) {
        fault = read_definition(request, member, element, is_checked, &keyed[number]);
        if (fault)
            return fault;
    }
    qsort(keyed, number, sizeof *keyed, compare_keys);
    keyed_r->keys = ARENA_ARRAY(request->arena, struct bytes, number);
    keyed_r->texts = ARENA_ARRAY(request->arena, struct bytes, number);
    keyed_r->value_counts = ARENA_ARRAY(request->arena, size_t, number);
    for (size_t i = 0; i < number; i++) {
        const size_t count = keyed_r->count;
        if (count && bytes_equal(keyed[i].key, keyed_r->keys[count - 1]))
            continue;
        keyed_r->keys[count] = keyed[i].key;
        keyed_r->texts[count] = keyed[i].text;
        keyed_r->value_counts[count] = keyed[i].value_count;
        keyed_r->count++;
    }
    return FAULT_NONE;
}

static enum fault read_lists(struct subs_request *request)
{
    struct subscription_change *change = &request->change;
    struct keyed_list added, dropped = {0};
    change->is_whole = json_member(request->param, "defs") != NULL;
    change->may_create = change->is_whole || json_member(request->param, "add");
    if (change->is_whole && (json_member(request->param, "add") || json_member(request->param, "drop")))
        return reader_wrong(&request->reader, request->param, "defs",
                            "Either defs is expected, or add and drop.");
    enum fault fault = FAULT_FIRST(read_definitions(request, change->is_whole ? "defs" : "add", true, &added),
                                   read_definitions(request, "drop", false, &dropped));
    change->keys = added.keys;
    change->texts = added.texts;
    change->value_counts = added.value_counts;
    change->count = added.count;
    change->drops = dropped.keys;
    change->drop_value_counts = dropped.value_counts;
    change->drop_count = dropped.count;
    return fault;
}

/* --- the rest of a change ------------------------------------------------------------------------ */

/* The keys stand beside the endpoint or, as PushSubscription.toJSON() has it, in `keys`. */
static enum fault read_push(struct subs_request *request)
{
    const struct reader *reader = &request->reader;
    const struct json *push = json_member(request->param, "push");
    if (!push)
        return FAULT_NONE;
    request->change.push = &request->push;
    if (push->kind == JSON_NULL)
        return FAULT_NONE;
    if (push->kind != JSON_OBJECT || push->is_shallow)
        return reader_wrong_value(reader, push, "push",
                                  "An object with endpoint, p256dh and auth, or null, is expected.");
    const struct json *keys = json_member(push, "keys");
    enum fault fault = reader_members(
        reader, push, keys ? "endpoint expirationTime keys" : "endpoint expirationTime p256dh auth");
    if (!fault && keys)
        fault = reader_members(reader, keys, "p256dh auth");
    if (!keys)
        keys = push;
    if (!fault)
        fault = FAULT_FIRST(reader_text(reader, push, "endpoint", &request->push.endpoint),
                            reader_text(reader, keys, "p256dh", &request->push.p256dh),
                            reader_text(reader, keys, "auth", &request->push.auth));
    if (fault)
        return fault;
    struct webpush_target target;
    const char *refusal =
        webpush_read_target(request->arena, request->push.endpoint, request->push.p256dh, request->push.auth,
                            push_send_may_be_local(reader->settings), &target);
    if (!refusal)
        refusal = push_send_refuse_service(reader->settings, target.origin);
    if (refusal)
        return reader_wrong_value(reader, push, "push", refusal);
    return FAULT_NONE;
}

static enum fault read_life(struct subs_request *request)
{
    int64_t most = request->reader.settings->limit_subscription_days * MINUTES_A_DAY, life;
    enum fault fault = reader_integer(&request->reader, request->param, "life", 1, INT32_MAX, 0, &life);
    if (fault)
        return fault;
    if (life > most)
        return reader_over(&request->reader, json_member(request->param, "life"), "limit_subscription_days",
                           request->reader.settings->limit_subscription_days,
                           (life + MINUTES_A_DAY - 1) / MINUTES_A_DAY);
    request->change.life = life ? life : most < LIFE_STANDARD ? -most : -LIFE_STANDARD;
    return FAULT_NONE;
}

static enum fault read_context(struct subs_request *request)
{
    if (!json_member(request->param, "context"))
        return FAULT_NONE;
    enum fault fault = reader_text(&request->reader, request->param, "context", &request->context);
    if (!fault && request->context.size > CONTEXT_MOST)
        fault = reader_wrong(&request->reader, request->param, "context",
                             "A text of up to 2048 bytes is expected.");
    request->change.context = &request->context;
    return fault;
}

static enum fault read_change(struct subs_request *request)
{
    enum fault fault = FAULT_FIRST(read_lists(request), read_life(request), read_push(request));
    request->change.caller = matches_caller(request->attempt->call);
    quota_find_numbers(request->attempt->call, QUOTA_SUBSCRIPTIONS_HELD, request->change.mosts);
    if (!request->change.caller.credential.data)
        request->change.caller.credential = stored_caller_token(request->attempt->call);
    if (!request->change.caller.is_administrator)
        request->change.client = request->attempt->call->client;
    return fault ? fault : read_context(request);
}

/* --- the operation ------------------------------------------------------------------------------- */

static void write_subscription(struct builder *body, const struct subscription *subscription)
{
    builder_printf(body, "{\"v\":%" PRId64 ",\"until\":%" PRId64 ",\"defs\":[", subscription->version,
                   subscription->until);
    for (size_t i = 0; i < subscription->count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, subscription->definitions[i]);
    }
    builder_printf(body, "],\"push\":%s", subscription->push.endpoint.data ? "true" : "false");
    if (subscription->context.data)
        json_add_text(body, ",\"context\":", subscription->context);
    if (subscription->is_on_trial)
        builder_add_text(body, ",\"trial\":true");
    builder_add_text(body, "}");
}

static enum fault refuse_one_more(const struct subs_request *request, const char *limit)
{
    const struct settings *settings = request->reader.settings;
    const struct {
        const char *name;
        int64_t most;
        bool is_share; /* of a client: it may be free later */
    } limits[] = {
        {"limit_definitions", settings->limit_definitions, false},
        {"limit_subscriptions", settings->limit_subscriptions, false},
        {"limit_push_subscriptions", settings->limit_push_subscriptions, false},
        {"limit_client_subscriptions", settings->limit_client_subscriptions, true},
        {"limit_client_definitions", settings->limit_client_definitions, true},
        {"limit_namespace_definitions", settings->limit_namespace_definitions, false},
        {"limit_namespace_definitions_mb", settings->limit_namespace_definitions_mb, false},
        {"quotas.address.subscriptions_held", request->change.mosts[QUOTA_ADDRESS], true},
        {"quotas.account.subscriptions_held", request->change.mosts[QUOTA_ACCOUNT], true},
        {"quotas.namespace.subscriptions_held", request->change.mosts[QUOTA_NAMESPACE], true},
    };
    size_t i = 0;
    while (i + 1 < COUNT_OF(limits) && strcmp(limits[i].name, limit) != 0)
        i++;
    quota_count_refusal(request->attempt, limits[i].name);
    return limits[i].is_share
               ? reader_busy(&request->reader, limits[i].name, limits[i].most)
               : reader_over(&request->reader, NULL, limits[i].name, limits[i].most, limits[i].most + 1);
}

static enum fault look_or_change(struct subs_request *request)
{
    struct attempt *attempt = request->attempt;
    struct store *store = documents_store(attempt->worker_context->documents);
    const struct subscription_caller caller = matches_caller(attempt->call);
    struct subscription subscription;
    const char *limit = NULL;
    bool is_there, is_change = request->param && request->param->first;
    enum fault fault = is_change ? read_change(request) : FAULT_NONE;
    if (fault)
        return fault;
    if (request->change.push && request->push.endpoint.data)
        fault = sight_follow_rules(attempt);
    if (fault)
        return fault;
    if (is_change)
        fault = store_subscriptions_change(store, attempt->ns, request->arena, attempt->call->session,
                                           &request->change, &subscription, &is_there, &limit);
    else
        fault = store_subscriptions_read(store, attempt->ns, request->arena, attempt->call->session, &caller,
                                         !attempt->call->is_read_only, &subscription, &is_there);
    if (fault == FAULT_ALIMIT)
        return refuse_one_more(request, limit);
    if (fault == FAULT_SRULE)
        return reply_wrong_argument(attempt->call, attempt->reply, "session",
                                    "Another account uses this session: another name is expected.");
    if (!fault && !is_there)
        fault = reply_fault(attempt->call, attempt->reply, FAULT_NSUBSCRIPTION, NULL, NULL);
    if (fault)
        return fault;
    attempt->has_acted = is_change;
    write_subscription(attempt->reply->body, &subscription);
    return FAULT_NONE;
}

static enum fault check_members(const struct subs_request *request, bool *is_drop_r)
{
    const struct json *param = request->param;
    enum fault fault =
        FAULT_FIRST(reader_members(&request->reader, param, "add context defs delete drop life push"),
                    reader_boolean(&request->reader, param, "delete", is_drop_r));
    if (!fault && *is_drop_r && param->count > 1)
        fault = reader_wrong(&request->reader, param, "delete", "It must be the only member.");
    return fault;
}

static bool subs_is_look(const struct call *call)
{
    return !call->param || !call->param->first;
}

static enum fault subs_work(struct attempt *attempt)
{
    struct subs_request request = {
        .attempt = attempt,
        .reader = {attempt->worker_context->settings, attempt->call, attempt->reply},
        .arena = attempt->call->arena,
        .param = attempt->call->param};
    bool is_drop = false;
    if (!attempt->call->session.data)
        return reply_wrong_argument(attempt->call, attempt->reply, "session",
                                    "The name of the session is expected.");
    enum fault fault = check_members(&request, &is_drop);
    if (fault || !is_drop)
        return fault ? fault : look_or_change(&request);
    const struct subscription_caller caller = matches_caller(attempt->call);
    fault = store_subscriptions_drop(documents_store(attempt->worker_context->documents), attempt->ns,
                                     request.arena, attempt->call->session, &caller);
    attempt->has_acted = !fault;
    return fault;
}

static int subs_quota(const struct call *call)
{
    return subs_is_look(call) ? -1 : QUOTA_SUBSCRIPTIONS;
}

const struct operation builtin_subs = {.name = "subs",
                                       .right = RIGHT_READ,
                                       .work = subs_work,
                                       .is_look = subs_is_look,
                                       .quota = subs_quota,
                                       .obeys_rules = true};

/* The key that a browser needs to subscribe at its push service (push.md), as
 * applicationServerKey.  → out {"key"} */

static enum fault pushkey_work(struct attempt *attempt)
{
    struct curve_key key;
    struct builder *body = attempt->reply->body;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    enum fault fault = reader_members(&reader, attempt->call->param, "");
    if (fault)
        return fault;
    fault = push_key_fetch(attempt->worker_context->settings, &key);
    if (fault)
        return reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
    explicit_bzero(key.secret, sizeof key.secret);
    builder_add_text(body, "{\"key\":\"");
    push_key_add_public(body, &key);
    builder_add_text(body, "\"}");
    return FAULT_NONE;
}

const struct operation builtin_pushkey = {
    .name = "pushkey", .right = RIGHT_PUBLIC, .only_reads = true, .is_safe = true, .work = pushkey_work};
