/* access: checks the namespace, the key, and what the namespace's configuration allows, in this order. */
#include "operation/access/access.h"

#include <string.h>

#include "edge/crypto/crypto.h"
#include "operation/access/caller.h"
#include "operation/sync/client_copies.h"
#include "operation/access/configurations.h"
#include "operation/judge/filters.h"
#include "operation/reply.h"

static bool is_code_of_z(struct bytes code)
{
    return bytes_equal(code, BYTES("z"));
}

void access_add_state_of_z(struct ns_conf *conf, const struct ns_conf *z)
{
    if (z->state < conf->state || (z->state == conf->state && conf->message.size))
        return;
    conf->state = z->state;
    conf->message = z->message;
}

static struct ns_conf with_those_of_z(const struct configuration *own, const struct configuration *z)
{
    struct ns_conf conf = own->conf;
    if (own != z)
        access_add_state_of_z(&conf, &z->conf);
    if (!conf.quotas)
        conf.quotas = z->conf.quotas;
    if (z->conf.build > conf.build)
        conf.build = z->conf.build;
    return conf;
}

enum fault access_configuration(struct worker_context *worker_context, struct call *call,
                                struct ns_conf *conf_r)
{
    const struct configuration *own, *z;
    *conf_r = (struct ns_conf){.mode = ACCESS_CLOSED};
    enum fault fault = configurations_find(worker_context, call, &own, &z);
    if (!fault)
        *conf_r = with_those_of_z(own, z);
    return fault;
}

/* --- the decision --- */

static bool is_database_of_z(const struct settings *settings, struct bytes database)
{
    return bytes_equal(database, bytes_of(settings->z_database));
}

bool access_is_namespace(const struct settings *settings, const struct ns_conf *conf, struct bytes code,
                         struct bytes database)
{
    bool is_z = is_code_of_z(code);
    if (is_z || is_database_of_z(settings, database))
        return is_z && is_database_of_z(settings, database);
    return conf->database.size && bytes_equal(conf->database, database);
}

static struct bytes name_of(struct bytes database)
{
    const char *at = memchr(database.data, '@', database.size);
    return (struct bytes){database.data, at ? (size_t)(at - database.data) : database.size};
}

bool access_has_moved(const struct ns_conf *conf, struct bytes code, struct bytes database)
{
    return !is_code_of_z(code) && conf->database.size && database.size &&
           !bytes_equal(conf->database, database) && bytes_equal(name_of(conf->database), name_of(database));
}

enum fault access_place(const struct settings *settings, const struct ns_conf *conf, struct call *call)
{
    bool is_first = !call->is_placed;
    call->is_placed = true;
    if (!is_database_of_z(settings, call->database) && access_has_moved(conf, call->ns, call->database)) {
        if (!is_first)
            return FAULT_XAWAY;
        call->database = arena_keep(call->arena, conf->database);
    }
    return access_is_namespace(settings, conf, call->ns, call->database) ? FAULT_NONE : FAULT_NNAMESPACE;
}

enum access_level access_level(const struct settings *settings, const struct ns_conf *conf,
                               struct bytes database, bool is_administrator)
{
    if (is_administrator)
        return LEVEL_EVERYTHING;
    if (is_database_of_z(settings, database))
        return LEVEL_NOTHING; /* it is the administrator's: applications have no access */
    return conf->mode == ACCESS_OPEN ? LEVEL_WRITE : conf->mode == ACCESS_READ ? LEVEL_READ : LEVEL_PUBLIC;
}

enum fault access_refuse_state(const struct settings *settings, const struct ns_conf *conf,
                               struct bytes database, bool is_administrator)
{
    if (conf->state < NS_OFF || is_database_of_z(settings, database))
        return FAULT_NONE;
    if (conf->state == NS_GONE)
        return FAULT_OGONE;
    return is_administrator ? FAULT_NONE : FAULT_OOFF;
}

static enum access_level level_needed(const struct operation *operation)
{
    switch (operation->right) {
    case RIGHT_READ:
        return LEVEL_READ;
    case RIGHT_WRITE:
        return LEVEL_WRITE;
    case RIGHT_PUBLIC:
        return LEVEL_PUBLIC;
    case RIGHT_ADMIN:
        break;
    }
    return LEVEL_EVERYTHING;
}

