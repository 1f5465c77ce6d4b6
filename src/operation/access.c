/* access: checks the namespace, the key, and what the namespace's configuration allows, in this order. */
#include "operation/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "edge/crypto.h"
#include "operation/caller.h"
#include "operation/client_copies.h"
#include "operation/reply.h"

/* No item, or one that cannot be read: closed. */
static struct ns_conf read_conf(struct arena *arena, const struct document *document)
{
    const struct item *item = document_find_item(document, BYTES("Conf"), BYTES(""));
    return namespace_read(arena, item && !item_is_tombstone(item) ? item->content : NO_BYTES);
}

/* No item, or one that cannot be read: nothing is allowed. */
static struct rules *read_rules(struct arena *arena, const struct document *document)
{
    const struct item *item = document_find_item(document, BYTES("Rules"), BYTES(""));
    struct rules *rules;
    struct rules_problem problem;
    bool is_there = item && !item_is_tombstone(item) && !item->raw;
    if (is_there && rules_read(arena, item->content, &rules, &problem)) {
        log_warning("document Namespace/%.*s: its item Rules is malformed at %s: %s",
                    (int)document->header.id.size, document->header.id.data, problem.path, problem.expected);
        is_there = false;
    }
    return is_there || !rules_read(arena, BYTES("{}"), &rules, &problem) ? rules : NULL;
}

/* A configuration, as parsed from one snapshot of its document. */
struct known_conf {
    char code[NAMESPACE_CODE_MOST];
    size_t code_size;
    struct document *document; /* held: while it is the newest, `conf` is current */
    struct newest_proof proof;
    int64_t version;     /* of the document that was parsed last */
    struct arena *arena; /* of the texts of `conf` */
    struct ns_conf conf;
    struct rules *rules;
};

enum { KNOWN_CONFS = 64 };
struct access_memory {
    struct known_conf z, known[KNOWN_CONFS];
};

struct access_memory *access_memory_create(void)
{
    struct access_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        log_fatal("out of memory");
    return memory;
}

static void forget(struct known_conf *known)
{
    document_release(known->document);
    arena_destroy(known->arena);
    *known = (struct known_conf){0};
}

void access_memory_destroy(struct access_memory *memory)
{
    for (size_t i = 0; memory && i < KNOWN_CONFS; i++)
        forget(&memory->known[i]);
    if (memory)
        forget(&memory->z);
    free(memory);
}

static bool is_code_of_z(struct bytes code)
{
    return bytes_equal(code, BYTES("z"));
}

/* The slot in which a namespace's configuration is kept; another one may occupy it. */
static struct known_conf *place_of(struct access_memory *memory, struct bytes code)
{
    size_t sum = 0;
    if (is_code_of_z(code))
        return &memory->z;
    for (size_t i = 0; i < code.size; i++)
        sum = sum * 31 + (unsigned char)code.data[i];
    return &memory->known[sum % KNOWN_CONFS];
}

static bool is_of(const struct known_conf *known, struct bytes code)
{
    return known->document && bytes_equal((struct bytes){known->code, known->code_size}, code);
}

static bool is_current(const struct documents *documents, const struct known_conf *known, struct bytes code)
{
    return is_of(known, code) && documents_is_still_newest(documents, &known->proof);
}

/* A malformed configuration is reported once by each process. */
static void keep(struct known_conf *known, struct bytes code, const struct document *document,
                 const struct newest_proof *proof)
{
    bool is_other = !is_of(known, code) || known->document != document;
    int64_t reported = is_of(known, code) ? known->version : 0;
    known->proof = *proof;
    if (!is_other)
        return;
    forget(known);
    *known = (struct known_conf){.document = document_hold((struct document *)document),
                                 .proof = *proof,
                                 .version = document->header.version,
                                 .arena = arena_create("access")};
    bool is_short = code.size <= sizeof known->code; /* else it is no code, and read again each time */
    known->code_size = is_short ? code.size : SIZE_MAX;
    memcpy(known->code, code.data, is_short ? code.size : 0);
    known->conf = read_conf(known->arena, document);
    known->rules = read_rules(known->arena, document);
    if (known->conf.wrong && reported != known->version)
        log_warning("document Namespace/%.*s: its item Conf is malformed member=%s", (int)code.size,
                    code.data, *known->conf.wrong ? known->conf.wrong : "all");
}

/* Both documents are verified, or loaded, in one round trip. */
static enum fault refresh(struct worker_context *worker_context, struct call *call, struct known_conf *own,
                          struct known_conf *z)
{
    const struct document_name names[] = {{.class = BYTES("Namespace"), .id = call->ns},
                                          {.class = BYTES("Namespace"), .id = BYTES("z")}};
    const struct document *documents[COUNT_OF(names)];
    struct newest_proof proofs[COUNT_OF(names)];
    int ns = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    if (ns < 0)
        return FAULT_BINTERNAL;
    enum fault fault = documents_newest_proven(worker_context->documents, ns, call->arena, names,
                                               own == z ? 1 : 2, documents, proofs);
    if (fault)
        return fault;
    keep(own, call->ns, documents[0], &proofs[0]);
    if (own != z)
        keep(z, names[1].id, documents[1], &proofs[1]);
    return FAULT_NONE;
}

void access_add_state_of_z(struct ns_conf *conf, const struct ns_conf *z)
{
    if (z->state < conf->state || (z->state == conf->state && conf->message.size))
        return;
    conf->state = z->state;
    conf->message = z->message;
}

