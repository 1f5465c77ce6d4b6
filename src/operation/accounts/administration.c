/* administration: the operation `accounts`, by which the administrator finds, makes, changes and deletes
 * accounts, invitations and service keys of a namespace. param, one member:
 * {"find":name}, {"find":{"issuer","subject"}} or {"get":account} → account:
 * {"account","name",…,"sessions":[…],"passkeys":[…]};
 * {"list":{"name","limit","cursor"}} → {"accounts":[account…],"cursor"};
 * {"create":{"name","password","address","roles"}} → account; {"set":{"account",…,"roles","disabled"}} →
 * account, or of a provider {"set":{"issuer","subject","roles","disabled"}}; {"invite":{"roles","days"}} →
 * {"invitation","expires"}; {"key":{"account","label","roles"}} →
 * {"account","key"}; {"revoke":{"account","session" or "passkey"}} → {"ended"}; {"delete":account} →
 * {"deleted"}. */
#include "operation/accounts/accounts.h"

#include "base/clock.h"
#include "model/account/issuer.h"
#include "model/document/stamp.h"
#include "operation/accounts/account_change.h"
#include "operation/accounts/account_gate.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"
#include "operation/accounts/account_walk.h"
#include "operation/passkeys/passkey_list.h"
#include "store/collections/store_list.h"

/* A page of the accounts of a namespace, for the administrator. */

enum { LIMIT_MOST = 100 };

static enum fault account_list_read(struct attempt *attempt, const struct reader *reader,
                                    const struct json *wish, struct list_query *query)
{
    struct bytes prefix, cursor;
    int64_t limit = LIMIT_MOST;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, wish, "name limit cursor"),
                    reader_text(reader, wish, "name", &prefix), reader_text(reader, wish, "cursor", &cursor));
    if (!fault && cursor.size)
        fault = reader_check_length(reader, wish, "cursor", cursor);
    if (!fault)
        fault = reader_integer(reader, wish, "limit", 1, LIMIT_MOST, LIMIT_MOST, &limit);
    if (fault)
        return fault;
    *query = (struct list_query){.class = prefix.data ? BYTES("Login") : BYTES("Account"),
                                 .prefix = BYTES(""),
                                 .cursor = cursor.data ? cursor : BYTES(""),
                                 .minute = clock_present_minute(),
                                 .limit = (int32_t)limit};
    if (prefix.size && !account_normalise(attempt->call->arena, prefix, &query->prefix))
        return reader_wrong(reader, wish, "name", "The beginning of a name is expected.");
    return FAULT_NONE;
}

/* A page under way: the rows that are visited, and the accounts that they stand for. */
struct account_list {
    struct account_page rows, accounts;
};

/* Other documents of the class Login, those of addresses, have a blank in their id. */
static bool is_login(const struct document_name *name)
{
    return !memchr(name->id.data, ' ', name->id.size);
}

/* Keeps those rows Login/… that name an account. */
static enum fault follow_logins(struct attempt *attempt, struct account_list *list)
{
    const struct document **logins;
    size_t count = 0;
    list->accounts.names = ARENA_ROOM(attempt->call->arena, struct document_name, list->rows.count);
    enum fault fault = account_walk_load(attempt, &list->rows, &logins);
    for (size_t i = 0; !fault && i < list->rows.count && logins[i]; i++) {
        struct bytes id = account_gate_id_of(attempt, account_find(logins[i], BYTES("Acc"), BYTES("")));
        if (!id.data || !is_login(&list->rows.names[i]))
            continue;
        list->rows.names[count] = list->rows.names[i];
        list->accounts.names[count++] = account_gate_name(id);
    }
    list->rows.count = list->accounts.count = count;
    return fault;
}

/* An account that cannot be read is listed by its id. */
static void write_one(struct attempt *attempt, struct bytes id, const struct document *document)
{
    struct account account;
    if (!account_read(attempt->call->arena, account_find(document, BYTES("Self"), BYTES("")),
                      account_find(document, BYTES("Roles"), BYTES("")), &account))
        account = (struct account){0};
    account_change_write(attempt, id, &account);
}

