/* verified_tokens: two tables, each with one entry per slot. */
#include "operation/access/verified_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "model/account/account.h"
#include "model/namespace.h"
#include "operation/old_reads.h"

enum { ISSUERS = 64, TOKENS = 2048 };

/* The keys of an issuer in a namespace. */
struct known_keys {
    int ns;
    unsigned char issuer[CRYPTO_SHA256];
    struct document *documents[ISSUER_KEYS_DOCUMENTS]; /* held; NULL: the slot is free */
    struct newest_proof proofs[ISSUER_KEYS_DOCUMENTS];
    struct issuer_keys *keys;
};

struct verified_token {
    unsigned char digest[CRYPTO_SHA256];
    char code[NAMESPACE_CODE_MOST]; /* of the namespace, filled with NUL */
    int64_t accounts, keys;         /* versions of the configuration and the keys */
    int64_t end_ms;                 /* 0: the slot is free */
    int64_t token_end_ms;
    uint32_t roles;
    int place; /* of the issuer in the configuration */
    char account[ACCOUNT_ID];
};

struct verified_tokens {
    struct known_keys known[ISSUERS];
    struct verified_token tokens[TOKENS];
};

struct verified_tokens *verified_tokens_create(void)
{
    struct verified_tokens *tokens = memory_zeroed(1, sizeof *tokens, "verified tokens");
    return tokens;
}

static void verified_tokens_release(struct known_keys *known)
{
    for (size_t i = 0; i < ISSUER_KEYS_DOCUMENTS; i++)
        document_release(known->documents[i]);
    issuer_keys_close(known->keys);
    *known = (struct known_keys){0};
}

void verified_tokens_destroy(struct verified_tokens *tokens)
{
    for (size_t i = 0; tokens && i < ISSUERS; i++)
        verified_tokens_release(&tokens->known[i]);
    free(tokens);
}

/* --- keys --- */

static size_t verified_tokens_place_of(const unsigned char digest[CRYPTO_SHA256], size_t size)
{
    uint64_t number;
    memcpy(&number, digest, sizeof number);
    return number % size;
}

static void keep_keys(struct known_keys *known, int ns, const struct issuer *issuer,
                      const struct document *const documents[ISSUER_KEYS_DOCUMENTS])
{
    verified_tokens_release(known);
    for (size_t i = 0; i < ISSUER_KEYS_DOCUMENTS; i++)
        known->documents[i] = document_hold((struct document *)documents[i]);
    known->keys = issuer_keys_open(documents[0], documents[1]);
    known->ns = ns;
    memcpy(known->issuer, issuer->digest, sizeof known->issuer);
}

static bool verified_tokens_is_current(const struct documents *documents, const struct known_keys *known,
                                       int ns, const struct issuer *issuer)
{
    return known->keys && known->ns == ns && !memcmp(known->issuer, issuer->digest, sizeof known->issuer) &&
           documents_is_still_newest(documents, &known->proofs[0]) &&
           documents_is_still_newest(documents, &known->proofs[1]);
}

/* The newest ones; valid until the next call. */
static enum fault find_keys(struct worker_context *worker_context, struct call *call, int ns,
                            const struct issuer *issuer, const struct issuer_keys **keys_r)
{
    const struct document *documents[ISSUER_KEYS_DOCUMENTS];
    struct newest_proof proofs[ISSUER_KEYS_DOCUMENTS];
    struct document_name names[ISSUER_KEYS_DOCUMENTS];
    struct known_keys *known =
        &worker_context->verified_tokens
             ->known[(verified_tokens_place_of(issuer->digest, ISSUERS) + (size_t)ns) % ISSUERS];
    if (!verified_tokens_is_current(worker_context->documents, known, ns, issuer)) {
        issuer_keys_name(call->arena, issuer->name, names);
        enum fault fault = documents_newest_proven(worker_context->documents, ns, call->arena, names,
                                                   ISSUER_KEYS_DOCUMENTS, documents, proofs);
        if (fault) {
            memset(proofs, 0, sizeof proofs);
            fault =
                old_reads_settle(worker_context, call, ns, fault, names, ISSUER_KEYS_DOCUMENTS, documents);
        }
        if (fault)
            return fault;
        bool is_same =
            known->documents[0] == documents[0] && known->documents[1] == documents[1] && known->ns == ns;
        if (!is_same)
            keep_keys(known, ns, issuer, documents);
        memcpy(known->proofs, proofs, sizeof proofs);
    }
    *keys_r = known->keys;
    return FAULT_NONE;
}