enum fault access_configuration(struct worker_context *worker_context, struct call *call,
                                struct ns_conf *conf_r)
{
    struct known_conf *own = place_of(worker_context->access, call->ns), *z = &worker_context->access->z;
    const struct documents *documents = worker_context->documents;
    *conf_r = (struct ns_conf){.mode = ACCESS_CLOSED};
    if (!is_current(documents, own, call->ns) || !is_current(documents, z, BYTES("z"))) {
        enum fault fault = refresh(worker_context, call, own, z);
        if (fault)
            return fault;
    }
    *conf_r = own->conf;
    if (own != z)
        access_add_state_of_z(conf_r, &z->conf);
    if (!conf_r->quotas)
        conf_r->quotas = z->conf.quotas;
    return FAULT_NONE;
}

/* Valid until the next call of access_configuration. */
static const struct rules *rules_of(const struct worker_context *worker_context, const struct call *call)
{
    return place_of(worker_context->access, call->ns)->rules;
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

/* May the caller run it, as far as its level or the rules that it obeys decide? */
static bool may_run(const struct call *call, const struct operation *operation)
{
    return call->level >= level_needed(operation) || (call->rules && operation->obeys_rules);
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

/* A wrong key is refused, even where none is needed and beside a right one. */
enum fault access_check_keys(const struct worker_context *worker_context, struct call *call,
                             struct reply *reply, bool *is_there_r)
{
    bool is_own = call->admin.size && call->admin.data != call->bearer.data;
    *is_there_r = call->bearer.data || is_own;
    if (call->bearer.data && !is_right_key(worker_context, call->bearer))
        return reply_fault(call, reply, FAULT_SKEY, "This is not the administrator's key.", "Authorization",
                           NULL);
    if (is_own && !is_right_key(worker_context, call->admin))
        return reply_fault(call, reply, FAULT_SKEY, "This is not the administrator's key.", "admin", NULL);
    return FAULT_NONE;
}

static bool is_listed(const struct json *origins, struct bytes origin, bool may_be_any)
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

/* A cookie is sent whatever the page: its origin must then be known, and be listed by its name. */
static bool is_foreign(const struct browser *browser, const struct ns_conf *conf, bool is_by_cookie)
{
    if (bytes_equal(browser->site, BYTES("same-origin")) || bytes_equal(browser->site, BYTES("none")))
        return false;
    if (!browser->origin.size)
        return browser->site.size > 0 || is_by_cookie;
    if (!browser->site.size && is_own_origin(browser))
        return false;
    return !is_listed(conf->origins, browser->origin, !is_by_cookie);
}

enum fault access_enter(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    struct ns_conf conf;
    bool has_key;
    call->level = LEVEL_NOTHING;
    call->rules = NULL;
    call->quotas = NULL;
    call->is_read_only = false;
    call->message = NULL;
    call->is_entered = false;
    enum fault fault = access_configuration(worker_context, call, &conf);
    if (fault)
        return fault;
    if (!access_is_namespace(worker_context->settings, &conf, call->ns, call->database))
        return access_refuse_name(call, reply);
    fault = access_check_keys(worker_context, call, reply, &has_key);
    if (fault)
        return fault;
    const char *message =
        conf.message.size ? arena_copy(call->arena, conf.message.data, conf.message.size) : NULL;
    fault = access_refuse_state(worker_context->settings, &conf, call->database, has_key);
    if (fault)
        return reply_fault(call, reply, fault, message, NULL);
    call->is_read_only =
        conf.state == NS_READONLY && !is_database_of_z(worker_context->settings, call->database);
    call->message = message;
    call->level = access_level(worker_context->settings, &conf, call->database, has_key);
    call->rules = conf.mode == ACCESS_RULES && !has_key ? rules_of(worker_context, call) : NULL;
    call->quotas = has_key ? NULL : conf.quotas;
    call->accounts = conf.accounts;
    fault = caller_find(worker_context, call, &call->accounts, has_key, reply);
    if (fault)
        return fault;
    call->is_foreign = is_foreign(&call->browser, &conf, call->is_by_cookie);
    call->is_entered = true;
    return FAULT_NONE;
}

/* Input of operations that write, and of applications, may be large; input of other operations may not. */
static bool takes_much(const struct call *call, const struct operation *operation)
{
    if (call->level == LEVEL_EVERYTHING)
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
    bool is_allowed = operation ? may_run(call, operation) : call->level >= LEVEL_READ;
    bool is_refused = call->is_read_only && operation && !operation->is_safe && !operation->is_look;
    call->barred = fault ? fault : !is_allowed ? FAULT_SCLOSED : is_refused ? FAULT_OREADONLY : FAULT_NONE;
    call->body_most = !call->barred && operation && takes_much(call, operation)
                          ? settings->limit_body_bytes
                          : settings_anonymous_body(settings);
    return FAULT_NONE;
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
    if (!call->is_foreign)
        return FAULT_NONE;
    struct bytes origin = call->browser.origin;
    return reply_fault(call, reply, FAULT_SORIGIN, NULL, arena_copy(call->arena, origin.data, origin.size),
                       NULL);
}

static enum fault refuse(struct call *call, struct reply *reply, const char *what)
{
    return reply_fault(call, reply, FAULT_SCLOSED,
                       "Without the administrator's key this operation is closed here.", what, NULL);
}

/* Synchronisations and sessions return data of the namespace, whatever the operation.  Whether an operation
 * grants documents is known only after its work (operation/sync.c). */
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
    if (call->session.data)
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
    if (!may_run(call, operation))
        return refuse(call, reply, operation->name);
    if (call->is_read_only && access_may_change(call, operation))
        return refuse_change(call, reply);
    return check_beside(call, reply, operation);
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
        return refuse(call, reply, name);
    return reply_fault(call, reply, FAULT_NOPERATION, NULL, name, NULL);
}
