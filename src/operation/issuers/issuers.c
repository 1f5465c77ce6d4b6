/* issuers: the OpenID providers of the namespace, for the administrator; and the task that fetches their
 * keys. param {} → {"issuers":[{"issuer","keys":[name…],"fetched","tried","problem"}…]}; {"fetch":issuer} →
 * the same for this one, after a fetch of its keys, if the last one is long enough ago. */
#include "operation/accounts/accounts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "edge/http.h"
#include "model/account/issuer.h"
#include "model/account/key_set.h"
#include "model/document/stamp.h"
#include "operation/accounts/account_gate.h"
#include "operation/access/issuer_keys.h"
#include "operation/tasks/task_issuers.h"

/* --- issuer fetch --- */

/* Fetches the keys of an OpenID provider by HTTPS: from its address `jwks`, or from the one
 * that its configuration names (OpenID Connect Discovery 1.0).
 *
 * Bounded: 3 seconds and 64 KiB each, no redirect, https only, public addresses only unless the setting
 * issuer_addresses is any. */

enum { TIMEOUT_MS = 3000, CONNECT_TIMEOUT_MS = 2000, STATUS_OK = 200 };

struct fetch {
    const struct settings *settings;
    struct arena *arena;
};

static const char *issuer_fetch_explain(struct arena *arena, const char *what,
                                        const struct http_result *result)
{
    if (result->is_out_of_reach)
        return arena_printf(arena, "The address of %s is not a public one.", what);
    if (!result->status)
        return arena_printf(arena, "No answer with %s: %s.", what, result->reason);
    return arena_printf(arena, "The request for %s was answered with status %d.", what, result->status);
}

/* NULL: fetched, into the arena. */
static const char *issuer_fetch_get(const struct fetch *fetch, const char *what, struct bytes address,
                                    struct bytes *text_r)
{
    static const char *const headers[] = {"Accept: application/json, application/jwk-set+json", NULL};
    const char *ca_file = fetch->settings->issuer_ca_file, *problem = NULL;
    struct http_result result;
    struct http *http = http_open(&(struct http_options){
        .parallel = 1,
        .ca_file = *ca_file ? ca_file : NULL,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .reach = fetch->settings->issuer_addresses == ISSUER_ADDRESSES_ANY ? HTTP_EVERYWHERE : HTTP_PUBLIC,
        .answer_most = KEY_SET_BYTES_MOST,
    });
    http_run(http,
             &(struct http_request){.method = "GET",
                                    .url = arena_copy(fetch->arena, address.data, address.size),
                                    .headers = headers,
                                    .timeout_ms = TIMEOUT_MS},
             &result);
    if (result.status == STATUS_OK)
        *text_r = arena_keep(fetch->arena, result.body);
    else
        problem = issuer_fetch_explain(fetch->arena, what, &result);
    http_close(http);
    return problem;
}

/* --- discovery --- */

static const char *read_configuration(struct arena *arena, const struct issuer *issuer, struct bytes text,
                                      struct bytes *address_r)
{
    static const struct json_limits limits = {.depth = 16, .tree_depth = 1, .nodes = 2000};
    struct json *root;
    struct json_problem problem;
    if (json_read(arena, text, &limits, &root, &problem))
        return "The configuration of the issuer is not JSON.";
    const struct json *name = json_member(root, "issuer"), *address = json_member(root, "jwks_uri");
    if (!name || name->kind != JSON_STRING || !bytes_equal(name->value, issuer->name))
        return "The configuration is that of another issuer.";
    if (!address || address->kind != JSON_STRING || !issuer_is_address(address->value, ISSUER_ADDRESS_MOST))
        return "The configuration of the issuer has no jwks_uri that begins with https.";
    *address_r = address->value;
    return NULL;
}

static const char *discover(const struct fetch *fetch, const struct issuer *issuer, struct bytes *address_r)
{
    struct bytes text, name = issuer->name;
    while (name.data[name.size - 1] == '/')
        name.size--;
    const char *address =
        arena_printf(fetch->arena, "%.*s/.well-known/openid-configuration", (int)name.size, name.data);
    const char *problem = issuer_fetch_get(fetch, "the configuration", bytes_of(address), &text);
    return problem ? problem : read_configuration(fetch->arena, issuer, text, address_r);
}

