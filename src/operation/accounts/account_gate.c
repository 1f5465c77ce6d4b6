/* account_gate: see the header. */
#include "operation/accounts/account_gate.h"

#include "base/address.h"
#include "base/clock.h"
#include "edge/crypto/crypto.h"
#include "operation/access/configurations.h"
#include "segment/counts/limiter.h"

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS };
enum {
    KIND_CLIENT = LIMITER_ATTEMPTS,
    KIND_NAME,
    KIND_MAILER,
    KIND_MAILED,
    KIND_MAILS,
    KIND_SITE,
    KIND_FAILED,
    KIND_ACCOUNT
};
/* A site may make as many attempts as so many of its addresses. */
enum { SITE_ADDRESSES = 4 };

struct account_kept *account_gate_kept(struct attempt *attempt)
{
    if (!attempt->kept)
        attempt->kept = ARENA_NEW(attempt->call->arena, struct account_kept);
    return attempt->kept;
}

struct reader account_gate_reader(struct attempt *attempt)
{
    return (struct reader){attempt->worker_context->settings, attempt->call, attempt->reply};
}

static enum fault account_gate_refuse(struct attempt *attempt, const char *detail)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, attempt->operation->name, NULL);
}

enum fault account_gate_find_accounts(struct attempt *attempt)
{
    const struct configuration *own, *z;
    struct call *call = attempt->call;
    enum fault fault = configurations_find(attempt->worker_context, call, &own, &z);
    if (fault)
        return fault;
    configurations_hold(own, call->arena);
    call->accounts = own->conf.accounts;
    return FAULT_NONE;
}

enum fault account_gate_check(struct attempt *attempt)
{
    return attempt->call->accounts.is_on ? FAULT_NONE
                                         : account_gate_refuse(attempt, "The namespace has no accounts.");
}

enum fault account_gate_fetch_caller(struct attempt *attempt, struct draft **account_r)
{
    struct call *call = attempt->call;
    struct account_session session;
    enum fault fault = account_gate_check(attempt);
    if (fault)
        return fault;
    if (!call->caller.account.data)
        return account_gate_refuse(attempt, "A session is expected: log in first.");
    if (account_gate_is_external(attempt))
        return account_gate_refuse(attempt, "The account is that of a provider, which manages it.");
    fault = transaction_fetch(attempt->transaction, account_gate_name(call->caller.account), account_r);
    if (fault)
        return fault;
    struct bytes content = account_find(draft_base(*account_r), BYTES("Sess"), call->caller_session);
    if (!account_read_session(call->arena, content, &session)) /* revoked since the call was entered */
        return FAULT_STALE;
    return session.is_service ? account_gate_refuse(attempt, "A service key cannot change its account.")
                              : FAULT_NONE;
}

bool account_gate_is_external(const struct attempt *attempt)
{
    const struct call *call = attempt->call;
    return call->accounts.is_on && call->caller.account.data && !call->caller_session.data;
}

enum fault account_gate_read_external(struct attempt *attempt, const struct draft *draft,
                                      struct account *account_r)
{
    *account_r = (struct account){.created = 0};
    return draft_exists(draft) ? account_gate_read(attempt, draft, account_r) : FAULT_NONE;
}

/* --- attempts --- */

/* Each (name, address) has a counter of its own. */
static struct bytes subject_of(struct attempt *attempt, struct bytes name)
{
    struct builder text = {0};
    builder_printf(&text, "%llx ", (unsigned long long)attempt->call->client);
    builder_add_bytes(&text, name);
    return builder_take(&text, attempt->call->arena);
}

static uint64_t account_gate_key_of(struct attempt *attempt, int kind, struct bytes name)
{
    return limiter_key(attempt->worker_context->segment, attempt->ns, kind, subject_of(attempt, name));
}

/* The key of the client's site. */
static uint64_t site_key(struct attempt *attempt, int kind)
{
    const char *site =
        arena_printf(attempt->call->arena, "%llx", (unsigned long long)address_site(attempt->call->client));
    return limiter_key(attempt->worker_context->segment, attempt->ns, kind, bytes_of(site));
}

/* Is the client one of many that a customer may have? */
static bool is_site(const struct attempt *attempt)
{
    return address_site(attempt->call->client) != attempt->call->client;
}

static struct limiter_rate rate_of(int64_t most, int64_t period_ms)
{
    return (struct limiter_rate){.count = most, .period_ms = period_ms, .burst = most};
}

