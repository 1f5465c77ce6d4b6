/* caller: credentials are found, then compared with the account's sessions. */
#include "operation/access/caller.h"

#include "base/clock.h"
#include "edge/crypto/crypto.h"
#include "model/account/account.h"
#include "operation/access/verified_tokens.h"
#include "operation/old_reads.h"
#include "store/store.h"

enum { KEYS_RETRY_S = 2 };

struct credential {
    const char *where; /* the header or argument; NULL: there is none */
    struct bytes text;
};

static struct credential find_credential(struct call *call, const struct ns_accounts *accounts, bool has_key)
{
    if (call->token.data)
        return (struct credential){"Authorization", call->token};
    if (!accounts->is_on)
        return (struct credential){0}; /* the arguments belong to the application */
    if (call->key.data)
        return (struct credential){"key", call->key};
    struct bytes cookie = has_key ? NO_BYTES : account_find_cookie(call->cookies, call->ns);
    if (!cookie.data)
        return (struct credential){0};
    call->is_by_cookie = true;
    return (struct credential){"Cookie", cookie};
}

const char *caller_cookie(struct call *call, struct bytes token, int64_t seconds)
{
    return arena_printf(call->arena,
                        ACCOUNT_COOKIE "%.*s=%.*s; Path=/; Max-Age=%lld; Secure; HttpOnly; SameSite=Lax",
                        (int)call->ns.size, call->ns.data, (int)token.size, token.data, (long long)seconds);
}

enum fault caller_refuse(const struct worker_context *worker_context, struct call *call, struct reply *reply,
                         const char *where, const char *detail)
{
    enum fault fault = reply_fault(call, reply, FAULT_SKEY, detail, where, NULL);
    bool has_few_statuses = worker_context->settings->fault_status == FAULT_STATUS_FEW && !call->resource;
    reply->fault_status = has_few_statuses ? 0 : 401;
    return fault;
}

/* A cookie that is wrong is removed, else every later request would be refused too. */
static enum fault refuse_credential(const struct worker_context *worker_context, struct call *call,
                                    struct reply *reply, const char *where, const char *detail)
{
    enum fault fault = caller_refuse(worker_context, call, reply, where, detail);
    reply->cookie = call->is_by_cookie ? caller_cookie(call, BYTES(""), 0) : NULL;
    return fault;
}

/* Every session is compared in full: the time tells nothing about their digests. */
static const struct item *find_session(const struct document *account, struct bytes digest)
{
    const struct item *found = NULL;
    for (size_t i = 0; i < account->item_count; i++) {
        const struct item *item = &account->items[i];
        if (bytes_equal(item->iclass, BYTES("Sess")) && crypto_equal(item->key, digest) &&
            !item_is_tombstone(item))
            found = item;
    }
    return found;
}

/* A removal that is no longer known is not newer than dtime. */
static int64_t version_of_roles(const struct document *account)
{
    const struct item *item = document_find_item(account, BYTES("Roles"), BYTES(""));
    return item ? item->version : account->header.dtime;
}

bool caller_is_admitted(struct arena *arena, const struct document *document,
                        const struct caller_claim *claim, struct caller_proof *proof_r)
{
    struct account account;
    struct account_session session;
    const struct item *item = document_exists(document) ? find_session(document, claim->digest) : NULL;
    if (!item || !account_read_session(arena, item->content, &session) ||
        session.is_service != claim->is_service || account_is_over(session.expires, clock_present_minute()) ||
        !account_read(arena, account_find(document, BYTES("Self"), BYTES("")),
                      account_find(document, BYTES("Roles"), BYTES("")), &account) ||
        account.is_disabled)
        return false;
    *proof_r = (struct caller_proof){.caller = {.account = document->header.id,
                                                .roles = account.roles,
                                                .role_count = account.role_count,
                                                .version = version_of_roles(document)},
                                     .session = item->key,
                                     .expires = session.expires};
    return true;
}

bool caller_is_served(struct arena *arena, const struct document *document, bool by_key,
                      struct rules_caller *caller_r)
{
    struct account account;
    struct account_session session;
    bool has_key = false;
    if (!document_exists(document) ||
        !account_read(arena, account_find(document, BYTES("Self"), BYTES("")),
                      account_find(document, BYTES("Roles"), BYTES("")), &account) ||
        account.is_disabled)
        return false;
    for (size_t i = 0; i < document->item_count && by_key && !has_key; i++) {
        const struct item *item = &document->items[i];
        has_key = bytes_equal(item->iclass, BYTES("Sess")) && !item_is_tombstone(item) &&
                  account_read_session(arena, item->content, &session) && session.is_service;
    }
    *caller_r = (struct rules_caller){.account = document->header.id,
                                      .roles = account.roles,
                                      .role_count = account.role_count,
                                      .version = version_of_roles(document)};
    return has_key || !by_key;
}

/* Sets the caller; false: the token is not valid now. */
static bool accept(struct call *call, const struct document *document, const struct account_token *token)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct caller_proof proof;
    crypto_sha256_hex(token->secret, digest);
    const struct caller_claim claim = {.is_service = token->is_service, .digest = bytes_of(digest)};
    if (!caller_is_admitted(call->arena, document, &claim, &proof))
        return false;
    call->caller = proof.caller;
    call->caller_session = proof.session;
    call->is_by_service_key = token->is_service;
    return true;
}

/* The namespace of the call, ready for reading: -1: there are too many. */
static int caller_enter(const struct worker_context *worker_context, struct call *call)
{
    struct store *store = documents_store(worker_context->documents);
    int ns = documents_ns(worker_context->documents, call->database);
    store_clear_visitor(store); /* of an earlier request that was refused at once */
    if (ns >= 0 && call->is_visitor)
        store_set_visitor(store, ns);
    return ns;
}