/* Blocks the process for at most some 6 seconds.  NULL: fetched; otherwise why not, one sentence that names
 * no address, in the arena. */
static const char *issuer_fetch(const struct settings *settings, struct arena *arena,
                                const struct issuer *issuer, struct key_set *set_r)
{
    const struct fetch fetch = {settings, arena};
    struct bytes address = issuer->jwks, text;
    const char *problem = address.size ? NULL : discover(&fetch, issuer, &address);
    if (!problem)
        problem = issuer_fetch_get(&fetch, "the keys", address, &text);
    if (problem)
        return problem;
    const char *wrong = key_set_read(arena, text, set_r);
    return wrong ? arena_printf(arena, "The set of keys is refused: %s.", wrong) : NULL;
}

/* --- issuers --- */

enum { LIMIT_S = 60 };

/* What a try has fetched is kept for the next one. */
struct fetched {
    const char *problem; /* NULL: none */
    struct key_set set;
};

/* The drafts of its keys and its state. */
static enum fault fetch_drafts(struct attempt *attempt, const struct issuer *issuer,
                               struct draft *drafts_r[ISSUER_KEYS_DOCUMENTS])
{
    struct document_name names[ISSUER_KEYS_DOCUMENTS];
    issuer_keys_name(attempt->call->arena, issuer->name, names);
    return transaction_fetch_many(attempt->transaction, names, ISSUER_KEYS_DOCUMENTS, drafts_r);
}

/* --- the answer --- */

static void issuers_add_keys(struct builder *body, struct arena *arena, struct bytes content)
{
    static const struct key_set none;
    struct key_set *set = ARENA_NEW(arena, struct key_set);
    if (!content.data || key_set_read(arena, content, set))
        *set = none;
    builder_add_text(body, ",\"keys\":[");
    for (size_t i = 0; i < set->count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, set->keys[i].name.data ? set->keys[i].name : BYTES(""));
    }
    builder_add_text(body, "]");
}