static enum fault count_account_gate(struct attempt *attempt, uint64_t key, const char *limit, int64_t most,
                                     int64_t period_ms)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct limiter_rate rate = rate_of(most, period_ms);
    int64_t wait_ms = limiter_take(attempt->worker_context->segment, key, &rate, 1, clock_monotonic_ms());
    if (!wait_ms)
        return FAULT_NONE;
    attempt->reply->retry_after_s = (wait_ms + 999) / 1000;
    return reader_busy(&reader, limit, most);
}

enum fault account_gate_count(struct attempt *attempt, struct bytes name)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct account_kept *kept = account_gate_kept(attempt);
    if (kept->is_counted || !attempt->call->client || attempt->call->level == LEVEL_EVERYTHING)
        return FAULT_NONE;
    enum fault fault = count_account_gate(attempt, account_gate_key_of(attempt, KIND_CLIENT, BYTES("")),
                                          "limit_client_attempts", settings->limit_client_attempts, HOUR_MS);
    if (!fault && is_site(attempt))
        fault = count_account_gate(attempt, site_key(attempt, KIND_SITE), "limit_client_attempts",
                                   settings->limit_client_attempts * SITE_ADDRESSES, HOUR_MS);
    if (!fault && name.data)
        fault = count_account_gate(attempt, account_gate_key_of(attempt, KIND_NAME, name),
                                   "limit_name_attempts", settings->limit_name_attempts, HOUR_MS);
    kept->is_counted = !fault;
    kept->counted_name = name;
    return fault;
}

enum fault account_gate_count_account(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct account_kept *kept = account_gate_kept(attempt);
    struct bytes account = attempt->call->caller.account;
    if (kept->is_account_counted || !account.data)
        return FAULT_NONE;
    uint64_t key = limiter_key(attempt->worker_context->segment, attempt->ns, KIND_ACCOUNT, account);
    kept->is_account_counted = true;
    return count_account_gate(attempt, key, "limit_client_attempts", settings->limit_client_attempts,
                              HOUR_MS);
}

void account_gate_give_back(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct segment *segment = attempt->worker_context->segment;
    struct account_kept *kept = account_gate_kept(attempt);
    const struct limiter_rate of_client = rate_of(settings->limit_client_attempts, HOUR_MS);
    const struct limiter_rate of_site = rate_of(settings->limit_client_attempts * SITE_ADDRESSES, HOUR_MS);
    const struct limiter_rate of_name = rate_of(settings->limit_name_attempts, HOUR_MS);
    int64_t now_ms = clock_monotonic_ms();
    if (!kept->is_counted)
        return;
    kept->is_counted = false;
    limiter_give_back(segment, account_gate_key_of(attempt, KIND_CLIENT, BYTES("")), &of_client, now_ms);
    if (is_site(attempt))
        limiter_give_back(segment, site_key(attempt, KIND_SITE), &of_site, now_ms);
    if (kept->counted_name.data)
        limiter_give_back(segment, account_gate_key_of(attempt, KIND_NAME, kept->counted_name), &of_name,
                          now_ms);
}

void account_gate_note_failure(struct attempt *attempt)
{
    const struct limiter_rate rate = rate_of(1, MINUTE_MS);
    int64_t ignored = attempt->call->client
                          ? limiter_take(attempt->worker_context->segment, site_key(attempt, KIND_FAILED),
                                         &rate, 1, clock_monotonic_ms())
                          : 0;
    (void)ignored; /* it is noted already */
}

bool account_gate_has_failed(struct attempt *attempt)
{
    const struct limiter_rate rate = rate_of(1, MINUTE_MS);
    return attempt->call->client &&
           limiter_look(attempt->worker_context->segment, site_key(attempt, KIND_FAILED), &rate, 1,
                        clock_monotonic_ms());
}

enum fault account_gate_count_mail(struct attempt *attempt, const char *kind, struct bytes subject)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct segment *segment = attempt->worker_context->segment;
    struct account_kept *kept = account_gate_kept(attempt);
    enum fault fault = FAULT_NONE;
    if (kept->is_mail_counted || attempt->call->level == LEVEL_EVERYTHING)
        return FAULT_NONE;
    kept->is_mail_counted = true;
    if (attempt->call->client)
        fault = count_account_gate(attempt, account_gate_key_of(attempt, KIND_MAILER, BYTES("")),
                                   "limit_client_mails", settings->limit_client_mails, HOUR_MS);
    if (fault)
        return fault;
    const char *whose = arena_printf(attempt->call->arena, "%s %.*s", kind, (int)subject.size, subject.data);
    return FAULT_FIRST(
        count_account_gate(attempt, limiter_key(segment, attempt->ns, KIND_MAILED, bytes_of(whose)),
                           "limit_address_mails", settings->limit_address_mails, HOUR_MS),
        count_account_gate(attempt, limiter_key(segment, attempt->ns, KIND_MAILS, BYTES("")),
                           "limit_namespace_mails", settings->limit_namespace_mails, MINUTE_MS));
}