/* Up to the first account for which there was no memory. */
static enum fault account_list_write(struct attempt *attempt, const struct account_list *list)
{
    struct builder *body = attempt->reply->body;
    struct bytes more = list->rows.more;
    const struct document **documents;
    size_t count = 0;
    enum fault fault = account_walk_load(attempt, &list->accounts, &documents);
    if (fault)
        return fault;
    builder_add_text(body, "{\"accounts\":[");
    for (size_t i = 0; i < list->accounts.count; i++) {
        if (!documents[i]) {
            more = list->rows.names[i - (i > 0)].id;
            break;
        }
        if (!document_exists(documents[i]))
            continue;
        if (count++)
            builder_add_text(body, ",");
        write_one(attempt, list->accounts.names[i].id, documents[i]);
    }
    builder_add_text(body, "]");
    if (more.data)
        json_add_text(body, ",\"cursor\":", more);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

/* Answers the wish {"name","limit","cursor"} with {"accounts":[…],"cursor"}: at most `limit` accounts, 1 to
 * 100, as account_change_write writes them.  With `name`, those whose name begins so, in the order of names;
 * without, all, in the order of ids.  A page may hold fewer, even none: only an absent cursor is the end.
 * FAULT_AARG: a member is malformed. */
MUST_USE static enum fault account_list_answer(struct attempt *attempt, const struct reader *reader,
                                               const struct json *wish)
{
    struct account_list list;
    struct list_query query;
    enum fault fault = FAULT_FIRST(account_list_read(attempt, reader, wish, &query),
                                   account_walk_query(attempt, &query, &list.rows));
    if (fault)
        return fault;
    list.accounts = list.rows;
    if (bytes_equal(query.class, BYTES("Login")))
        fault = follow_logins(attempt, &list);
    return fault ? fault : account_list_write(attempt, &list);
}

enum { DAY_MINUTES = 1440, INVITATION_DAYS = 7, INVITATION_DAYS_MOST = 366 };

/* An act: its wish is the value of its member. */
typedef enum fault act(struct attempt *attempt, const struct reader *reader, const struct json *wish);

/* --- what is found --- */

static enum fault refuse_absence(struct attempt *attempt, struct document_name name)
{
    struct arena *arena = attempt->call->arena;
    return reply_fault(attempt->call, attempt->reply, FAULT_NDOCUMENT, NULL,
                       arena_copy(arena, name.class.data, name.class.size),
                       arena_copy(arena, name.id.data, name.id.size), NULL);
}

static enum fault administration_fetch(struct attempt *attempt, struct bytes id, struct draft **draft_r,
                                       struct account *account_r)
{
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_name(id), draft_r);
    if (fault)
        return fault;
    if (!draft_exists(*draft_r))
        return refuse_absence(attempt, account_gate_name(id));
    return account_gate_read(attempt, *draft_r, account_r);
}

/* The id in a member of `object`. */
static enum fault administration_read_id(const struct reader *reader, const struct json *object,
                                         const char *member, struct bytes *id_r)
{
    return FAULT_FIRST(reader_text(reader, object, member, id_r),
                       reader_check_length(reader, object, member, *id_r));
}

/* The account that the members issuer and subject name. */
static enum fault read_subject(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                               struct bytes *id_r, struct account *account_r)
{
    struct bytes issuer, subject;
    enum fault fault = FAULT_FIRST(reader_text(reader, wish, "issuer", &issuer),
                                   reader_text(reader, wish, "subject", &subject));
    if (fault)
        return fault;
    if (!issuer_find(attempt->call->accounts.issuers, issuer))
        return reader_wrong(reader, wish, "issuer", "An issuer of the namespace is expected.");
    if (!subject.size || subject.size > ISSUER_SUBJECT_MOST)
        return reader_wrong(reader, wish, "subject", "1 to 255 bytes are expected.");
    *account_r = (struct account){.created = stamp_now(), .issuer = issuer, .subject = subject};
    *id_r = issuer_account(attempt->call->arena, issuer, subject);
    return FAULT_NONE;
}

/* An account of a provider, by its id or by its names; it need not have a document. */
static enum fault read_external(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                                struct bytes *id_r, struct draft **draft_r, struct account *account_r)
{
    enum fault fault = FAULT_NONE;
    *account_r = (struct account){.created = stamp_now()};
    if (json_member(wish, "account"))
        fault = administration_read_id(reader, wish, "account", id_r);
    else
        fault = read_subject(attempt, reader, wish, id_r, account_r);
    if (!fault)
        fault = transaction_fetch(attempt->transaction, account_gate_name(*id_r), draft_r);
    if (fault || !draft_exists(*draft_r))
        return fault;
    struct account found;
    fault = account_gate_read(attempt, *draft_r, &found);
    if (!found.issuer.size) {
        found.issuer = account_r->issuer;
        found.subject = account_r->subject;
    }
    *account_r = found;
    return fault;
}