/* --- tokens --- */

static void write_code(char code[NAMESPACE_CODE_MOST], struct bytes ns)
{
    memset(code, 0, NAMESPACE_CODE_MOST);
    memcpy(code, ns.data, ns.size < NAMESPACE_CODE_MOST ? ns.size : NAMESPACE_CODE_MOST);
}

/* Of this token in this namespace, under its present configuration. */
static bool verified_tokens_is_of(const struct verified_token *entry, const struct call *call,
                                  const unsigned char digest[CRYPTO_SHA256])
{
    char code[NAMESPACE_CODE_MOST];
    write_code(code, call->ns);
    return entry->end_ms && !memcmp(entry->digest, digest, CRYPTO_SHA256) &&
           !memcmp(entry->code, code, sizeof code) && entry->accounts == call->accounts.version;
}

static void remember(struct verified_token *entry, const struct call *call,
                     const unsigned char digest[CRYPTO_SHA256], int64_t keys_version,
                     const struct external_proof *proof)
{
    *entry = (struct verified_token){.accounts = call->accounts.version,
                                     .keys = keys_version,
                                     .end_ms = proof->end_ms,
                                     .token_end_ms = proof->token_end_ms,
                                     .roles = proof->roles,
                                     .place = (int)(proof->issuer - call->accounts.issuers->list)};
    memcpy(entry->digest, digest, CRYPTO_SHA256);
    write_code(entry->code, call->ns);
    memcpy(entry->account, proof->account.data, sizeof entry->account);
}

static struct external_proof recall(struct call *call, const struct verified_token *entry)
{
    return (struct external_proof){
        .issuer = &call->accounts.issuers->list[entry->place],
        .account = {arena_copy(call->arena, entry->account, sizeof entry->account), sizeof entry->account},
        .roles = entry->roles,
        .end_ms = entry->end_ms,
        .token_end_ms = entry->token_end_ms};
}

static enum fault verified_tokens_verify(struct worker_context *worker_context, struct call *call, int ns,
                                         struct bytes text, struct verified_token *entry,
                                         const unsigned char digest[CRYPTO_SHA256],
                                         enum token_verdict *verdict_r, struct external_proof *proof_r)
{
    struct jwt jwt;
    const struct issuer *issuer;
    const struct issuer_keys *keys;
    const struct settings *settings = worker_context->settings;
    *verdict_r = TOKEN_WRONG;
    if (!external_token_read(call->arena, call->accounts.issuers, text, &jwt, &issuer))
        return FAULT_NONE;
    enum fault fault = find_keys(worker_context, call, ns, issuer, &keys);
    if (fault)
        return fault;
    *verdict_r = external_token_check(settings, call->arena, &jwt, issuer, keys, clock_present_ms(), proof_r);
    if (*verdict_r == TOKEN_VALID)
        remember(entry, call, digest, issuer_keys_version(keys), proof_r);
    else if (*verdict_r == TOKEN_LATER)
        issuer_keys_want(settings, worker_context->segment, ns, call->ns, issuer->name);
    return FAULT_NONE;
}

enum fault verified_tokens_check(struct worker_context *worker_context, struct call *call, int ns,
                                 struct bytes text, enum token_verdict *verdict_r,
                                 struct external_proof *proof_r)
{
    unsigned char digest[CRYPTO_SHA256];
    const struct issuer_keys *keys;
    crypto_sha256(text, digest);
    struct verified_token *entry =
        &worker_context->verified_tokens->tokens[verified_tokens_place_of(digest, TOKENS)];
    if (!call->accounts.issuers || !verified_tokens_is_of(entry, call, digest))
        return verified_tokens_verify(worker_context, call, ns, text, entry, digest, verdict_r, proof_r);
    const struct external_proof proof = recall(call, entry);
    enum fault fault = find_keys(worker_context, call, ns, proof.issuer, &keys);
    if (fault)
        return fault;
    if (issuer_keys_version(keys) != entry->keys || clock_present_ms() >= entry->end_ms)
        return verified_tokens_verify(worker_context, call, ns, text, entry, digest, verdict_r, proof_r);
    *proof_r = proof;
    *verdict_r = TOKEN_VALID;
    return FAULT_NONE;
}
