/* external_token: claims first, since they cost less than a signature. */
#include "operation/access/external_token.h"

#include <stdlib.h>

#include "base/log.h"
#include "model/account/account.h"

bool external_token_read(struct arena *arena, const struct issuers *issuers, struct bytes text,
                         struct jwt *jwt_r, const struct issuer **issuer_r)
{
    const char *wrong = issuers ? jwt_read(arena, text, jwt_r) : "the namespace has no issuers";
    *issuer_r = wrong ? NULL : issuer_find(issuers, jwt_r->issuer);
    if (!*issuer_r)
        log_debug("token refused: %s", wrong ? wrong : "it has an unknown issuer");
    return *issuer_r != NULL;
}

enum token_verdict external_token_check(const struct settings *settings, struct arena *arena,
                                        const struct jwt *jwt, const struct issuer *issuer,
                                        const struct issuer_keys *keys, int64_t now_ms,
                                        struct external_proof *proof_r)
{
    bool is_unknown;
    const char *wrong = jwt_refuse(jwt, issuer, now_ms / 1000);
    if (wrong) {
        log_debug("token refused: %s", wrong);
        return TOKEN_WRONG;
    }
    int64_t keys_end_ms = issuer_keys_end_ms(settings, keys);
    if (now_ms >= keys_end_ms)
        return TOKEN_LATER;
    const struct signature_key *key = issuer_keys_find(keys, jwt->key, jwt->algorithm, &is_unknown);
    if (!key && is_unknown && !issuer_keys_are_recent(keys, now_ms))
        return TOKEN_LATER;
    if (!key || !signature_is_valid(key, jwt->signed_text, jwt->signature)) {
        log_debug("token refused: %s", key ? "its signature is wrong" : "its key is not one of the issuer's");
        return TOKEN_WRONG;
    }
    int64_t end_ms = (jwt->expires_s + issuer->leeway_s) * 1000;
    *proof_r = (struct external_proof){.issuer = issuer,
                                       .account = issuer_account(arena, jwt->issuer, jwt->subject),
                                       .roles = jwt_find_roles(jwt, issuer),
                                       .end_ms = end_ms < keys_end_ms ? end_ms : keys_end_ms,
                                       .token_end_ms = end_ms};
    return TOKEN_VALID;
}

/* --- roles --- */

static int external_token_compare(const void *a, const void *b)
{
    const struct bytes *one = a, *other = b;
    return bytes_compare(*one, *other);
}

/* Sorted, each once. */
static void join_roles(struct arena *arena, const struct external_proof *proof, const struct account *account,
                       struct rules_caller *caller)
{
    const struct issuer *issuer = proof->issuer;
    struct bytes *roles = ARENA_ARRAY(arena, struct bytes, issuer->map_count + account->role_count + 1);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < issuer->map_count; i++)
        if (proof->roles >> i & 1)
            roles[count++] = issuer->map[i].role;
    for (size_t i = 0; i < account->role_count; i++)
        roles[count++] = account->roles[i];
    if (count > 1)
        qsort(roles, count, sizeof *roles, external_token_compare);
    for (size_t i = 0; i < count; i++)
        if (!i || !bytes_equal(roles[i], roles[kept - 1]))
            roles[kept++] = roles[i];
    *caller = (struct rules_caller){.account = proof->account, .roles = roles, .role_count = kept};
}

bool external_token_admit(struct arena *arena, const struct external_proof *proof,
                          const struct document *document, struct rules_caller *caller_r)
{
    struct account account = {0};
    if (document_exists(document) &&
        (!account_read(arena, account_find(document, BYTES("Self"), BYTES("")),
                       account_find(document, BYTES("Roles"), BYTES("")), &account) ||
         account.is_disabled))
        return false;
    join_roles(arena, proof, &account, caller_r);
    return true;
}
