/* passkey: the operation by which accounts make, use, list and drop passkeys (model/account/passkey.h).  A
 * page asks for options (begin), passes them to its browser, and sends what the browser gives (create,
 * login).  param, one of:
 * {"begin":"login"} or {"begin":"register","name"} → {"options"}, for everybody;
 * {"begin":"proof"}, {"begin":"create","password" or "passkey"} → {"options"}, for an account;
 * {"create":credential,"name"} → {"passkey"}, for an account; {"login":credential,"device","cookie"} → as
 * `login`; {"list":true} → {"passkeys":[…],"password"}; {"drop":passkey,"password" or "passkey"} →
 * {"dropped":1}. */
#include "operation/accounts/accounts.h"

#include "base/coding/base64.h"
#include "operation/accounts/account_end.h"
#include "operation/accounts/account_proof.h"
#include "operation/accounts/account_session.h"
#include "operation/passkeys/passkey_challenge.h"
#include "operation/passkeys/passkey_credential.h"
#include "operation/passkeys/passkey_list.h"

/* --- options --- */

/* What a page passes to its browser: the JSON forms of PublicKeyCredentialCreationOptions
 * and PublicKeyCredentialRequestOptions, in the answer's member `options`. */

#define TIMEOUT_MS "300000"

static void add_string(struct builder *body, const char *before, struct bytes text)
{
    builder_add_bytes(body, bytes_of(before));
    json_add_string(body, text);
}

/* The credentials of the account: [{"type","id"},…]. */
static void add_credentials(struct attempt *attempt, const char *before, const struct draft *draft)
{
    struct builder *body = attempt->reply->body;
    struct passkey passkey;
    const char *comma = "";
    builder_add_bytes(body, bytes_of(before));
    for (const struct item *item = draft ? passkey_credential_next(draft, BYTES("")) : NULL; item;
         item = passkey_credential_next(draft, item->key)) {
        if (!passkey_read(attempt->call->arena, item->content, &passkey))
            continue;
        builder_printf(body, "%s{\"type\":\"public-key\",\"id\":\"", comma);
        base64_add(body, passkey.credential.id);
        builder_add_text(body, "\"}");
        comma = ",";
    }
    builder_add_text(body, "]");
}

/* For a new passkey of the account, or (`draft` NULL) of the one that a registration makes; an authenticator
 * that has one already makes no second.  The user's handle is the account's id, whose text is base64url. */
static enum fault passkey_options_write_new(struct attempt *attempt, enum passkey_purpose purpose,
                                            struct bytes id, struct bytes name, const struct draft *draft)
{
    const struct relying_party *party = attempt->call->accounts.passkeys;
    struct builder *body = attempt->reply->body;
    struct bytes challenge;
    enum fault fault = passkey_challenge_make(attempt, purpose, id, &challenge);
    if (fault)
        return fault;
    add_string(body, "{\"options\":{\"rp\":{\"id\":", bytes_of(party->id));
    add_string(body, ",\"name\":", party->name);
    add_string(body, "},\"user\":{\"id\":", id);
    add_string(body, ",\"name\":", name.size ? name : party->name);
    add_string(body, ",\"displayName\":", name.size ? name : party->name);
    add_string(body, "},\"challenge\":", challenge);
    builder_printf(body,
                   ",\"pubKeyCredParams\":[{\"type\":\"public-key\",\"alg\":%d},"
                   "{\"type\":\"public-key\",\"alg\":%d},{\"type\":\"public-key\",\"alg\":%d}]"
                   ",\"timeout\":" TIMEOUT_MS,
                   WEBAUTHN_ES256, WEBAUTHN_EDDSA, WEBAUTHN_RS256);
    add_credentials(attempt, ",\"excludeCredentials\":[", draft);
    builder_add_text(body,
                     ",\"authenticatorSelection\":{\"residentKey\":\"required\",\"requireResidentKey\":true,"
                     "\"userVerification\":\"required\"},\"attestation\":\"none\"}}");
    return FAULT_NONE;
}

/* For a signature by a passkey of the account; `draft` NULL, for a login: of any, whose list is disclosed to
 * nobody. */
