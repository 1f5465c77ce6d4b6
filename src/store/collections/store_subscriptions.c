/* store_subscriptions: calls functions of the database (sql/0013_subscriptions.sql): each is one statement,
 * so it is atomic. */
#include "store/collections/store_subscriptions.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/schedule.h"
#include "model/document/stamp.h"
#include "store/data_keys.h"
#include "store/documents/commit_part.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_shown.h"
#include "store/refusal.h"
#include "store/store_private.h"
#include "store/store_run.h"
#include "store/store_sealing.h"

/* The texts of subscriptions as the database of an encrypted namespace stores them: what
 * it compares is hashed, all else is sealed for its session, the same text as the same.  In other namespaces
 * they stay as they are. */

/* What a text of a session is. */
#define SUBSCRIPTION_DEFINITION "definition"
#define SUBSCRIPTION_ENDPOINT   "push endpoint"
#define SUBSCRIPTION_P256DH     "push p256dh"
#define SUBSCRIPTION_AUTH       "push auth"
#define SUBSCRIPTION_CONTEXT    "context"
#define SUBSCRIPTION_CREDENTIAL "credential"

/* The key of a definition (definition_add_key): of a collection with the hash of its value, of so many
 * values. */
static struct bytes subscription_texts_key(const struct data_keys *keys, struct arena *arena,
                                           struct bytes key, size_t value_count)
{
    struct bytes value = key;
    bool is_document = key.size && key.data[0] == 'd';
    if (!keys->count || !key.size || (key.data[0] != 'm' && !is_document))
        return key;
    struct bytes name = bytes_cut(&value, '@'), class = {name.data + 1, name.size - 1};
    class = bytes_cut(&class, '/');
    struct builder sealed = {0};
    builder_add_bytes(&sealed, name);
    builder_add_text(&sealed, "@");
    builder_add_bytes(&sealed, is_document ? data_keys_seal_id(keys, arena, class, value)
                                           : store_shown_value(keys, arena, class, value, value_count));
    return builder_take(&sealed, arena);
}

static struct bytes subscription_texts_seal(const struct data_keys *keys, struct arena *arena,
                                            struct bytes session, const char *what, struct bytes text)
{
    const struct bytes parts[] = {bytes_of(what), session};
    return data_keys_seal_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, text);
}

/* False: it was altered, or is another session's; it was logged, and the text is NO_BYTES. */
MUST_USE static bool subscription_texts_open(const struct data_keys *keys, struct arena *arena,
                                             struct bytes session, const char *what, struct bytes *text)
{
    const struct bytes parts[] = {bytes_of(what), session};
    if (data_keys_open_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, text))
        return true;
    log_often(LOG_LEVEL_ERROR, what,
              "a text of a subscription cannot be decrypted: it was altered, or is another session's: %s",
              what);
    *text = NO_BYTES;
    return false;
}

enum { TRIAL_NOT, TRIAL_LASTS, TRIAL_PASSES };

/* --- a session's subscription -------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Texts that were read, as they were written. */
static enum fault open_texts(const struct data_keys *keys, struct arena *arena, struct bytes session,
                             struct subscription *subscription)
{
    struct push_address *push = &subscription->push;
    bool is_right =
        subscription_texts_open(keys, arena, session, SUBSCRIPTION_ENDPOINT, &push->endpoint) &&
        subscription_texts_open(keys, arena, session, SUBSCRIPTION_P256DH, &push->p256dh) &&
        subscription_texts_open(keys, arena, session, SUBSCRIPTION_AUTH, &push->auth) &&
        subscription_texts_open(keys, arena, session, SUBSCRIPTION_CONTEXT, &subscription->context) &&
        subscription_texts_open(keys, arena, session, SUBSCRIPTION_CREDENTIAL, &subscription->credential);
    for (size_t i = 0; i < subscription->count; i++)
        is_right = is_right && subscription_texts_open(keys, arena, session, SUBSCRIPTION_DEFINITION,
                                                       &subscription->definitions[i]);
    if (keys->count && subscription->count)
        qsort(subscription->definitions, subscription->count, sizeof *subscription->definitions,
              compare_texts);
    return is_right ? FAULT_NONE : FAULT_BCONTENT;
}

