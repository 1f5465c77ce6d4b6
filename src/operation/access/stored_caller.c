/* stored_caller: tokens of providers as texts; the rights of the moment. */
#include "operation/access/stored_caller.h"

#include "base/clock.h"
#include "model/document/stamp.h"
#include "operation/access/access.h"
#include "operation/access/caller.h"
#include "operation/access/external_token.h"

/* --- tokens --- */

static const char word[] = "token";

static bool stored_caller_is_token(struct bytes credential)
{
    struct bytes rest = credential;
    return bytes_equal(bytes_cut(&rest, ' '), bytes_of(word));
}

static struct bytes write_token(struct arena *arena, const struct external_proof *proof)
{
    const struct issuer *issuer = proof->issuer;
    struct builder text = {0};
    builder_printf(&text, "%s %lld %.*s", word, (long long)stamp_from_epoch_ms(proof->token_end_ms),
                   (int)issuer->name.size, issuer->name.data);
    for (size_t i = 0; i < issuer->map_count; i++)
        if (proof->roles >> i & 1)
            builder_printf(&text, " %.*s", (int)issuer->map[i].role.size, issuer->map[i].role.data);
    return builder_take(&text, arena);
}

struct bytes stored_caller_token(const struct call *call)
{
    if (call->task)
        return stored_caller_is_token(call->task->credential) ? call->task->credential : NO_BYTES;
    return call->external ? write_token(call->arena, call->external) : NO_BYTES;
}

static void add_role(struct external_proof *proof, struct bytes role)
{
    for (size_t i = 0; i < proof->issuer->map_count; i++)
        if (bytes_equal(proof->issuer->map[i].role, role))
            proof->roles |= (uint32_t)1 << i;
}

/* False: the token has ended, or its issuer is not one of the namespace's. */
static bool read_token(const struct issuers *issuers, struct bytes text, struct external_proof *proof_r)
{
    int64_t end;
    bytes_cut(&text, ' ');
    bool is_number = bytes_to_i64(bytes_cut(&text, ' '), &end);
    *proof_r = (struct external_proof){.issuer = issuer_find(issuers, bytes_cut(&text, ' '))};
    if (!is_number || !proof_r->issuer || end <= stamp_from_epoch_ms(clock_present_ms()))
        return false;
    while (text.size)
        add_role(proof_r, bytes_cut(&text, ' '));
    return true;
}

/* --- rights --- */

enum fault stored_caller_find_rights(struct worker_context *worker_context, struct call *call,
                                     struct stored_caller_rights *rights_r)
{
    const struct configuration *own, *z;
    struct ns_conf conf;
    enum fault fault = configurations_find(worker_context, call, &own, &z);
    if (!fault)
        configurations_hold(own, call->arena);
    if (!fault)
        fault = access_configuration(worker_context, call, &conf);
    if (fault)
        return fault;
    if (conf.quotas && conf.quotas != own->conf.quotas)
        configurations_hold(z, call->arena);
    enum access_level level = access_level(worker_context->settings, &conf, call->database, false);
    *rights_r = (struct stored_caller_rights){.own = own,
                                              .quotas = conf.quotas,
                                              .filters = access_find_filters(call, own->rules, level),
                                              .level = level};
    return FAULT_NONE;
}

bool stored_caller_is_served(struct arena *arena, const struct ns_accounts *accounts, struct bytes credential,
                             const struct document *account, bool by_key, struct rules_caller *caller_r)
{
    struct external_proof proof;
    if (!accounts->is_on)
        return false;
    if (!issuer_is_account(account->header.id))
        return caller_is_served(arena, account, by_key, caller_r);
    if (!read_token(accounts->issuers, credential, &proof))
        return false;
    proof.account = account->header.id;
    return external_token_admit(arena, &proof, account, caller_r);
}
