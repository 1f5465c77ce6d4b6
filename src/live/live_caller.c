/* live_caller: the roles are kept in one block of memory. */
#include "live/live_caller.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/crypto.h"
#include "model/account.h"
#include "operation/caller.h"

struct live_caller {
    bool is_cookie, is_service;
    char account[ACCOUNT_ID + 1];
    char digest[CRYPTO_SHA256_HEX + 1];
    int64_t expires; /* a stamp; 0: never */
    struct rules_caller rules;
    struct bytes *roles; /* with their texts behind them */
    size_t bytes;        /* of them */
};

static void *get_memory(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        log_fatal("out of memory live");
    return memory;
}

struct live_caller *live_caller_create(struct bytes token, bool is_cookie)
{
    struct live_caller *caller = get_memory(sizeof *caller);
    struct account_token read;
    caller->is_cookie = is_cookie;
    if (!account_read_token(token, &read))
        return caller;
    caller->is_service = read.is_service;
    memcpy(caller->account, read.account.data, ACCOUNT_ID);
    crypto_sha256_hex(read.secret, caller->digest);
    return caller;
}

void live_caller_destroy(struct live_caller *caller)
{
    if (caller)
        free(caller->roles);
    free(caller);
}

size_t live_caller_bytes(const struct live_caller *caller)
{
    return caller ? sizeof *caller + caller->bytes : 0;
}

bool live_caller_is_cookie(const struct live_caller *caller)
{
    return caller->is_cookie;
}

struct bytes live_caller_account(const struct live_caller *caller)
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

bool live_caller_admit(struct live_caller *caller, struct arena *arena, const struct document *account)
{
    const struct caller_claim claim = {.is_service = caller->is_service, .digest = bytes_of(caller->digest)};
    struct caller_proof proof;
    if (!caller_is_admitted(arena, account, &claim, &proof))
        return false;
    caller->expires = proof.expires;
    keep_roles(caller, &proof.caller);
    return true;
}

const struct rules_caller *live_caller_rules(const struct live_caller *caller)
{
    return &caller->rules;
}

bool live_caller_is_over(const struct live_caller *caller)
{
    return account_is_over(caller->expires, clock_present_minute());
}