static enum fault passkey_options_write(struct attempt *attempt, enum passkey_purpose purpose,
                                        struct bytes id, const struct draft *draft)
{
    struct builder *body = attempt->reply->body;
    struct bytes challenge;
    enum fault fault = passkey_challenge_make(attempt, purpose, id, &challenge);
    if (fault)
        return fault;
    add_string(body, "{\"options\":{\"challenge\":", challenge);
    add_string(body, ",\"rpId\":", bytes_of(attempt->call->accounts.passkeys->id));
    add_credentials(attempt, ",\"timeout\":" TIMEOUT_MS ",\"allowCredentials\":[", draft);
    builder_add_text(body, ",\"userVerification\":\"required\"}}");
    return FAULT_NONE;
}

/* --- the operations --- */

static enum fault passkey_refuse(struct attempt *attempt, const char *detail)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, "passkey", NULL);
}

static enum fault fetch_caller(struct attempt *attempt, struct draft **draft_r, struct account *account_r)
{
    return FAULT_FIRST(account_gate_fetch_caller(attempt, draft_r),
                       account_gate_read(attempt, *draft_r, account_r));
}

/* --- begin --- */

static enum fault begin_login(struct attempt *attempt, const struct reader *reader)
{
    return FAULT_FIRST(reader_members(reader, attempt->call->param, "begin"),
                       passkey_options_write(attempt, PASSKEY_FOR_LOGIN, NO_BYTES, NULL));
}

/* Whether the name is free is disclosed by `register` alone. */
static enum fault begin_register(struct attempt *attempt, const struct reader *reader)
{
    const struct ns_accounts *accounts = &attempt->call->accounts;
    struct bytes given, normal;
    enum fault fault = FAULT_FIRST(reader_members(reader, attempt->call->param, "begin name"),
                                   account_gate_read_name(reader, attempt->call->param, &given, &normal));
    bool may_be_named =
        given.data || accounts->needs_confirmation; /* by a ticket, whose name is not known here */
    bool may_be = (may_be_named && accounts->registration != REGISTRATION_CLOSED) ||
                  (!given.data && accounts->has_anonymous);
    if (!fault && !may_be)
        fault = passkey_refuse(attempt, "Registration is closed.");
    return fault ? fault
                 : passkey_options_write_new(attempt, PASSKEY_FOR_REGISTER, account_session_new_id(attempt),
                                             given, NULL);
}

static enum fault begin_proof(struct attempt *attempt, const struct reader *reader)
{
    struct account account;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(reader_members(reader, attempt->call->param, "begin"),
                                   fetch_caller(attempt, &draft, &account));
    if (!fault && !passkey_credential_count(draft))
        fault = passkey_refuse(attempt, "The account has no passkey.");
    return fault ? fault
                 : passkey_options_write(attempt, PASSKEY_FOR_PROOF, attempt->call->caller.account, draft);
}

/* The challenge is the proof of what was proved here. */
static enum fault begin_create(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    struct account account;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(reader_members(reader, param, "begin password passkey"),
                                   fetch_caller(attempt, &draft, &account),
                                   account_proof_check(attempt, reader, param, draft, &account));
    return fault ? fault
                 : passkey_options_write_new(attempt, PASSKEY_FOR_ADDING, attempt->call->caller.account,
                                             account.name.size ? account.name : account.address, draft);
}

static enum fault passkey_begin(struct attempt *attempt, const struct reader *reader)
{
    static const struct {
        struct bytes word;
        enum fault (*begin)(struct attempt *attempt, const struct reader *reader);
    } ways[] = {{BYTES("login"), begin_login},
                {BYTES("register"), begin_register},
                {BYTES("proof"), begin_proof},
                {BYTES("create"), begin_create}};
    struct bytes word;
    enum fault fault = reader_text(reader, attempt->call->param, "begin", &word);
    if (fault)
        return fault;
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        if (bytes_equal(word, ways[i].word))
            return ways[i].begin(attempt, reader);
    return reader_wrong(reader, attempt->call->param, "begin",
                        "One of login, register, proof, create is expected.");
}

/* --- create --- */

static enum fault passkey_create(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    struct passkey_credential credential;
    struct webauthn_credential verified;
    struct passkey_challenge challenge;
    struct draft *draft;
    struct bytes name;
    bool is_given;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "create name"),
                    passkey_credential_read(reader, param, "create", PASSKEY_CREATE, &credential, &is_given),
                    passkey_credential_read_name(reader, param, "name", &name),
                    account_gate_fetch_caller(attempt, &draft),
                    passkey_credential_verify(attempt, PASSKEY_FOR_ADDING, attempt->call->caller.account,
                                              &credential, &verified, &challenge),
                    passkey_credential_add(attempt, draft, &verified, name, &challenge));
    if (fault)
        return fault;
    builder_add_text(attempt->reply->body, "{\"passkey\":");
    passkey_list_write_name(attempt->reply->body, passkey_credential_key(attempt, verified.id));
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