/* Rows of subscription_show: one of the subscription, then one per definition. */
static bool read_rows(const struct pg_result *rows, struct arena *arena, struct subscription *subscription,
                      bool *may_return_r)
{
    enum { DEF, VERSION, UNTIL, ENDPOINT, P256DH, AUTH, CONTEXT, TRIAL };
    *subscription = (struct subscription){0};
    *may_return_r = false;
    if (!pg_rows(rows))
        return false;
    subscription->version = pg_get_i64(rows, 0, VERSION);
    subscription->until = pg_get_i64(rows, 0, UNTIL);
    subscription->push.endpoint = pg_get_text(rows, 0, ENDPOINT);
    subscription->push.p256dh = pg_get_text(rows, 0, P256DH);
    subscription->push.auth = pg_get_text(rows, 0, AUTH);
    subscription->context = pg_get_text(rows, 0, CONTEXT);
    subscription->is_on_trial = pg_get_i64(rows, 0, TRIAL) != TRIAL_NOT;
    *may_return_r = pg_get_i64(rows, 0, TRIAL) == TRIAL_PASSES;
    subscription->definitions = ARENA_ARRAY(arena, struct bytes, (size_t)pg_rows(rows));
    for (int row = 1; row < pg_rows(rows); row++)
        subscription->definitions[subscription->count++] = pg_get_text(rows, row, DEF);
    return true;
}

static struct bytes account_of(const struct subscription_caller *caller)
{
    return caller->is_administrator ? NO_BYTES : caller->account.data ? caller->account : BYTES("");
}

static void add_caller(struct pg_params *params, const struct subscription_caller *caller)
{
    PG_PARAMS_ADD(params, PG_TEXT(account_of(caller)), PG_I32(caller->is_ruled));
}

enum fault store_subscriptions_read(struct store *store, int ns, struct arena *arena, struct bytes session,
                                    const struct subscription_caller *caller, bool by_session,
                                    struct subscription *subscription_r, bool *is_there_r)
{
    enum { VOUCHED = 8, ACCOUNT, CREDENTIAL };
    struct pg_params params, named;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    PG_PARAMS_ADD(&params, PG_TEXT(session), PG_I64(clock_present_minute()));
    pg_params_start(&named, arena);
    PG_PARAMS_ADD(&named, PG_TEXT(session), PG_I64(clock_present_minute()));
    add_caller(&named, caller);
    bool may_return = true;
    enum fault fault = FAULT_NONE;
    for (int turn = 0; turn < 1 + by_session && may_return && !fault; turn++) {
        fault =
            FAULT_FIRST(turn ? store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_RETURN, &params, &rows)
                             : FAULT_NONE,
                        store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_SHOW, &named, &rows));
        if (!fault)
            *is_there_r = read_rows(rows, arena, subscription_r, &may_return);
        if (fault || !*is_there_r)
            continue;
        subscription_r->is_vouched = pg_get_i64(rows, 0, VOUCHED) != 0;
        subscription_r->account = pg_get_text(rows, 0, ACCOUNT);
        subscription_r->credential = pg_get_text(rows, 0, CREDENTIAL);
    }
    if (!fault && *is_there_r)
        fault = open_texts(store_sealing_keys(store, ns), arena, session, subscription_r);
    return fault;
}