static enum fault caller_fetch_account(const struct worker_context *worker_context, struct call *call, int ns,
                                       struct bytes id, const struct document **document_r)
{
    const struct document_name name = {BYTES("Account"), id};
    enum fault fault = documents_newest(worker_context->documents, ns, call->arena, &name, 1, document_r);
    return old_reads_settle(worker_context, call, ns, fault, &name, 1, document_r);
}

/* A session or a service key. */
static enum fault check_token(const struct worker_context *worker_context, struct call *call, int ns,
                              struct bytes text, bool *is_right_r)
{
    struct account_token token;
    const struct document *document;
    if (!account_read_token(text, &token))
        return FAULT_NONE;
    enum fault fault = caller_fetch_account(worker_context, call, ns, token.account, &document);
    *is_right_r = !fault && accept(call, document, &token);
    return fault;
}

enum fault caller_is_administrator(const struct worker_context *worker_context, struct call *call,
                                   struct bytes text, bool *is_right_r)
{
    const struct bytes prefix = BYTES("z_");
    char digest[CRYPTO_SHA256_HEX + 1];
    struct account_token token;
    struct caller_proof proof;
    const struct document *document;
    *is_right_r = false;
    if (text.size < prefix.size || !bytes_equal((struct bytes){text.data, prefix.size}, prefix) ||
        !account_read_token((struct bytes){text.data + prefix.size, text.size - prefix.size}, &token))
        return FAULT_NONE;
    int ns = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    if (ns < 0)
        return FAULT_NONE;
    enum fault fault = caller_fetch_account(worker_context, call, ns, token.account, &document);
    if (fault)
        return fault;
    crypto_sha256_hex(token.secret, digest);
    const struct caller_claim claim = {.is_service = token.is_service, .digest = bytes_of(digest)};
    if (!caller_is_admitted(call->arena, document, &claim, &proof))
        return FAULT_NONE;
    for (size_t i = 0; i < proof.caller.role_count; i++)
        *is_right_r |= bytes_equal(proof.caller.roles[i], BYTES("administrator"));
    if (*is_right_r)
        call->administrator = token.account;
    return FAULT_NONE;
}

/* The keys of the provider are about to be fetched. */
static enum fault refuse_for_now(struct call *call, struct reply *reply)
{
    reply->retry_after_s = KEYS_RETRY_S;
    return reply_fault(call, reply, FAULT_XBUSY, "The keys of the token's issuer are not known yet.",
                       "issuers", NULL);
}

/* A token of an OpenID provider. */
static enum fault check_external(struct worker_context *worker_context, struct call *call, int ns,
                                 struct bytes text, struct reply *reply, bool *is_right_r)
{
    const struct settings *settings = worker_context->settings;
    const struct document *document;
    struct external_proof *proof = ARENA_NEW(call->arena, struct external_proof);
    enum token_verdict verdict;
    if ((int64_t)text.size > settings->limit_token_bytes)
        return reply_fault(call, reply, FAULT_ALIMIT, NULL, "limit_token_bytes",
                           arena_printf(call->arena, "%lld", (long long)settings->limit_token_bytes),
                           arena_printf(call->arena, "%zu", text.size), NULL);
    enum fault fault = verified_tokens_check(worker_context, call, ns, text, &verdict, proof);
    if (!fault && verdict == TOKEN_LATER)
        return refuse_for_now(call, reply);
    if (fault || verdict == TOKEN_WRONG)
        return fault;
    fault = caller_fetch_account(worker_context, call, ns, proof->account, &document);
    *is_right_r = !fault && external_token_admit(call->arena, proof, document, &call->caller);
    call->external = *is_right_r ? proof : NULL;
    return fault;
}

static enum fault caller_check(struct worker_context *worker_context, struct call *call,
                               const struct credential *credential, struct reply *reply)
{
    static const char wrong[] = "The session has ended, or the key is wrong.";
    bool is_right = false;
    int ns = caller_enter(worker_context, call);
    if (ns < 0)
        return reply_fault(call, reply, FAULT_BINTERNAL, "The table of namespaces is full.", NULL);
    enum fault fault = jwt_is_one(credential->text) && !call->is_by_cookie
                           ? check_external(worker_context, call, ns, credential->text, reply, &is_right)
                           : check_token(worker_context, call, ns, credential->text, &is_right);
    if (fault || is_right)
        return fault;
    return refuse_credential(worker_context, call, reply, credential->where, wrong);
}

enum fault caller_find(struct worker_context *worker_context, struct call *call,
                       const struct ns_accounts *accounts, bool has_key, struct reply *reply)
{
    call->caller = (struct rules_caller){0};
    call->caller_session = NO_BYTES;
    call->is_by_service_key = false;
    call->external = NULL;
    call->is_by_cookie = false;
    if (call->route == CALL_TASKS)
        return FAULT_NONE; /* its key is that of queue managers */
    struct credential credential = find_credential(call, accounts, has_key);
    if (credential.where && !accounts->is_on)
        return caller_refuse(worker_context, call, reply, credential.where, "The namespace has no accounts.");
    enum fault fault = credential.where ? caller_check(worker_context, call, &credential, reply) : FAULT_NONE;
    if (fault || !accounts->is_on || !call->account.data || bytes_equal(call->account, call->caller.account))
        return fault;
    return caller_refuse(worker_context, call, reply, "account",
                         "The key of this account is expected in `key`.");
}