void account_gate_forget(struct attempt *attempt, struct bytes name)
{
    if (attempt->call->client)
        limiter_forget(attempt->worker_context->segment, account_gate_key_of(attempt, KIND_NAME, name),
                       clock_monotonic_ms());
}

/* --- documents --- */

struct document_name account_gate_name(struct bytes id)
{
    return (struct document_name){BYTES("Account"), id};
}

struct document_name account_gate_login_name(struct bytes name)
{
    return (struct document_name){BYTES("Login"), name};
}

struct bytes account_gate_id_of(struct attempt *attempt, struct bytes content)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2, .nodes = 8};
    struct json *root;
    struct json_problem problem;
    if (!content.data || json_read(attempt->call->arena, content, &limits, &root, &problem))
        return NO_BYTES;
    const struct json *id = json_member(root, "account");
    return id && id->kind == JSON_STRING && id->value.size ? id->value : NO_BYTES;
}

static struct bytes content_of(const struct draft *draft, struct bytes iclass)
{
    const struct item *item = draft_find_item(draft, iclass, BYTES(""));
    return item ? item->content : NO_BYTES;
}

struct bytes account_gate_find_id(struct attempt *attempt, const struct draft *login)
{
    return draft_exists(login) ? account_gate_id_of(attempt, content_of(login, BYTES("Acc"))) : NO_BYTES;
}

struct bytes account_gate_find_id_or_nobody(struct attempt *attempt, const struct draft *login,
                                            struct bytes text, bool *is_there_r)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct bytes id = account_gate_find_id(attempt, login);
    *is_there_r = id.data != NULL;
    if (*is_there_r)
        return id;
    crypto_sha256_hex(text, digest);
    return (struct bytes){arena_copy(attempt->call->arena, digest, ACCOUNT_ID), ACCOUNT_ID};
}

enum fault account_gate_read(struct attempt *attempt, const struct draft *draft, struct account *account_r)
{
    if (account_read(attempt->call->arena, content_of(draft, BYTES("Self")),
                     content_of(draft, BYTES("Roles")), account_r))
        return FAULT_NONE;
    return reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "Self", NULL);
}

void account_gate_write(struct attempt *attempt, struct draft *draft, const struct account *account)
{
    draft_create(draft);
    draft_set_item(draft, BYTES("Self"), BYTES(""), false, account_write_self(attempt->call->arena, account));
}

/* --- arguments --- */

enum fault account_gate_read_name(const struct reader *reader, const struct json *object,
                                  struct bytes *given_r, struct bytes *normal_r)
{
    enum fault fault = reader_text(reader, object, "name", given_r);
    *normal_r = NO_BYTES;
    if (fault || !given_r->data || account_normalise(reader->call->arena, *given_r, normal_r))
        return fault;
    return reader_wrong(reader, object, "name", "1 to 128 visible ASCII characters are expected.");
}

enum fault account_gate_read_address(const struct reader *reader, const struct json *object,
                                     struct bytes *address_r)
{
    enum fault fault = reader_text(reader, object, "address", address_r);
    if (fault || !address_r->data || account_is_address(*address_r))
        return fault;
    return reader_wrong(reader, object, "address", "A mail address is expected.");
}

enum fault account_gate_read_roles(const struct reader *reader, const struct json *object,
                                   const struct json **roles_r)
{
    *roles_r = json_member(object, "roles");
    if (!*roles_r || account_are_roles(*roles_r))
        return FAULT_NONE;
    return reader_wrong(reader, object, "roles",
                        "At most 32 words of 1 to 64 letters, digits, \".\", \"_\", \"-\" are expected.");
}

enum fault account_gate_take_name(struct attempt *attempt, struct bytes normal, struct bytes id)
{
    struct call *call = attempt->call;
    struct draft *login;
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(normal), &login);
    if (fault)
        return fault;
    struct bytes present = account_gate_find_id(attempt, login);
    if (bytes_equal(present, id))
        return FAULT_NONE;
    if (draft_exists(login))
        return reply_fault(call, attempt->reply, FAULT_AUNIQUE, "Another account has this name.", "name",
                           "Login", arena_copy(call->arena, normal.data, normal.size), NULL);
    draft_create(login);
    draft_set_item(login, BYTES("Acc"), BYTES(""), false,
                   bytes_of(arena_printf(call->arena, "{\"account\":\"%.*s\"}", (int)id.size, id.data)));
    return FAULT_NONE;
}