bool access_may_run(const struct call *call, const struct operation *operation)
{
    if (call->rules && operation->obeys_rules)
        return true;
    if (operation->is_of_z && is_code_of_z(call->ns) && call->accounts.is_on)
        return true;
    bool may_disclose = operation->right == RIGHT_READ || operation->right == RIGHT_WRITE;
    if (call->filters && may_disclose && !operation->obeys_rules)
        return false;
    return call->level >= level_needed(operation);
}

/* --- a call --- */

static bool is_right_key(const struct worker_context *worker_context, struct bytes key)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    if (!*worker_context->settings->admin_key_sha256)
        return false;
    crypto_sha256_hex(key, digest);
    return crypto_equal(bytes_of(digest), bytes_of(worker_context->settings->admin_key_sha256));
}

bool access_is_administrator(const struct call *call)
{
    return call->level == LEVEL_EVERYTHING;
}

enum fault access_refuse_name(struct call *call, struct reply *reply)
{
    return reply_fault(call, reply, FAULT_NNAMESPACE, NULL,
                       arena_copy(call->arena, call->ns.data, call->ns.size), NULL);
}

/* The administrator's key, or the credential of an administrator. */
static enum fault check_key(const struct worker_context *worker_context, struct call *call,
                            struct reply *reply, struct bytes key, const char *where)
{
    bool is_right = is_right_key(worker_context, key);
    enum fault fault = is_right ? FAULT_NONE : caller_is_administrator(worker_context, call, key, &is_right);
    if (fault || is_right)
        return fault;
    return reply_fault(call, reply, FAULT_SKEY, "This is not the administrator's key.", where, NULL);
}

/* A wrong key is refused, even where none is needed and beside a right one. */
enum fault access_check_keys(const struct worker_context *worker_context, struct call *call,
                             struct reply *reply, bool *is_there_r)
{
    bool is_own = call->admin.size && call->admin.data != call->bearer.data;
    *is_there_r = call->bearer.data || is_own;
    enum fault fault = FAULT_NONE;
    if (call->bearer.data)
        fault = check_key(worker_context, call, reply, call->bearer, "Authorization");
    if (!fault && is_own)
        fault = check_key(worker_context, call, reply, call->admin, "admin");
    return fault;
}

static bool access_is_listed(const struct json *origins, struct bytes origin, bool may_be_any)
{
    for (const struct json *one = origins ? origins->first : NULL; one; one = one->next)
        if (one->kind == JSON_STRING &&
            (bytes_equal(one->value, origin) || (may_be_any && bytes_equal(one->value, BYTES("*")))))
            return true;
    return false;
}

/* Is it the origin of the server's own pages?  Compared without the scheme, which a proxy may have changed.
 */
static bool is_own_origin(const struct browser *browser)
{
    const char *host =
        browser->origin.size ? memmem(browser->origin.data, browser->origin.size, "://", 3) : NULL;
    if (!host || !browser->host.size)
        return false;
    host += 3;
    return bytes_equal((struct bytes){host, browser->origin.size - (size_t)(host - browser->origin.data)},
                       browser->host);
}

/* Does a page send the request that the namespace does not list?  `may_be_any`: the origin "*" lists it;
 * `may_be_none`: neither header is there, so it is no page of a browser. */
static bool is_foreign(const struct browser *browser, const struct ns_conf *conf, bool may_be_any,
                       bool may_be_none)
{
    if (bytes_equal(browser->site, BYTES("same-origin")) || bytes_equal(browser->site, BYTES("none")))
        return false;
    if (!browser->origin.size)
        return browser->site.size > 0 || !may_be_none;
    if (!browser->site.size && is_own_origin(browser))
        return false;
    return !access_is_listed(conf->origins, browser->origin, may_be_any);
}

/* A browser sends its cookie, and keeps one that it gets, whatever the page: the origin must then be listed
 * by its name, and for a cookie that was sent it must be known. */
static void judge_origin(struct call *call, const struct ns_conf *conf)
{
    call->is_foreign = is_foreign(&call->browser, conf, !call->is_by_cookie, !call->is_by_cookie);
    call->may_get_cookie = !is_foreign(&call->browser, conf, false, true);
}

const struct filters *access_find_filters(const struct call *call, const struct rules *rules,
                                          enum access_level level)
{
    bool may_read = rules || level >= LEVEL_READ;
    return may_read ? filters_find(call->arena, call->ns) : NULL;
}