/* The account that the member `account` names. */
static enum fault read_account(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                               struct bytes *id_r, struct draft **draft_r, struct account *account_r)
{
    return FAULT_FIRST(administration_read_id(reader, wish, "account", id_r),
                       administration_fetch(attempt, *id_r, draft_r, account_r));
}

static void administration_answer(struct attempt *attempt, struct bytes id, const struct draft *draft,
                                  const struct account *account)
{
    account_change_write_open(attempt, id, account);
    builder_add_text(attempt->reply->body, ",\"sessions\":");
    account_session_write(attempt, draft);
    if (passkey_credential_count(draft)) {
        builder_add_text(attempt->reply->body, ",\"passkeys\":");
        passkey_list_write(attempt, draft);
    }
    builder_add_text(attempt->reply->body, "}");
}

static enum fault administration_get(struct attempt *attempt, const struct reader *reader,
                                     const struct json *wish UNUSED)
{
    struct account account;
    struct draft *draft;
    struct bytes id;
    enum fault fault = FAULT_FIRST(administration_read_id(reader, attempt->call->param, "get", &id),
                                   administration_fetch(attempt, id, &draft, &account));
    if (!fault)
        administration_answer(attempt, id, draft, &account);
    return fault;
}

/* By the names of a provider. */
static enum fault find_external(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    struct account account;
    struct draft *draft;
    struct bytes id;
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "issuer subject"),
                                   read_external(attempt, reader, wish, &id, &draft, &account));
    if (!fault && !draft_exists(draft))
        account.created = 0;
    if (!fault)
        administration_answer(attempt, id, draft, &account);
    return fault;
}

static enum fault administration_find(struct attempt *attempt, const struct reader *reader,
                                      const struct json *wish)
{
    struct account account;
    struct draft *login, *draft;
    struct bytes name;
    if (wish->kind == JSON_OBJECT && !wish->is_shallow)
        return find_external(attempt, reader, wish);
    if (wish->kind != JSON_STRING || !account_normalise(attempt->call->arena, wish->value, &name))
        return reader_wrong_value(reader, wish, "find", "A name, or an issuer and a subject, is expected.");
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(name), &login);
    if (fault)
        return fault;
    struct bytes id = account_gate_find_id(attempt, login);
    if (!id.data)
        return refuse_absence(attempt, account_gate_login_name(name));
    fault = administration_fetch(attempt, id, &draft, &account);
    if (!fault)
        administration_answer(attempt, id, draft, &account);
    return fault;
}

/* --- what is changed --- */

static enum fault administration_create(struct attempt *attempt, const struct reader *reader,
                                        const struct json *wish)
{
    struct account account = {.created = stamp_now()};
    struct account_change change;
    struct draft *draft;
    struct bytes id = account_session_new_id(attempt);
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "name address confirmed password roles"),
                                   account_change_read(reader, wish, &change));
    if (!fault && (!change.name.data || !change.password.data))
        fault = reader_wrong(reader, wish, change.name.data ? "password" : "name",
                             "A name and a password are expected.");
    if (!fault)
        fault = transaction_fetch(attempt->transaction, account_gate_name(id), &draft);
    if (!fault)
        draft_create(draft);
    if (!fault)
        fault = account_change_apply(attempt, draft, id, &account, &change);
    if (!fault)
        account_change_write(attempt, id, &account);
    return fault;
}

/* Its roles are added to those of its tokens. */
static enum fault set_external(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    struct account account;
    struct account_change change;
    struct draft *draft;
    struct bytes id;
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "account issuer subject roles disabled"),
                                   account_change_read(reader, wish, &change),
                                   read_external(attempt, reader, wish, &id, &draft, &account),
                                   account_change_apply(attempt, draft, id, &account, &change));
    if (!fault)
        administration_answer(attempt, id, draft, &account);
    return fault;
}

