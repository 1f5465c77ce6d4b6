/* live_caller: the roles are kept in one block of memory. */
#include "live/access/live_caller.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "model/account/account.h"
#include "operation/access/caller.h"

struct live_caller {
    bool is_cookie, is_service;
    char account[ACCOUNT_ID + 1];
    char digest[CRYPTO_SHA256_HEX + 1];
    int64_t expires; /* of a session: a stamp; 0: never */
    const struct settings *settings;
    struct bytes token; /* of a provider, with its issuer; NO_BYTES: it is none */
    struct bytes issuer;
    char issuer_document[ISSUER_DOCUMENT_ID + 1];
    int64_t end_ms; /* of the token, since 1970 */
    struct rules_caller rules;
    struct bytes *roles; /* with their texts behind them */
    size_t bytes;        /* of them */
};

static void *get_memory(size_t size)
{
    void *memory = memory_zeroed(1, size ? size : 1, "live");
    return memory;
}

/* Its texts are verified when it is admitted. */
static void keep_token(struct live_caller *caller, struct bytes token)
{
    struct arena *arena = arena_create("live token");
    struct jwt jwt;
    if ((int64_t)token.size <= caller->settings->limit_token_bytes && !jwt_read(arena, token, &jwt)) {
        char *room = get_memory(token.size + jwt.issuer.size);
        memcpy(room, token.data, token.size);
        memcpy(room + token.size, jwt.issuer.data, jwt.issuer.size);
        caller->token = (struct bytes){room, token.size};
        caller->issuer = (struct bytes){room + token.size, jwt.issuer.size};
        memcpy(caller->account, issuer_account(arena, jwt.issuer, jwt.subject).data, ACCOUNT_ID);
        memcpy(caller->issuer_document, issuer_document_id(arena, jwt.issuer).data, ISSUER_DOCUMENT_ID);
    }
    arena_destroy(arena);
}

struct live_caller *live_caller_create(const struct settings *settings, struct bytes token, bool is_cookie)
{
    struct live_caller *caller = get_memory(sizeof *caller);
    struct account_token read;
    caller->settings = settings;
    caller->is_cookie = is_cookie;
    if (!is_cookie && jwt_is_one(token))
        keep_token(caller, token);
    if (!account_read_token(token, &read))
        return caller;
    caller->is_service = read.is_service;
    memcpy(caller->account, read.account.data, ACCOUNT_ID);
    crypto_sha256_hex(read.secret, caller->digest);
    return caller;
}

void live_caller_destroy(struct live_caller *caller)
{
    if (caller) {
        free(caller->roles);
        free((char *)caller->token.data);
    }
    free(caller);
}

size_t live_caller_bytes(const struct live_caller *caller)
{
    return caller ? sizeof *caller + caller->bytes + caller->token.size + caller->issuer.size : 0;
}

bool live_caller_is_cookie(const struct live_caller *caller)
{
    return caller->is_cookie;
}

/* The id of the account; empty: the credential is not well-formed. */
static struct bytes live_caller_account(const struct live_caller *caller)
{
    return bytes_of(caller->account);
}

static void keep_roles(struct live_caller *caller, const struct rules_caller *now)
{
    size_t texts = 0;
    for (size_t i = 0; i < now->role_count; i++)
        texts += now->roles[i].size;
    free(caller->roles);
    caller->bytes = now->role_count * sizeof *caller->roles + texts;
    caller->roles = get_memory(caller->bytes);
    char *room = (char *)(caller->roles + now->role_count);
    for (size_t i = 0; i < now->role_count; i++) {
        caller->roles[i] = (struct bytes){room, now->roles[i].size};
        memcpy(room, now->roles[i].data, now->roles[i].size);
        room += now->roles[i].size;
    }
    caller->rules = (struct rules_caller){
        .account = bytes_of(caller->account), .roles = caller->roles, .role_count = now->role_count};
}

struct bytes live_caller_issuer(const struct live_caller *caller)
{
    return caller->issuer;
}

size_t live_caller_name(const struct live_caller *caller, struct arena *arena,
                        struct document_name names_r[LIVE_CALLER_DOCUMENTS])
{
    names_r[0] = (struct document_name){BYTES("Account"), live_caller_account(caller)};
    if (!caller->issuer.data)
        return 1;
    issuer_keys_name(arena, caller->issuer, &names_r[1]);
    return LIVE_CALLER_DOCUMENTS;
}

bool live_caller_depends_on(const struct live_caller *caller, struct bytes class, struct bytes id)
{
    if (bytes_equal(class, BYTES("Account")))
        return bytes_equal(id, live_caller_account(caller));
    return caller->issuer.data && bytes_equal(class, BYTES("Issuer")) &&
           bytes_equal(id, bytes_of(caller->issuer_document));
}

static enum token_verdict admit_session(struct live_caller *caller, struct arena *arena,
                                        const struct document *account)
{
    const struct caller_claim claim = {.is_service = caller->is_service, .digest = bytes_of(caller->digest)};
    struct caller_proof proof;
    if (!caller_is_admitted(arena, account, &claim, &proof))
        return TOKEN_WRONG;
    caller->expires = proof.expires;
    keep_roles(caller, &proof.caller);
    return TOKEN_VALID;
}

enum token_verdict live_caller_admit(struct live_caller *caller, struct arena *arena,
                                     const struct issuers *issuers,
                                     const struct document *const documents[LIVE_CALLER_DOCUMENTS])
{
    struct jwt jwt;
    const struct issuer *issuer;
    struct external_proof proof;
    struct rules_caller now;
    if (!caller->issuer.data)
        return admit_session(caller, arena, documents[0]);
    if (!external_token_read(arena, issuers, caller->token, &jwt, &issuer))
        return TOKEN_WRONG;
    struct issuer_keys *keys = issuer_keys_open(documents[1], documents[2]);
    enum token_verdict verdict =
        external_token_check(caller->settings, arena, &jwt, issuer, keys, clock_present_ms(), &proof);
    issuer_keys_close(keys);
    if (verdict != TOKEN_VALID)
        return verdict;
    if (!external_token_admit(arena, &proof, documents[0], &now))
        return TOKEN_WRONG;
    caller->end_ms = proof.end_ms;
    keep_roles(caller, &now);
    return TOKEN_VALID;
}

const struct rules_caller *live_caller_rules(const struct live_caller *caller)
{
    return &caller->rules;
}

bool live_caller_is_over(const struct live_caller *caller)
{
    if (caller->end_ms)
        return clock_present_ms() >= caller->end_ms;
    return account_is_over(caller->expires, clock_present_minute());
}