static void store_subscriptions_add_keys(struct pg_params *params, const struct data_keys *keys,
                                         const struct bytes *texts, const size_t *value_counts, size_t count)
{
    struct bytes *sealed = ARENA_ARRAY(params->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        sealed[i] = subscription_texts_key(keys, params->arena, texts[i], value_counts[i]);
    pg_params_add_text_array(params, sealed, count);
}

static void add_definitions(struct pg_params *params, const struct data_keys *keys, struct bytes session,
                            const struct bytes *texts, size_t count)
{
    struct bytes *sealed = ARENA_ARRAY(params->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        sealed[i] = subscription_texts_seal(keys, params->arena, session, SUBSCRIPTION_DEFINITION, texts[i]);
    pg_params_add_text_array(params, sealed, count);
}

static void add_address(struct pg_params *params, const struct data_keys *keys, struct bytes session,
                        const struct push_address *push)
{
    static const struct push_address none;
    push = push ? push : &none;
    struct arena *arena = params->arena;
    const struct bytes address[] = {
        subscription_texts_seal(keys, arena, session, SUBSCRIPTION_ENDPOINT, push->endpoint),
        subscription_texts_seal(keys, arena, session, SUBSCRIPTION_P256DH, push->p256dh),
        subscription_texts_seal(keys, arena, session, SUBSCRIPTION_AUTH, push->auth)};
    pg_params_add_text_array(params, address, COUNT_OF(address));
}

static void add_change(struct pg_params *params, struct arena *arena, struct bytes session,
                       const struct subscription_change *change, const struct settings *settings,
                       const struct data_keys *keys)
{
    const struct push_address *push = change->push;
    PG_PARAMS_ADD(params, PG_TEXT(session), PG_I64(clock_present_minute()), PG_I64(stamp_now()),
                  PG_I64(change->life), PG_I32(change->may_create), PG_I32(change->is_whole));
    store_subscriptions_add_keys(params, keys, change->keys, change->value_counts, change->count);
    add_definitions(params, keys, session, change->texts, change->count);
    store_subscriptions_add_keys(params, keys, change->drops, change->drop_value_counts, change->drop_count);
    PG_PARAMS_ADD(params, PG_I64(settings->limit_definitions), PG_I32(push != NULL));
    add_address(params, keys, session, push);
    PG_PARAMS_ADD(params, PG_I32(change->context != NULL),
                  PG_TEXT(subscription_texts_seal(keys, arena, session, SUBSCRIPTION_CONTEXT,
                                                  change->context ? *change->context : NO_BYTES)),
                  PG_I64(settings->limit_subscriptions), PG_I64(settings->limit_push_subscriptions));
    struct bytes client = BYTES(""); /* addresses are few, and the database has its secret in clear */
    if (change->client)
        client = bytes_of(arena_printf(arena, "%" PRIu64, change->client));
    if (change->client && keys->count)
        client = data_keys_digest(keys, arena, NO_BYTES, BYTES("client"), client);
    const int64_t mosts[] = {settings->limit_client_subscriptions,
                             settings->limit_client_definitions,
                             settings->limit_namespace_definitions,
                             settings->limit_namespace_definitions_mb << 20,
                             change->mosts[0],
                             change->mosts[1],
                             change->mosts[2]};
    PG_PARAMS_ADD(params, PG_TEXT(client), PG_I64(settings->subscription_trial_min),
                  PG_I64S(mosts, COUNT_OF(mosts)), PG_TEXT(account_of(&change->caller)),
                  PG_TEXT(subscription_texts_seal(keys, arena, session, SUBSCRIPTION_CREDENTIAL,
                                                  change->caller.credential)),
                  PG_I32(change->caller.is_ruled));
}

/* The setting whose limit is exceeded, according to the database; NULL: none. */
static const char *limit_of(const char *sqlstate)
{
    static const char *const limits[] = {
        [REFUSAL_DEFINITIONS] = "limit_definitions",
        [REFUSAL_SUBSCRIPTIONS] = "limit_subscriptions",
        [REFUSAL_PUSH_SUBSCRIPTIONS] = "limit_push_subscriptions",
        [REFUSAL_CLIENT_SUBSCRIPTIONS] = "limit_client_subscriptions",
        [REFUSAL_CLIENT_DEFINITIONS] = "limit_client_definitions",
        [REFUSAL_NAMESPACE_DEFINITIONS] = "limit_namespace_definitions",
        [REFUSAL_NAMESPACE_DEFINITIONS_MB] = "limit_namespace_definitions_mb",
        [REFUSAL_QUOTA_OF_ADDRESS] = "quotas.address.subscriptions_held",
        [REFUSAL_QUOTA_OF_ACCOUNT] = "quotas.account.subscriptions_held",
        [REFUSAL_QUOTA_OF_NAMESPACE] = "quotas.namespace.subscriptions_held",
    };
    enum refusal refusal = refusal_of(sqlstate);
    return (size_t)refusal < COUNT_OF(limits) ? limits[refusal] : NULL;
}

static enum fault store_subscriptions_run(struct store *store, int ns, enum statement statement,
                                          struct pg_params *params)
{
    struct pg_result *rows;
    return store_run_change_again(store, ns, statement, params, &rows);
}

static enum fault vouch(struct store *store, int ns, struct arena *arena, struct bytes session)
{
    return store_subscriptions_run(store, ns, STATEMENT_SUBSCRIPTIONS_VOUCH,
                                   PG_PARAMS(arena, PG_TEXT(session)));
}

enum fault store_subscriptions_change(struct store *store, int ns, struct arena *arena, struct bytes session,
                                      const struct subscription_change *change,
                                      struct subscription *subscription_r, bool *is_there_r,
                                      const char **limit_r)
{
    struct pg_params params;
    struct pg_result *rows;
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg); /* which has the keys of an encrypted namespace */
    if (fault)
        return fault;
    pg_params_start(&params, arena);
    add_change(&params, arena, session, change, store_settings(store), store_sealing_keys(store, ns));
    fault = store_run_change_again(store, ns, STATEMENT_SUBSCRIPTIONS_PUT, &params, &rows);
    bool may_return;
    if (!fault)
        *is_there_r = read_rows(rows, arena, subscription_r, &may_return);
    if (!fault && !*is_there_r)
        store_run_forget_change(store);
    if (!fault && *is_there_r)
        fault = open_texts(store_sealing_keys(store, ns), arena, session, subscription_r);
    pg = store_pg(store, ns);
    *limit_r = fault == FAULT_XDATABASE && pg ? limit_of(pg_sqlstate(pg)) : NULL;
    if (fault == FAULT_XDATABASE && pg && refusal_of(pg_sqlstate(pg)) == REFUSAL_SUBSCRIPTION_ACCOUNT)
        return FAULT_SRULE;
    if (!fault && *is_there_r && change->caller.is_administrator)
        fault = vouch(store, ns, arena, session);
    return *limit_r ? FAULT_ALIMIT : fault;
}

enum fault store_subscriptions_drop(struct store *store, int ns, struct arena *arena, struct bytes session,
                                    const struct subscription_caller *caller)
{
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(session));
    add_caller(params, caller);
    return store_subscriptions_run(store, ns, STATEMENT_SUBSCRIPTIONS_DROP, params);
}