/* The key of a queue of external workers gives no right but to its tasks: beside it the caller is anonymous.
 * One that is such a key no more is compared with the administrator's, and refused. */
static void take_queue_key(struct call *call, const struct worker_queues *workers)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct bytes key = call->queue_key.data ? call->queue_key : call->bearer;
    if (!key.data || (!workers && !call->queue_key.data))
        return;
    crypto_sha256_hex(key, digest);
    call->key_queues = worker_queues_by_key(workers, bytes_of(digest));
    if (call->key_queues && call->admin.data == key.data)
        call->admin = NO_BYTES;
    call->queue_key = call->key_queues ? key : NO_BYTES;
    call->bearer = call->key_queues ? NO_BYTES : key;
}

enum fault access_enter(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct configuration *own, *z;
    bool has_key;
    call->level = LEVEL_NOTHING;
    call->rules = NULL;
    call->filters = NULL;
    call->quotas = NULL;
    call->is_read_only = false;
    call->message = NULL;
    call->is_entered = false;
    enum fault fault = configurations_find(worker_context, call, &own, &z);
    if (fault)
        return fault;
    const struct ns_conf conf = with_those_of_z(own, z);
    fault = access_place(worker_context->settings, &conf, call);
    if (fault)
        return fault == FAULT_NNAMESPACE ? access_refuse_name(call, reply) : fault;
    take_queue_key(call, own->conf.workers);
    call->quotas = conf.quotas;
    bool has_own_quotas = call->quotas && call->quotas == own->conf.quotas;
    if (call->quotas)
        configurations_hold(has_own_quotas ? own : z, call->arena);
    fault = access_check_keys(worker_context, call, reply, &has_key);
    if (fault)
        return fault;
    const char *message =
        conf.message.size ? arena_copy(call->arena, conf.message.data, conf.message.size) : NULL;
    fault = access_refuse_state(worker_context->settings, &conf, call->database, has_key);
    if (fault)
        return reply_fault(call, reply, fault, message, NULL);
    call->message = message;
    call->level = access_level(worker_context->settings, &conf, call->database, has_key);
    bool is_of_z = is_database_of_z(worker_context->settings, call->database);
    call->is_read_only = conf.state == NS_READONLY && !is_of_z;
    call->rules = has_key || is_of_z ? NULL : own->rules; /* z is the administrator's */
    if (!has_key && !is_of_z)
        call->filters = access_find_filters(call, call->rules, call->level);
    call->rules_version = call->rules ? own->rules_version : 0;
    call->quotas = has_key ? NULL : conf.quotas;
    call->workers = own->conf.workers;
    if (call->rules || conf.accounts.issuers || call->workers)
        configurations_hold(own, call->arena);
    call->accounts = conf.accounts;
    fault = caller_find(worker_context, call, &call->accounts, has_key, reply);
    if (fault)
        return fault;
    judge_origin(call, &conf);
    call->namespace_build = conf.build;
    call->is_entered = true;
    return FAULT_NONE;
}

/* Input of operations that write, and of applications, may be large; input of other operations may not. */
static bool takes_much(const struct call *call, const struct operation *operation)
{
    if (call->level == LEVEL_EVERYTHING)
        return true;
    if (call->key_queues && operation->is_for_workers)
        return true;
    if (operation->right == RIGHT_PUBLIC && operation->application)
        return call->level >= LEVEL_PUBLIC;
    if (call->rules && operation->obeys_rules && call->caller.account.data)
        return !operation->is_safe;
    return operation->right != RIGHT_ADMIN && !operation->is_safe && call->level >= LEVEL_WRITE;
}

enum fault access_admit(struct worker_context *worker_context, struct call *call, struct reply *reply,
                        const struct operation *operation)
{
    const struct settings *settings = worker_context->settings;
    enum fault fault = access_enter(worker_context, call, reply);
    if (fault && fault != FAULT_OOFF && fault != FAULT_OGONE)
        return fault;
    reply->fault = FAULT_NONE;
    bool is_allowed = operation ? access_may_run(call, operation) : call->level >= LEVEL_READ;
    bool is_refused = call->is_read_only && operation && !operation->is_safe && !operation->is_look;
    call->barred = fault ? fault : !is_allowed ? FAULT_SCLOSED : is_refused ? FAULT_OREADONLY : FAULT_NONE;
    int64_t most = call->attachment ? settings->limit_blob_bytes : settings->limit_body_bytes;
    bool may_be_large = !call->barred && operation && takes_much(call, operation);
    call->body_most =
        may_be_large || most < settings_anonymous_body(settings) ? most : settings_anonymous_body(settings);
    return FAULT_NONE;
}