/* Does the wish name an account of a provider? */
static bool is_external(const struct json *wish)
{
    const struct json *id = json_member(wish, "account");
    return json_member(wish, "issuer") || (id && id->kind == JSON_STRING && issuer_is_account(id->value));
}

/* A new password ends all sessions. */
static enum fault administration_set(struct attempt *attempt, const struct reader *reader,
                                     const struct json *wish)
{
    struct account account;
    struct account_change change;
    struct draft *draft;
    struct bytes id;
    if (is_external(wish))
        return set_external(attempt, reader, wish);
    enum fault fault =
        reader_members(reader, wish, "account name address confirmed password roles disabled hidden");
    if (!fault)
        fault = FAULT_FIRST(account_change_read(reader, wish, &change),
                            read_account(attempt, reader, wish, &id, &draft, &account));
    bool has_name = !fault && (account.name.size || change.name.data);
    bool has_password =
        !fault && (change.password.data || draft_find_item(draft, BYTES("Secret"), BYTES("")));
    if (!fault && has_name != has_password)
        fault = reader_wrong(reader, wish, has_name ? "password" : "name",
                             "An account gets its name and its password together.");
    if (!fault)
        fault = account_change_apply(attempt, draft, id, &account, &change);
    if (fault)
        return fault;
    if (change.password.data)
        account_session_end(attempt, draft, BYTES(""), NO_BYTES);
    administration_answer(attempt, id, draft, &account);
    return FAULT_NONE;
}

static enum fault invite(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    struct arena *arena = attempt->call->arena;
    const struct json *roles;
    struct draft *ticket;
    struct bytes key, secret = account_session_new_secret(attempt, &key);
    int64_t days;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, wish, "roles days"), account_gate_read_roles(reader, wish, &roles),
                    reader_integer(reader, wish, "days", 1, INVITATION_DAYS_MOST, INVITATION_DAYS, &days));
    if (!fault)
        fault = transaction_fetch(attempt->transaction, account_ticket_name(key), &ticket);
    if (fault)
        return fault;
    int64_t expires = account_stamp_of(clock_present_minute() + days * DAY_MINUTES);
    struct bytes text = account_write_roles(arena, roles);
    fault = account_ticket_plan_end(attempt, key, expires);
    if (fault)
        return fault;
    draft_create(ticket);
    draft_set_item(ticket, BYTES("Invite"), BYTES(""), false,
                   bytes_of(arena_printf(arena, "{\"expires\":%lld,%.*s", (long long)expires,
                                         (int)text.size - 1, text.data + 1)));
    builder_printf(attempt->reply->body, "{\"invitation\":\"%.*s\",\"expires\":%lld}", (int)secret.size,
                   secret.data, (long long)expires);
    return FAULT_NONE;
}

/* A new account, or one that has keys already: an account that logs in gets none. */
static enum fault fetch_for_key(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                                struct bytes *id_r, struct draft **draft_r)
{
    struct account account = {.created = stamp_now()};
    if (json_member(wish, "account")) {
        enum fault fault = read_account(attempt, reader, wish, id_r, draft_r, &account);
        if (!fault && !account_session_has_key(attempt, *draft_r))
            fault = reader_wrong(reader, wish, "account", "An account with a service key is expected.");
        if (!fault && account_session_count(*draft_r) >= ACCOUNT_KEYS_MOST)
            fault = reader_wrong(reader, wish, "account", "It has 100 keys: revoke some.");
        return fault;
    }
    *id_r = account_session_new_id(attempt);
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_name(*id_r), draft_r);
    if (!fault)
        account_gate_write(attempt, *draft_r, &account);
    return fault;
}

static enum fault key(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    const struct json *roles;
    struct draft *draft;
    struct bytes id, label;
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "account label roles"),
                                   reader_text(reader, wish, "label", &label));
    if (!fault && !account_is_device(label))
        fault =
            reader_wrong(reader, wish, "label", "At most 200 bytes without control characters are expected.");
    if (!fault)
        fault = FAULT_FIRST(account_gate_read_roles(reader, wish, &roles),
                            fetch_for_key(attempt, reader, wish, &id, &draft));
    if (fault)
        return fault;
    if (roles)
        draft_set_item(draft, BYTES("Roles"), BYTES(""), false,
                       account_write_roles(attempt->call->arena, roles));
    const char *token = account_session_add_key(attempt, draft, id, label);
    json_add_text(attempt->reply->body, "{\"account\":", id);
    builder_printf(attempt->reply->body, ",\"key\":\"%s\"}", token);
    return FAULT_NONE;
}

