/* live_namespace_queries: the queries of a namespace's link, and what follows from their results. */
#include "live/live_namespace_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "live/access/live_admission.h"
#include "live/live_listener.h"
#include "live/live_statement.h"
#include "store/statements.h"

enum { NONCE_BYTES = 17 };

/* --- LISTEN --- */

static bool listen_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return !ns->is_listening;
}

static void add_nothing(void *context, struct pg_params *params)
{
    (void)context;
    (void)params;
}

static void listen_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    (void)result;
    ns->is_listening = true;
    live_catch_up_begin(ns->catch_up);
    if (ns == ns->all->z)
        live_catch_up_note_gap(ns->catch_up);
    log_debug("live listens database=%s", ns->database);
}

/* --- the data keys, needed before ids of documents are sent or received --- */

static bool keys_are_due(void *context)
{
    const struct live_namespace *ns = context;
    return !ns->has_keys;
}

static void keys_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    const char *problem = "";
    ns->has_keys = data_keys_take_of_ids(&ns->keys, result, &problem);
    ns->ids = live_statement_ids(&ns->keys);
    if (ns->has_keys) {
        live_link_use_ids(ns->link, &ns->ids);
        return;
    }
    log_often(LOG_LEVEL_ERROR, ns->database, "%s", problem);
    live_link_fail(ns->link, FAULT_ODATABASE);
}

/* --- the secret, needed before any work on ids --- */

static bool secret_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return !live_audience_has_secret(ns->audience);
}

/* Without a secret, which only an administrator can have removed, ids are valid only for this process. */
static void secret_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    char nonce[NONCE_BYTES];
    if (live_audience_set_secret(ns->audience, pg_rows(result) ? pg_get_text(result, 0, 0) : NO_BYTES))
        return;
    log_error("live database=%s: its table namespace has no secret", ns->database);
    snprintf(nonce, sizeof nonce, "%016" PRIx64, ns->all->nonce);
    (void)live_audience_set_secret(ns->audience, bytes_of(nonce));
}

/* --- the access, in the database of z --- */

static struct live_namespace *find_unknown(const struct live_namespaces *all)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        if (live_access_is_wanted(ns->access) &&
            (live_audience_count(ns->audience) || live_access_is_known(ns->access)))
            return ns;
    return NULL;
}

static bool access_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return ns == ns->all->z && find_unknown(ns->all);
}

static void access_add(void *context, struct pg_params *params)
{
    struct live_namespace *z = context;
    struct live_namespace *ns = z->all->asked = find_unknown(z->all);
    live_access_begin(ns->access);
    pg_params_add_text(params, bytes_of(ns->code));
}

static void access_take(void *context, const struct pg_result *result)
{
    struct live_namespace *z = context, *ns = z->all->asked;
    live_access_take(ns->access, &(struct live_access_texts){.code = bytes_of(ns->code),
                                                             .conf = pg_get_text(result, 0, 0),
                                                             .conf_of_z = pg_get_text(result, 0, 1),
                                                             .rules = pg_get_text(result, 0, 2),
                                                             .mark = pg_get_i64(result, 0, 3)});
    if (live_access_is_of(ns->access, ns->all->parts.settings, bytes_of(ns->code), bytes_of(ns->database)) &&
        !live_audience_enter(ns->audience, ns->all->parts.segment))
        log_error("live: the table of namespaces is full");
    if (!live_access_is_wanted(ns->access)) /* else they have changed again: the next result counts */
        live_admission_judge_all(ns->audience);
    if (ns != z)
        live_link_go_on(ns->link);
}

/* --- news --- */

static bool news_are_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_news_is_due(ns->news);
}

static void news_add(void *context, struct pg_params *params)
{
    const struct live_namespace *ns = context;
    live_news_query(ns->news, live_audience_known(ns->audience), params);
}

static void news_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    live_news_take(ns->news, result);
    live_listener_flush_all(ns->audience);
    live_round_finish(ns->round);
}

/* A gap queries everything. */
static void news_failed(void *context, enum fault fault)
{
    struct live_namespace *ns = context;
    (void)fault;
    live_news_clear(ns->news);
    live_catch_up_note_gap(ns->catch_up);
}

/* --- accounts, and documents that are judged --- */

static bool schema_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_snapshot_wants_schema(ns->snapshot) &&
           (live_accounts_are_due(ns->audience) || live_ruled_is_due(ns->ruled));
}

static void schema_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    live_snapshot_take_schema(ns->snapshot, result);
}

static bool accounts_are_due(void *context)
{
    const struct live_namespace *ns = context;
    return !live_snapshot_wants_schema(ns->snapshot) && live_accounts_are_due(ns->audience);
}

static void accounts_add(void *context, struct pg_params *params)
{
    struct live_namespace *ns = context;
    live_accounts_query(ns->audience, params);
}

static void accounts_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    struct arena *arena = arena_create("live accounts");
    live_accounts_take(ns->audience, ns->snapshot, result, arena);
    arena_destroy(arena);
}

static bool follow_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_follow_is_due(ns->audience);
}

static void follow_take(void *context, const struct pg_result *result)
{
    const struct live_namespace *ns = context;
    live_follow_take(ns->audience, result);
    live_listener_flush_ruled(ns->audience);
}

static void follow_failed(void *context, enum fault fault)
{
    const struct live_namespace *ns = context;
    log_often(LOG_LEVEL_WARNING, ns->database, "live database=%s: %s, following the access rules",
              ns->database, fault_code(fault));
    live_follow_fail(ns->audience);
    live_listener_flush_ruled(ns->audience);
}