/* --- login --- */

/* An id that no account has, and that is read like one: the digest of the credential's. */
static struct bytes account_of(struct attempt *attempt, const struct passkey_credential *credential)
{
    return credential->account.size
               ? credential->account
               : (struct bytes){passkey_credential_key(attempt, credential->id).data, ACCOUNT_ID};
}

static enum fault login(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    struct passkey_credential credential;
    struct session_wish wish;
    struct account account = {0};
    struct draft *draft;
    bool is_given;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "login device cookie"),
                    passkey_credential_read(reader, param, "login", PASSKEY_GET, &credential, &is_given),
                    account_session_read(reader, param, &wish), account_gate_count(attempt, NO_BYTES));
    if (fault)
        return fault;
    struct bytes id = account_of(attempt, &credential);
    fault = FAULT_FIRST(transaction_fetch(attempt->transaction, account_gate_name(id), &draft),
                        passkey_credential_use(attempt, PASSKEY_FOR_LOGIN, NO_BYTES, draft, &credential),
                        account_gate_read(attempt, draft, &account));
    if (!fault && account.is_disabled)
        fault = passkey_credential_refuse(attempt);
    if (fault)
        return fault;
    account_session_begin(attempt, draft, id, &wish);
    return account_end_plan(attempt, draft, id);
}

/* --- list, drop --- */

static enum fault list_passkey(struct attempt *attempt, const struct reader *reader)
{
    struct builder *body = attempt->reply->body;
    struct draft *draft;
    bool is_wanted;
    enum fault fault = FAULT_FIRST(reader_members(reader, attempt->call->param, "list"),
                                   reader_boolean(reader, attempt->call->param, "list", &is_wanted),
                                   account_gate_fetch_caller(attempt, &draft));
    if (fault)
        return fault;
    builder_add_text(body, "{\"passkeys\":");
    passkey_list_write(attempt, draft);
    builder_printf(body, ",\"password\":%s}", account_proof_has_password(draft) ? "true" : "false");
    return FAULT_NONE;
}

static enum fault passkey_drop(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    struct account account;
    struct draft *draft;
    struct bytes listed;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "drop password passkey"),
                    reader_text(reader, param, "drop", &listed), fetch_caller(attempt, &draft, &account),
                    account_proof_check(attempt, reader, param, draft, &account));
    if (fault)
        return fault;
    const struct item *item = passkey_list_find(draft, listed);
    if (!item)
        return reader_wrong(reader, param, "drop", "A passkey, as it is listed, is expected.");
    if (!account_proof_has_password(draft) && passkey_credential_count(draft) == 1)
        return passkey_refuse(attempt,
                              "It is the last way to sign in: set a password, or add a passkey first.");
    draft_remove_item(draft, BYTES("Key"), item->key);
    builder_add_text(attempt->reply->body, "{\"dropped\":1}");
    return FAULT_NONE;
}

/* --- the operation --- */

static const struct {
    const char *member;
    enum fault (*act)(struct attempt *attempt, const struct reader *reader);
} acts[] = {{"begin", passkey_begin},
            {"create", passkey_create},
            {"login", login},
            {"list", list_passkey},
            {"drop", passkey_drop}};

static enum fault passkey_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    enum fault fault = FAULT_FIRST(account_gate_check(attempt), account_proof_check_passkeys(attempt));
    if (fault)
        return fault;
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        const struct json *wish = json_member(param, acts[i].member);
        if (wish && wish->kind != JSON_NULL)
            return acts[i].act(attempt, &reader);
    }
    return reader_wrong_value(&reader, NULL, "param", "One of begin, create, login, list, drop is expected.");
}

/* A proof by passkey is noted in the account. */
static bool passkey_is_look(const struct call *call)
{
    const struct json *param = call->param;
    return json_member(param, "list") || (json_member(param, "begin") && !json_member(param, "passkey"));
}

const struct operation accounts_passkey = {.name = "passkey",
                                           .right = RIGHT_PUBLIC,
                                           .is_secret = true,
                                           .work = passkey_work,
                                           .is_look = passkey_is_look};
