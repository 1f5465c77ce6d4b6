/* mailing: the task `accountmail`, which sends a mail about an account (account_mail.h).
 *
 * Only the task finds out whether there is an account, whether its address is confirmed, and who gets the
 * mail; without a receiver it ends.  The secret of a link is drawn when the mail is sent, and its digest is
 * stored by the commit that ends the task: no secret is ever in the database.  A mail that is sent cannot be
 * taken back: if the process dies before the commit, the link does not work, and the task sends another. */
#include "operation/accounts/accounts.h"

#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/settings.h"
#include "edge/http.h"
#include "operation/access/access.h"
#include "operation/accounts/account_address.h"
#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"

/* --- sending --- */

/* Sends a mail about an account through the mail server of the settings, and waits for its reply.
 *
 * The connection is encrypted, with a checked certificate, unless the server is on the loopback and mail_tls
 * is off.  Blocks the process for at most mail_timeout_s. */

enum mail_verdict {
    MAIL_TAKEN,
    MAIL_LATER,  /* the server is busy, broken, unreachable, or set up wrongly */
    MAIL_REFUSED /* by a reply of 500 or more: the same mail would be refused again */
};

struct mail_outcome {
    enum mail_verdict verdict;
    const char *words; /* why it was not accepted, in the arena */
};

enum { PROBLEM_BYTES = 600, CONNECT_TIMEOUT_MS = 5000 };

static bool mail_send_is_loopback(const char *server)
{
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
           (strncmp(host, "localhost", 9) == 0 && (!host[9] || host[9] == ':'));
}

static struct http *get_client(void)
{
    static struct http *client;
    if (!client)
        client = http_open(&(struct http_options){.parallel = 1, .connect_timeout_ms = CONNECT_TIMEOUT_MS});
    return client;
}

static void mail_send_judge(struct arena *arena, const struct http_result *result,
                            struct mail_outcome *outcome_r)
{
    *outcome_r = (struct mail_outcome){.verdict = MAIL_TAKEN};
    if (result->status)
        return;
    log_often(LOG_LEVEL_WARNING, result->reason, "mail server: %s: %s", result->reason, result->problem);
    outcome_r->verdict = result->refusal ? MAIL_REFUSED : MAIL_LATER;
    outcome_r->words =
        result->refusal ? arena_printf(arena, "The mail server answers %d.", result->refusal)
                        : arena_printf(arena, "No mail was accepted by the mail server: %s.", result->reason);
}

/* `from` and `to` are addresses; `text` is the whole mail. */
static void mail_send(const struct settings *settings, struct arena *arena, const char *from, const char *to,
                      struct bytes text, struct mail_outcome *outcome_r)
{
    const char *const receivers[] = {to, NULL};
    char problem[PROBLEM_BYTES];
    struct secret password = {0};
    struct http_result result;
    if (*settings->mail_password_file &&
        !secret_read(&password, "mail_password_file", settings->mail_password_file, problem,
                     sizeof problem)) {
        log_error("%s", problem);
        *outcome_r = (struct mail_outcome){.verdict = MAIL_LATER, .words = "mail_password_file is unusable."};
        return;
    }
    const struct http_mail mail = {
        .server = settings->mail_server,
        .from = from,
        .to = receivers,
        .user = *settings->mail_user ? settings->mail_user : NULL,
        .password = password.text ? password.text : "",
        .needs_tls = settings->mail_tls == SETTING_ON || !mail_send_is_loopback(settings->mail_server),
        .ca_file = *settings->mail_ca_file ? settings->mail_ca_file : NULL,
        .text = text,
        .timeout_ms = settings->mail_timeout_s * 1000,
    };
    http_send_mail(get_client(), &mail);
    while (!http_receive(get_client(), mail.timeout_ms, &result))
        ; /* libcurl ends it at its timeout */
    secret_erase(&password);
    mail_send_judge(arena, &result, outcome_r);
}

/* --- mails --- */

enum { MAIL_QUEUE = 4, LIMIT_S = 60, RESET_MINUTES = 60, LOGIN_MINUTES = 15, CONFIRM_MINUTES = 2880 };

/* A mail of this attempt, kept for further tries. */
struct mailing {
    enum letter_kind kind;
    struct bytes account, name, to, proof;
    struct bytes token, key;
};

/* --- the receiver --- */