static bool declaration_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_follow_must_declare(ns->audience);
}

static void declaration_add(void *context, struct pg_params *params)
{
    const struct live_namespace *ns = context;
    live_follow_declare(ns->audience, params);
}

static void declaration_take(void *context, const struct pg_result *result)
{
    const struct live_namespace *ns = context;
    (void)result;
    live_follow_take_declared(ns->audience);
}

static bool ruled_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return !live_snapshot_wants_schema(ns->snapshot) && live_ruled_is_due(ns->ruled);
}

static void ruled_add(void *context, struct pg_params *params)
{
    struct live_namespace *ns = context;
    live_ruled_query(ns->ruled, params);
}

static void ruled_take(void *context, const struct pg_result *result)
{
    struct live_namespace *ns = context;
    live_ruled_take(ns->ruled, ns->snapshot, result);
    live_round_finish(ns->round);
}

static void ruled_failed(void *context, enum fault fault)
{
    struct live_namespace *ns = context;
    log_often(LOG_LEVEL_WARNING, ns->database, "live database=%s: %s, loading documents", ns->database,
              fault_code(fault));
    live_ruled_lose(ns->ruled);
    live_round_finish(ns->round);
}

/* --- what has changed, for a listener that waits --- */

static bool open_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_follow_is_settled(ns->audience) && live_listener_is_waiting(ns->audience);
}

static void open_add(void *context, struct pg_params *params)
{
    const struct live_namespace *ns = context;
    live_catch_up_query_listener(ns->catch_up, params);
}

static void open_take(void *context, const struct pg_result *result)
{
    const struct live_namespace *ns = context;
    if (live_catch_up_take_listener(ns->catch_up, result))
        live_round_wake(ns->round);
}

/* The cause may lie in this listener alone, so only this one is refused. */
static void open_failed(void *context, enum fault fault)
{
    const struct live_namespace *ns = context;
    live_listener_refuse_queried(ns->audience, fault);
}

/* --- what has changed, for all after a loss --- */

static bool gap_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_catch_up_is_due(ns->catch_up);
}

static void gap_add(void *context, struct pg_params *params)
{
    struct live_namespace *ns = context;
    if (live_catch_up_query(ns->catch_up, params))
        live_round_rest(ns->round);
}

static void gap_take(void *context, const struct pg_result *result)
{
    const struct live_namespace *ns = context;
    live_catch_up_take(ns->catch_up, result);
}

static void gap_failed(void *context, enum fault fault)
{
    const struct live_namespace *ns = context;
    live_catch_up_fail(ns->catch_up, fault);
}

/* --- rounds --- */

static bool round_is_due(void *context)
{
    const struct live_namespace *ns = context;
    return live_round_is_due(ns->round, ns->all->parts.settings);
}

static void round_add(void *context, struct pg_params *params)
{
    const struct live_namespace *ns = context;
    live_round_query(ns->round, params);
}

static void round_take(void *context, const struct pg_result *result)
{
    const struct live_namespace *ns = context;
    struct live_horizon known;
    int64_t next = 0;
    bool has_one = live_horizon_read(result, &known, &next);
    live_round_take(ns->round, has_one ? &known : NULL, next);
}

/* The next round follows after the usual interval. */
static void round_failed(void *context, enum fault fault)
{
    const struct live_namespace *ns = context;
    log_often(LOG_LEVEL_WARNING, ns->database, "live database=%s: %s, querying a horizon", ns->database,
              fault_code(fault));
    live_round_rest(ns->round);
    live_round_wake(ns->round);
}

#define QUERY(statement_, ...)                                                                               \
    &(const struct live_query)                                                                               \
    {                                                                                                        \
        &(statement_), __VA_ARGS__                                                                           \
    }
const struct live_query *const live_namespace_queries[LIVE_QUERIES] = {
    QUERY(live_statements[LIVE_STATEMENT_LISTEN], listen_is_due, add_nothing, listen_take, NULL),
    QUERY(statements[STATEMENT_DATA_KEYS], keys_are_due, add_nothing, keys_take, NULL),
    QUERY(live_statements[LIVE_STATEMENT_SECRET], secret_is_due, add_nothing, secret_take, NULL),
    QUERY(live_statements[LIVE_STATEMENT_RULES], access_is_due, access_add, access_take, NULL),
    QUERY(live_statements[LIVE_STATEMENT_SCHEMA], schema_is_due, add_nothing, schema_take, NULL),
    QUERY(live_statements[LIVE_STATEMENT_LOAD], accounts_are_due, accounts_add, accounts_take, NULL),
    QUERY(live_statements[LIVE_STATEMENT_SIGHT], follow_is_due, add_nothing, follow_take, follow_failed),
    QUERY(live_statements[LIVE_STATEMENT_DECLARE], declaration_is_due, declaration_add, declaration_take,
          follow_failed),
    QUERY(live_statements[LIVE_STATEMENT_LOAD], ruled_is_due, ruled_add, ruled_take, ruled_failed),
    QUERY(live_statements[LIVE_STATEMENT_NEWS], news_are_due, news_add, news_take, news_failed),
    QUERY(live_statements[LIVE_STATEMENT_LOOK], open_is_due, open_add, open_take, open_failed),
    QUERY(live_statements[LIVE_STATEMENT_LOOK], gap_is_due, gap_add, gap_take, gap_failed),
    QUERY(live_statements[LIVE_STATEMENT_ROUND], round_is_due, round_add, round_take, round_failed),
};