/* --- for the task -------------------------------------------------------------------------------- */

/* Of a document of the class with which the definition begins. */
static bool open_id(const struct data_keys *keys, struct arena *arena, struct bytes definition,
                    struct bytes *id)
{
    struct bytes class = bytes_cut(&definition, '/');
    return data_keys_open_id(keys, arena, class, id);
}

enum fault store_subscriptions_take_matched(struct store *store, int ns, struct arena *arena,
                                            struct bytes session, struct matched_list *list_r)
{
    enum { TAKING, DEF, VERSION, ID, KIND, TRANSACTION };
    struct pg_result *rows;
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(session));
    *list_r = (struct matched_list){0};
    enum fault fault = store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_TAKE, params, &rows);
    if (fault || !pg_rows(rows))
        return fault;
    struct matched_definition *matched = ARENA_ARRAY(arena, struct matched_definition, (size_t)pg_rows(rows));
    for (int row = 0; row < pg_rows(rows); row++) {
        struct matched_definition one = {.text = pg_get_text(rows, row, DEF),
                                         .version = pg_get_i64(rows, row, VERSION),
                                         .id = pg_get_text(rows, row, ID),
                                         .kind = (enum match_kind)pg_get_i64(rows, row, KIND),
                                         .transaction = pg_get_i64(rows, row, TRANSACTION)};
        if (!subscription_texts_open(store_sealing_keys(store, ns), arena, session, SUBSCRIPTION_DEFINITION,
                                     &one.text) ||
            !open_id(store_sealing_keys(store, ns), arena, one.text, &one.id))
            return FAULT_BCONTENT;
        matched[list_r->count++] = one;
    }
    list_r->taking = pg_get_i64(rows, 0, TAKING);
    list_r->matched = matched;
    return FAULT_NONE;
}

enum fault store_subscriptions_written(struct store *store, int ns, struct arena *arena, struct bytes class,
                                       struct bytes after, int64_t version, size_t most, struct bytes **ids_r,
                                       size_t *count_r)
{
    struct pg_result *rows;
    enum fault fault = store_run_statement(
        store, ns, STATEMENT_SUBSCRIPTIONS_WRITTEN,
        PG_PARAMS(arena, PG_TEXT(class), PG_TEXT(after), PG_I64(version), PG_I32((int32_t)most)), &rows);
    *count_r = fault ? 0 : (size_t)pg_rows(rows);
    *ids_r = ARENA_ARRAY(arena, struct bytes, *count_r);
    for (size_t i = 0; i < *count_r; i++)
        (*ids_r)[i] = pg_get_text(rows, (int)i, 0);
    return fault;
}