/* One passkey, or {"passkey":"all"}; the last way to sign in, too. */
static enum fault revoke_passkey(struct attempt *attempt, const struct reader *reader,
                                 const struct json *wish, struct bytes listed)
{
    struct account account;
    struct draft *draft;
    struct bytes id;
    bool is_all = bytes_equal(listed, BYTES("all"));
    if (!is_all && listed.size != PASSKEY_LISTED)
        return reader_wrong(reader, wish, "passkey", "A passkey, as it is listed, or all, is expected.");
    if (json_member(wish, "session"))
        return reader_wrong(reader, wish, "session", "Either session or passkey is expected.");
    enum fault fault = read_account(attempt, reader, wish, &id, &draft, &account);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"ended\":%zu}",
                       passkey_list_remove(draft, is_all ? NO_BYTES : listed));
    return fault;
}

static enum fault revoke(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    struct account account;
    struct draft *draft;
    struct bytes id, session, passkey;
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "account session passkey"),
                                   reader_text(reader, wish, "session", &session),
                                   reader_text(reader, wish, "passkey", &passkey));
    if (!fault && passkey.data)
        return revoke_passkey(attempt, reader, wish, passkey);
    if (!fault && session.data && session.size != ACCOUNT_SESSION_NAME)
        fault = reader_wrong(reader, wish, "session", "A session, as it is listed, is expected.");
    if (!fault)
        fault = read_account(attempt, reader, wish, &id, &draft, &account);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"ended\":%zu}",
                       account_session_end(attempt, draft, session.data ? session : BYTES(""), NO_BYTES));
    return fault;
}

static enum fault delete (struct attempt *attempt, const struct reader *reader,
                          const struct json *wish UNUSED) {
    struct account account; struct draft * draft; struct bytes id;
    enum fault fault = administration_read_id(reader, attempt->call->param, "delete", &id);
    if (!fault) fault = administration_fetch(attempt, id, &draft, &account);
    if (!fault) fault = account_change_delete(attempt, draft, &account);
    if (!fault) builder_add_text(attempt->reply->body, "{\"deleted\":true}");
    return fault;
}

/* --- the operation --- */

static const struct {
    const char *member;
    act *act;
    bool is_text; /* the wish is a text, otherwise an object */
} acts[] = {
    {"find", administration_find, true},
    {"get", administration_get, true},
    {"list", account_list_answer, false},
    {"create", administration_create, false},
    {"set", administration_set, false},
    {"invite", invite, false},
    {"key", key, false},
    {"revoke", revoke, false},
    {"delete", delete, true},
};

static enum fault administration_run(struct attempt *attempt, const struct reader *reader,
                                     const struct json *wish, size_t place)
{
    bool is_object = wish->kind == JSON_OBJECT && !wish->is_shallow;
    bool is_right = acts[place].is_text
                        ? wish->kind == JSON_STRING || (is_object && acts[place].act == administration_find)
                        : is_object;
    if (!is_right)
        return reader_wrong_value(reader, wish, acts[place].member,
                                  acts[place].is_text ? "A text is expected." : "An object is expected.");
    return acts[place].act(attempt, reader, wish);
}

static enum fault accounts_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    enum fault fault =
        FAULT_FIRST(account_gate_check(attempt),
                    reader_members(&reader, param, "find get list create set invite key revoke delete"));
    if (fault)
        return fault;
    if (!param || param->kind != JSON_OBJECT || !param->first || param->first->next)
        return reader_wrong_value(
            &reader, NULL, "param",
            "One of find, get, list, create, set, invite, key, revoke, delete is expected.");
    for (size_t i = 0; i < COUNT_OF(acts); i++)
        if (json_member(param, acts[i].member))
            return administration_run(attempt, &reader, param->first, i);
    return FAULT_BINTERNAL;
}

static bool administration_is_look(const struct call *call)
{
    return json_member(call->param, "find") || json_member(call->param, "get") ||
           json_member(call->param, "list");
}

const struct operation accounts_accounts = {.name = "accounts",
                                            .right = RIGHT_ADMIN,
                                            .is_secret = true,
                                            .work = accounts_work,
                                            .is_look = administration_is_look};
