/* account_ticket: see the header. */
#include "operation/accounts/account_ticket.h"

#include "base/clock.h"
#include "edge/crypto/crypto.h"
#include "operation/accounts/accounts.h"
#include "operation/access/caller.h"
#include "operation/tasks/task_request.h"

enum { PROOF_CHARACTERS = 32 };

struct document_name account_ticket_name(struct bytes key)
{
    return (struct document_name){BYTES("Ticket"), key};
}

struct bytes account_ticket_key(struct attempt *attempt, struct bytes secret)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(secret, digest);
    return bytes_of(arena_copy(attempt->call->arena, digest, CRYPTO_SHA256_HEX));
}

static struct bytes digest_of(struct attempt *attempt, const struct draft *account, struct bytes iclass)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    const struct item *item = draft_find_item(account, iclass, BYTES(""));
    if (!item)
        return BYTES("");
    crypto_sha256_hex(item->content, digest);
    return bytes_of(arena_copy(attempt->call->arena, digest, PROOF_CHARACTERS));
}

struct bytes account_ticket_proof(struct attempt *attempt, enum letter_kind kind, const struct draft *account)
{
    struct bytes password = digest_of(attempt, account, BYTES("Secret"));
    struct bytes used = kind == LETTER_LOGIN ? digest_of(attempt, account, BYTES("Link")) : BYTES("");
    return bytes_of(arena_printf(attempt->call->arena, "%.*s%.*s", (int)password.size, password.data,
                                 (int)used.size, used.data));
}

enum fault account_ticket_fetch_account(struct attempt *attempt, const struct account_ticket *ticket,
                                        struct draft **draft_r, struct account *account_r)
{
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_name(ticket->account), draft_r);
    if (fault)
        return fault;
    if (!draft_exists(*draft_r))
        return account_ticket_refuse(attempt);
    fault = account_gate_read(attempt, *draft_r, account_r);
    if (fault)
        return fault;
    bool holds = account_r->is_confirmed && !account_r->is_disabled && account_r->name.size &&
                 bytes_equal(account_r->address, ticket->address) &&
                 bytes_equal(account_ticket_proof(attempt, ticket->kind, *draft_r), ticket->proof);
    return holds ? FAULT_NONE : account_ticket_refuse(attempt);
}

/* The item Link of the account names the last ticket that was used, and is in the proof of each. */
void account_ticket_use_login(struct attempt *attempt, struct draft *account, struct account_ticket *ticket)
{
    struct bytes key = draft_base(ticket->draft)->header.id;
    const char *content = arena_printf(attempt->call->arena, "{\"used\":\"%.*s\"}", (int)key.size, key.data);
    draft_set_item(account, BYTES("Link"), BYTES(""), false, bytes_of(content));
    draft_delete(ticket->draft);
}

enum fault account_ticket_refuse(struct attempt *attempt)
{
    return caller_refuse(attempt->worker_context, attempt->call, attempt->reply, "ticket",
                         "The ticket is wrong, used or expired.");
}

/* --- creation --- */

static struct bytes write_content(struct arena *arena, const struct account_ticket *ticket, int64_t expires)
{
    struct builder text = {0};
    builder_printf(&text, "{\"kind\":\"%s\",\"account\":", letter_word(ticket->kind));
    json_add_string(&text, ticket->account);
    json_add_text(&text, ",\"address\":", ticket->address);
    json_add_text(&text, ",\"proof\":", ticket->proof);
    builder_printf(&text, ",\"expires\":%lld}", (long long)expires);
    return builder_take(&text, arena);
}

enum fault account_ticket_create(struct attempt *attempt, struct bytes key,
                                 const struct account_ticket *ticket, int64_t minutes)
{
    struct draft *draft;
    int64_t expires = account_stamp_of(clock_present_minute() + minutes);
    enum fault fault = transaction_fetch(attempt->transaction, account_ticket_name(key), &draft);
    if (fault)
        return fault;
    draft_create(draft);
    draft_set_item(draft, BYTES("Mail"), BYTES(""), false,
                   write_content(attempt->call->arena, ticket, expires));
    return account_ticket_plan_end(attempt, key, expires);
}

/* --- use --- */

static bool account_ticket_read_content(struct arena *arena, struct bytes content,
                                        struct account_ticket *ticket_r, int64_t *expires_r)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2, .nodes = 16};
    struct json *root;
    struct json_problem problem;
    if (json_read(arena, content, &limits, &root, &problem))
        return false;
    const struct json *expires = json_member(root, "expires");
    ticket_r->account = json_text_of(root, "account", BYTES(""));
    ticket_r->address = json_text_of(root, "address", BYTES(""));
    ticket_r->proof = json_text_of(root, "proof", BYTES(""));
    return letter_find_kind(json_text_of(root, "kind", BYTES("")), &ticket_r->kind) && expires &&
           json_is_i64(expires, expires_r);
}

enum fault account_ticket_read(struct attempt *attempt, struct bytes *secret_r)
{
    const struct reader reader = account_gate_reader(attempt);
    return FAULT_FIRST(account_gate_check(attempt),
                       reader_text(&reader, attempt->call->param, "ticket", secret_r));
}

enum fault account_ticket_fetch(struct attempt *attempt, struct bytes secret, enum letter_kind kind,
                                struct account_ticket *ticket_r)
{
    struct arena *arena = attempt->call->arena;
    int64_t expires;
    struct bytes key = account_ticket_key(attempt, secret);
    enum fault fault = transaction_fetch(attempt->transaction, account_ticket_name(key), &ticket_r->draft);
    if (fault)
        return fault;
    const struct item *item =
        draft_exists(ticket_r->draft) ? draft_find_item(ticket_r->draft, BYTES("Mail"), BYTES("")) : NULL;
    if (!item || !account_ticket_read_content(arena, item->content, ticket_r, &expires) ||
        ticket_r->kind != kind || account_is_over(expires, clock_present_minute()))
        return account_ticket_refuse(attempt);
    return FAULT_NONE;
}

/* --- end: the task `ticketend` (ticketend.c), param {"ticket":key} --- */

enum fault account_ticket_plan_end(struct attempt *attempt, struct bytes key, int64_t expires)
{
    const struct reader reader = account_gate_reader(attempt);
    struct task_excess excess;
    const struct task_request request = {
        .operation = &accounts_ticketend,
        .param =
            bytes_of(arena_printf(attempt->call->arena, "{\"ticket\":\"%.*s\"}", (int)key.size, key.data)),
        .start = expires,
        .priority = TASK_PRIORITY_MOST,
    };
    enum fault fault = task_request_add(attempt, &request, &excess);
    return fault ? reader_over(&reader, NULL, excess.limit, excess.most, excess.value) : FAULT_NONE;
}