static enum fault mailing_fetch_account(struct attempt *attempt, struct bytes id, struct draft **draft_r,
                                        struct account *account_r)
{
    *account_r = (struct account){0};
    if (!id.size)
        return FAULT_NONE;
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_name(id), draft_r);
    return fault || !draft_exists(*draft_r) ? fault : account_gate_read(attempt, *draft_r, account_r);
}

/* A new password, or a sign-in: to a confirmed address alone. */
static enum fault find_way_in(struct attempt *attempt, const struct account_mail_wish *wish,
                              struct mailing *mailing)
{
    struct draft *login, *draft;
    struct account account;
    struct document_name name = account_gate_login_name(wish->name);
    enum fault fault =
        FAULT_FIRST(wish->name.data ? FAULT_NONE : account_address_name(attempt, wish->address, &name),
                    transaction_fetch(attempt->transaction, name, &login));
    if (fault)
        return fault;
    mailing->account = account_gate_find_id(attempt, login);
    fault = mailing_fetch_account(attempt, mailing->account, &draft, &account);
    if (fault || !account.is_confirmed || account.is_disabled || !account.name.size)
        return fault;
    mailing->name = account.name;
    mailing->to = account.address;
    mailing->proof = account_ticket_proof(attempt, wish->kind, draft);
    return FAULT_NONE;
}

/* An address that is still the account's, and not confirmed. */
static enum fault find_confirm(struct attempt *attempt, const struct account_mail_wish *wish,
                               struct mailing *mailing)
{
    struct draft *draft;
    struct account account;
    enum fault fault = mailing_fetch_account(attempt, wish->account, &draft, &account);
    if (fault || account.is_confirmed || !bytes_equal(account.address, wish->address))
        return fault;
    mailing->account = wish->account;
    mailing->name = bytes_equal(account.name, account.address)
                        ? account.name
                        : letter_tame(attempt->call->arena, account.name);
    mailing->to = account.address;
    return FAULT_NONE;
}

static enum fault find_register(struct attempt *attempt, const struct account_mail_wish *wish,
                                struct mailing *mailing)
{
    struct draft *login;
    struct bytes normal;
    if (!account_normalise(attempt->call->arena, wish->address, &normal))
        return FAULT_NONE;
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(normal), &login);
    if (fault)
        return fault;
    mailing->to = wish->address;
    if (draft_exists(login))
        mailing->kind = LETTER_EXISTS;
    return FAULT_NONE;
}

static enum fault find_changed(struct attempt *attempt, const struct account_mail_wish *wish,
                               struct mailing *mailing)
{
    struct draft *draft;
    struct account account;
    enum fault fault = mailing_fetch_account(attempt, wish->account, &draft, &account);
    mailing->name = account.name;
    mailing->to = wish->address;
    return fault;
}

static enum fault find_receiver(struct attempt *attempt, const struct account_mail_wish *wish,
                                struct mailing *mailing)
{
    *mailing = (struct mailing){.kind = wish->kind};
    switch (wish->kind) {
    case LETTER_CONFIRM:
        return find_confirm(attempt, wish, mailing);
    case LETTER_RESET:
    case LETTER_LOGIN:
        return wish->name.data || wish->address.data ? find_way_in(attempt, wish, mailing) : FAULT_NONE;
    case LETTER_REGISTER:
        return find_register(attempt, wish, mailing);
    case LETTER_CHANGED:
        return find_changed(attempt, wish, mailing);
    case LETTER_EXISTS:
    case LETTER_KINDS:
        break;
    }
    return FAULT_NONE;
}

/* --- sending --- */

static enum fault mailing_refuse(struct attempt *attempt, const struct mail_outcome *outcome)
{
    attempt->is_final = outcome->verdict == MAIL_REFUSED;
    return reply_fault(attempt->call, attempt->reply, FAULT_XMAIL, outcome->words, NULL);
}