/* Adds the same member of all searches. */
static void add_texts(struct pg_params *params, struct arena *arena, const struct member_search *searches,
                      size_t count, size_t offset)
{
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        texts[i] = *(const struct bytes *)(const void *)((const char *)&searches[i] + offset);
    pg_params_add_text_array(params, texts, count);
}

static void start_search(struct pg_params *params, struct arena *arena, const struct data_keys *keys,
                         const struct member_search *searches, size_t count)
{
    pg_params_start(params, arena);
    add_texts(params, arena, searches, count, offsetof(struct member_search, class));
    add_texts(params, arena, searches, count, offsetof(struct member_search, collection));
    add_texts(params, arena, searches, count, offsetof(struct member_search, keys));
    struct bytes *values = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        values[i] =
            store_shown_value(keys, arena, searches[i].class, searches[i].value, searches[i].value_count);
    pg_params_add_text_array(params, values, count);
}

enum fault store_subscriptions_members(struct store *store, int ns, struct arena *arena,
                                       const struct member_search *searches, size_t count,
                                       bool *are_members_r)
{
    struct pg_params params;
    struct pg_result *rows;
    memset(are_members_r, 0, count * sizeof *are_members_r);
    struct pg *pg;
    enum fault fault = count ? store_sealing_use(store, ns, &pg) : FAULT_NONE;
    if (!count || fault)
        return fault;
    start_search(&params, arena, store_sealing_keys(store, ns), searches, count);
    add_texts(&params, arena, searches, count, offsetof(struct member_search, id));
    fault = store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_MEMBERS, &params, &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++)
        are_members_r[pg_get_i64(rows, row, 0)] = true;
    return fault;
}

enum fault store_subscriptions_changed(struct store *store, int ns, struct arena *arena,
                                       const struct member_search *searches, size_t count, size_t most,
                                       struct changed_member **changed_r, size_t *changed_count_r)
{
    enum { SEARCH, ID, TRANSACTION, IS_MEMBER };
    struct pg_params params;
    struct pg_result *rows;
    int64_t *versions = ARENA_ARRAY(arena, int64_t, count);
    for (size_t i = 0; i < count; i++)
        versions[i] = searches[i].since;
    struct pg *pg;
    *changed_count_r = 0;
    enum fault fault = store_sealing_use(store, ns, &pg);
    if (fault)
        return fault;
    start_search(&params, arena, store_sealing_keys(store, ns), searches, count);
    add_texts(&params, arena, searches, count, offsetof(struct member_search, transaction));
    add_texts(&params, arena, searches, count, offsetof(struct member_search, id));
    PG_PARAMS_ADD(&params, PG_I64S(versions, count), PG_I32((int32_t)most));
    fault = store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_CHANGED, &params, &rows);
    *changed_count_r = fault ? 0 : (size_t)pg_rows(rows);
    *changed_r = ARENA_ARRAY(arena, struct changed_member, *changed_count_r);
    for (int row = 0; row < (int)*changed_count_r; row++)
        (*changed_r)[row] = (struct changed_member){.search = (size_t)pg_get_i64(rows, row, SEARCH),
                                                    .id = pg_get_text(rows, row, ID),
                                                    .transaction = pg_get_text(rows, row, TRANSACTION),
                                                    .is_member = pg_get_bool(rows, row, IS_MEMBER)};
    return fault;
}

enum fault store_subscriptions_left(struct store *store, int ns, struct arena *arena,
                                    const struct member_search *search, int64_t from, size_t most,
                                    struct left_member **left_r, size_t *count_r)
{
    enum { ID, TRANSACTION, VERSION };
    struct pg_result *rows;
    const struct pg_params *params =
        PG_PARAMS(arena, PG_TEXT(search->class), PG_TEXT(search->collection), PG_TEXT(search->value),
                  PG_TEXT(bytes_of(arena_printf(arena, "%" PRId64, from))), PG_TEXT(search->transaction),
                  PG_TEXT(search->id), PG_I32((int32_t)most));
    enum fault fault = store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_LEFT, params, &rows);
    *count_r = fault ? 0 : (size_t)pg_rows(rows);
    *left_r = ARENA_ARRAY(arena, struct left_member, *count_r);
    for (int row = 0; row < (int)*count_r; row++)
        (*left_r)[row] = (struct left_member){.id = pg_get_text(rows, row, ID),
                                              .transaction = pg_get_text(rows, row, TRANSACTION),
                                              .version = pg_get_i64(rows, row, VERSION)};
    return fault;
}