enum fault access_refuse_origin(struct call *call, struct reply *reply)
{
    struct bytes origin = call->browser.origin;
    return reply_fault(call, reply, FAULT_SORIGIN, NULL, arena_copy(call->arena, origin.data, origin.size),
                       NULL);
}

enum fault access_check_method(struct worker_context *worker_context, struct call *call, struct reply *reply,
                               const struct operation *operation)
{
    static const char *const names[] = {[CALL_POST] = "POST", [CALL_GET] = "GET", [CALL_HEAD] = "HEAD"};
    bool may_get =
        call->method == CALL_POST || (call->method == CALL_GET && worker_context->settings->get_writes);
    if (operation->is_safe)
        return FAULT_NONE;
    if (!call->resource && !may_get) {
        reply->is_post_only = true;
        return reply_fault(call, reply, FAULT_AMETHOD,
                           "This operation may change something: send it by POST.", names[call->method],
                           NULL);
    }
    return call->is_foreign ? access_refuse_origin(call, reply) : FAULT_NONE;
}

static enum fault access_refuse(struct call *call, struct reply *reply, const char *what)
{
    return reply_fault(call, reply, FAULT_SCLOSED,
                       "Without the administrator's key this operation is closed here.", what, NULL);
}

/* Synchronisations and sessions return data of the namespace, whatever the operation.  Whether an operation
 * grants documents is known only after its work (operation/sync/sync.c). */
static enum fault check_beside(struct call *call, struct reply *reply, const struct operation *operation)
{
    if (call->level >= LEVEL_READ)
        return FAULT_NONE;
    const struct json *syncs = call->syncs;
    bool is_empty = syncs && syncs->kind == JSON_ARRAY && !syncs->is_shallow && !syncs->count;
    if ((call->client_copies || (syncs && !is_empty)) && !operation->may_grant && !call->rules)
        return reply_fault(call, reply, FAULT_SCLOSED,
                           "This operation grants no documents, and the namespace may not be read.", "syncs",
                           NULL);
    if (call->session.data && !call->rules)
        return reply_fault(call, reply, FAULT_SCLOSED, "The caller may not read the namespace.", "session",
                           NULL);
    return FAULT_NONE;
}

bool access_may_change(const struct call *call, const struct operation *operation)
{
    return !operation->is_safe && !(operation->is_look && operation->is_look(call));
}

static enum fault refuse_change(struct call *call, struct reply *reply)
{
    return reply_fault(call, reply, FAULT_OREADONLY, call->message, NULL);
}

enum fault access_check(struct call *call, struct reply *reply, const struct operation *operation)
{
    if (!access_may_run(call, operation))
        return access_refuse(call, reply, operation->name);
    if (call->is_read_only && access_may_change(call, operation))
        return refuse_change(call, reply);
    return check_beside(call, reply, operation);
}

enum fault access_renew(struct worker_context *worker_context, struct call *call, struct reply *reply,
                        const struct operation *operation)
{
    return FAULT_FIRST(access_enter(worker_context, call, reply), access_check(call, reply, operation));
}

enum fault access_check_tasks(struct call *call, struct reply *reply)
{
    return call->is_read_only ? refuse_change(call, reply) : FAULT_NONE;
}

bool access_runs_tasks(struct worker_context *worker_context, struct call *call)
{
    struct ns_conf conf;
    return !access_configuration(worker_context, call, &conf) &&
           (conf.state == NS_ON || is_database_of_z(worker_context->settings, call->database));
}

enum fault access_refuse_unknown(struct call *call, struct reply *reply, struct bytes operation)
{
    const char *name = arena_copy(call->arena, operation.data, operation.size);
    if (call->level < LEVEL_READ)
        return access_refuse(call, reply, name);
    return reply_fault(call, reply, FAULT_NOPERATION, NULL, name, NULL);
}