static enum fault add_issuer(struct attempt *attempt, const struct issuer *issuer)
{
    struct builder *body = attempt->reply->body;
    struct arena *arena = attempt->call->arena;
    struct draft *drafts[ISSUER_KEYS_DOCUMENTS];
    enum fault fault = fetch_drafts(attempt, issuer, drafts);
    if (fault)
        return fault;
    const struct item *keys = draft_find_item(drafts[0], BYTES("Keys"), BYTES("")),
                      *state_item = draft_find_item(drafts[1], BYTES("State"), BYTES(""));
    const struct issuer_state state =
        issuer_keys_parse_state(arena, state_item ? state_item->content : NO_BYTES);
    json_add_text(body, "{\"issuer\":", issuer->name);
    issuers_add_keys(body, arena, keys ? keys->content : NO_BYTES);
    if (state.fetched_ms)
        builder_printf(body, ",\"fetched\":%lld", (long long)stamp_from_epoch_ms(state.fetched_ms));
    if (state.tried_ms)
        builder_printf(body, ",\"tried\":%lld", (long long)stamp_from_epoch_ms(state.tried_ms));
    if (state.problem.size)
        json_add_text(body, ",\"problem\":", state.problem);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

static enum fault issuers_list(struct attempt *attempt)
{
    const struct issuers *issuers = attempt->call->accounts.issuers;
    enum fault fault = FAULT_NONE;
    builder_add_text(attempt->reply->body, "{\"issuers\":[");
    for (size_t i = 0; issuers && i < issuers->count && !fault; i++) {
        if (i)
            builder_add_text(attempt->reply->body, ",");
        fault = add_issuer(attempt, &issuers->list[i]);
    }
    builder_add_text(attempt->reply->body, "]}");
    return fault;
}

/* --- a fetch --- */

static bool issuers_is_same(const struct draft *draft, struct bytes keys)
{
    const struct item *item = draft_find_item(draft, BYTES("Keys"), BYTES(""));
    return item && bytes_equal(item->content, keys);
}

static enum fault issuers_record(struct attempt *attempt, const struct issuer *issuer,
                                 const struct fetched *fetched, struct issuer_state state)
{
    struct arena *arena = attempt->call->arena;
    struct draft *drafts[ISSUER_KEYS_DOCUMENTS];
    enum fault fault = fetch_drafts(attempt, issuer, drafts);
    if (fault)
        return fault;
    state.tried_ms = clock_present_ms();
    state.failures = fetched->problem ? state.failures + 1 : 0;
    state.fetched_ms = fetched->problem ? state.fetched_ms : state.tried_ms;
    state.problem = bytes_of(fetched->problem ? fetched->problem : "");
    draft_create(drafts[1]);
    draft_set_item(drafts[1], BYTES("State"), BYTES(""), false, issuer_keys_write_state(arena, &state));
    if (fetched->problem)
        return FAULT_NONE;
    struct bytes keys = issuer_keys_write(arena, issuer->name, &fetched->set);
    if (issuers_is_same(drafts[0], keys))
        return FAULT_NONE;
    draft_create(drafts[0]);
    draft_set_item(drafts[0], BYTES("Keys"), BYTES(""), false, keys);
    log_info("keys of an issuer have changed namespace=%.*s issuer=%.*s count=%zu",
             (int)attempt->call->ns.size, attempt->call->ns.data, (int)issuer->name.size, issuer->name.data,
             fetched->set.count);
    return FAULT_NONE;
}

/* No draft is fetched before the provider has answered: nothing waits for it. */
static enum fault issuers_fetch(struct attempt *attempt, const struct issuer *issuer)
{
    struct worker_context *worker_context = attempt->worker_context;
    struct arena *arena = attempt->call->arena;
    struct document_name names[ISSUER_KEYS_DOCUMENTS];
    struct issuer_state state;
    enum fault fault =
        issuer_keys_find_state(worker_context->documents, attempt->ns, arena, issuer, names, &state);
    if (fault)
        return fault;
    struct fetched *fetched = attempt->kept;
    if (!fetched) {
        if (!issuer_keys_are_due(worker_context->settings, &state, true, clock_present_ms()))
            return FAULT_NONE;
        fetched = attempt->kept = ARENA_NEW(arena, struct fetched);
        fetched->problem = issuer_fetch(worker_context->settings, arena, issuer, &fetched->set);
        if (fetched->problem)
            log_warning("keys of an issuer are not fetched namespace=%.*s issuer=%.*s: %s",
                        (int)attempt->call->ns.size, attempt->call->ns.data, (int)issuer->name.size,
                        issuer->name.data, fetched->problem);
    }
    return issuers_record(attempt, issuer, fetched, state);
}

static enum fault issuers_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    struct bytes name;
    enum fault fault = FAULT_FIRST(attempt->fence ? account_gate_find_accounts(attempt) : FAULT_NONE,
                                   account_gate_check(attempt), reader_members(&reader, param, "fetch"),
                                   reader_text(&reader, param, "fetch", &name));
    if (fault || !name.data)
        return fault ? fault : issuers_list(attempt);
    const struct issuer *issuer = issuer_find(attempt->call->accounts.issuers, name);
    if (!issuer) /* of a task: it was removed meanwhile */
        return attempt->fence
                   ? FAULT_NONE
                   : reader_wrong(&reader, param, "fetch", "An issuer of the namespace is expected.");
    return FAULT_FIRST(issuers_fetch(attempt, issuer), add_issuer(attempt, issuer));
}

static bool issuers_is_look(const struct call *call)
{
    return !json_member(call->param, "fetch");
}

const struct operation accounts_issuers = {.name = TASK_ISSUERS_OPERATION,
                                           .right = RIGHT_ADMIN,
                                           .work = issuers_work,
                                           .is_look = issuers_is_look,
                                           .task = {.limit_s = LIMIT_S}};