enum fault store_subscriptions_forget_matched(struct store *store, int ns, struct arena *arena,
                                              struct bytes session, int64_t taking)
{
    return store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_SENT,
                               PG_PARAMS(arena, PG_TEXT(session), PG_I64(taking)), NULL);
}

enum fault store_subscriptions_forget_push(struct store *store, int ns, struct arena *arena,
                                           struct bytes session, struct bytes endpoint, bool *is_gone_r)
{
    struct pg_result *rows;
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg);
    if (fault)
        return fault;
    const struct pg_params *params =
        PG_PARAMS(arena, PG_TEXT(session),
                  PG_TEXT(subscription_texts_seal(store_sealing_keys(store, ns), arena, session,
                                                  SUBSCRIPTION_ENDPOINT, endpoint)));
    fault = store_run_statement(store, ns, STATEMENT_SUBSCRIPTIONS_DROP_PUSH, params, &rows);
    if (!fault)
        *is_gone_r = pg_rows(rows) > 0;
    return fault;
}

/* --- a part of a commit ------------------------------------------------------------------------- */

static int push_queue(const struct store *store)
{
    return schedule_queue(store_settings(store)->task_queues, BYTES(PUSH_OPERATION), PUSH_QUEUE);
}

/* The documents that it writes or deletes; of copies, those that it may write. */
static size_t list_written(const struct commit *commit, struct bytes *classes, struct bytes *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        if (document->act == DRAFT_READ)
            continue;
        classes[count] = document->base->header.class;
        ids[count++] = document->base->header.id;
    }
    for (size_t i = 0; commit->copies && i < commit->copies->target_count; i++) {
        if (!copies_is_first(commit->copies, i))
            continue;
        classes[count] = commit->copies->targets[i].class;
        ids[count++] = commit->copies->targets[i].id;
    }
    return count;
}

static enum fault plan_match(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    if (!run->schema || (!commit->match.own.data && !run->schema->wakes))
        return FAULT_NONE;
    size_t most = commit->count + (commit->copies ? commit->copies->target_count : 0);
    struct bytes *classes = ARENA_ARRAY(run->arena, struct bytes, most),
                 *ids = ARENA_ARRAY(run->arena, struct bytes, most);
    size_t count = list_written(commit, classes, ids);
    if (!count)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_SUBSCRIPTIONS_MATCH]);
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(ids, count), PG_TEXT(commit->match.own),
                  PG_I32(run->schema->wakes), PG_I64(clock_present_minute()), PG_I64(commit->stop),
                  PG_I32(push_queue(run->store)));
    add_caller(params, &commit->match.caller);
    return FAULT_NONE;
}

static void take_match(struct commit_run *run, struct pg_result *const *results)
{
    enum { KIND, NAME, NUMBER };
    const struct pg_result *rows = *results;
    const struct data_keys *keys = store_sealing_keys(run->store, run->ns);
    struct match *match = &run->commit->match;
    size_t count = (size_t)pg_rows(rows);
    match->is_known = true;
    match->definitions = ARENA_ARRAY(run->arena, struct matched_definition, count);
    match->woken = ARENA_ARRAY(run->arena, struct task, count);
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes kind = pg_get_text(rows, row, KIND), name = pg_get_text(rows, row, NAME);
        int64_t number = pg_get_i64(rows, row, NUMBER);
        if (bytes_equal(kind, BYTES("own")))
            match->has_own = true;
        else if (bytes_equal(kind, BYTES("def")) &&
                 !subscription_texts_open(keys, run->arena, match->own, SUBSCRIPTION_DEFINITION, &name))
            match->has_own = false; /* the session reads it, and gets the fault */
        else if (bytes_equal(kind, BYTES("def")))
            match->definitions[match->count++] = (struct matched_definition){.text = name, .version = number};
        else
            match->woken[match->woken_count++] = (struct task){.id = name,
                                                               .operation = BYTES(PUSH_OPERATION),
                                                               .queue = push_queue(run->store),
                                                               .start = number,
                                                               .priority = TASK_PRIORITY,
                                                               .batch = 1};
    }
}

const struct commit_part commit_part_matches = {.plan = plan_match, .take = take_match};