static enum fault mailing_send(struct attempt *attempt, const struct ns_conf *conf, struct mailing *mailing)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct arena *arena = attempt->call->arena;
    struct mail_outcome outcome;
    struct builder text = {0};
    const struct letter_templates *templates = conf->accounts.mail;
    struct bytes from = templates && templates->from.data ? templates->from : bytes_of(settings->mail_from);
    if (!*settings->mail_from || !letter_is_address(from))
        return reply_fault(attempt->call, attempt->reply, FAULT_OMAIL, NULL, NULL);
    mailing->token = account_session_new_secret(attempt, &mailing->key);
    struct bytes id;
    (void)account_session_new_secret(attempt, &id);
    const struct letter letter = {
        .kind = mailing->kind,
        .templates = templates,
        .from = from,
        .to = mailing->to,
        .site = conf->label.size ? conf->label : attempt->call->ns,
        .name = mailing->name.size ? mailing->name : mailing->to,
        .token = mailing->token,
        .id = {id.data, id.size / 2},
        .now_ms = clock_wall_ms(),
    };
    letter_write(&text, &letter);
    mail_send(settings, arena, arena_copy(arena, from.data, from.size),
              arena_copy(arena, mailing->to.data, mailing->to.size), builder_bytes(&text), &outcome);
    explicit_bzero(text.data, text.capacity);
    builder_free(&text);
    return outcome.verdict == MAIL_TAKEN ? FAULT_NONE : mailing_refuse(attempt, &outcome);
}

/* Sends it, unless an earlier try of this attempt has done so. */
static enum fault send_once(struct attempt *attempt, const struct ns_conf *conf, struct mailing *mailing)
{
    const struct mailing *sent = attempt->kept;
    if (sent && sent->kind == mailing->kind && bytes_equal(sent->to, mailing->to)) {
        mailing->token = sent->token;
        mailing->key = sent->key;
        return FAULT_NONE;
    }
    enum fault fault = mailing_send(attempt, conf, mailing);
    if (fault)
        return fault;
    struct mailing *kept = ARENA_NEW(attempt->call->arena, struct mailing);
    *kept = *mailing;
    kept->to = bytes_of(arena_copy(attempt->call->arena, mailing->to.data, mailing->to.size));
    attempt->kept = kept;
    crash_at(CRASH_MAIL_SENT);
    return FAULT_NONE;
}

static enum fault write_ticket(struct attempt *attempt, const struct mailing *mailing)
{
    if (mailing->kind == LETTER_EXISTS || mailing->kind == LETTER_CHANGED)
        return FAULT_NONE;
    const struct account_ticket ticket = {
        .kind = mailing->kind, .account = mailing->account, .address = mailing->to, .proof = mailing->proof};
    int64_t minutes = mailing->kind == LETTER_RESET   ? RESET_MINUTES
                      : mailing->kind == LETTER_LOGIN ? LOGIN_MINUTES
                                                      : CONFIRM_MINUTES;
    return account_ticket_create(attempt, mailing->key, &ticket, minutes);
}

/* --- the task --- */

static enum fault mailing_read_wish(struct attempt *attempt, struct account_mail_wish *wish)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    struct bytes word;
    enum fault fault = FAULT_FIRST(reader_members(&reader, param, "kind name address account"),
                                   reader_text(&reader, param, "kind", &word));
    if (!fault && !letter_find_kind(word, &wish->kind))
        fault = reader_wrong(&reader, param, "kind", "A kind of mail is expected.");
    if (!fault)
        fault = FAULT_FIRST(reader_text(&reader, param, "name", &wish->name),
                            reader_text(&reader, param, "address", &wish->address));
    return fault ? fault : reader_text(&reader, param, "account", &wish->account);
}

static enum fault accountmail_work(struct attempt *attempt)
{
    struct account_mail_wish wish = {0};
    struct mailing mailing = {0};
    struct ns_conf conf;
    enum fault fault = FAULT_FIRST(mailing_read_wish(attempt, &wish),
                                   access_configuration(attempt->worker_context, attempt->call, &conf));
    bool is_sent =
        !fault && conf.accounts.is_on && (wish.kind != LETTER_LOGIN || conf.accounts.has_mail_login);
    if (is_sent)
        fault = find_receiver(attempt, &wish, &mailing);
    if (fault || !is_sent || !letter_is_address(mailing.to))
        return fault;
    return FAULT_FIRST(send_once(attempt, &conf, &mailing), write_ticket(attempt, &mailing));
}

const struct operation accounts_accountmail = {
    .name = "accountmail",
    .right = RIGHT_ADMIN,
    .work = accountmail_work,
    .task = {.queue = MAIL_QUEUE, .limit_s = LIMIT_S, .is_internal = true}};
