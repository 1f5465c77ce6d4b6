/* account_change: see the header. */
#include "operation/accounts/account_change.h"

#include "operation/accounts/account_address.h"
#include "operation/accounts/account_left.h"
#include "operation/accounts/account_mail.h"
#include "model/account/issuer.h"
#include "operation/accounts/account_password.h"

enum fault account_change_read(const struct reader *reader, const struct json *object,
                               struct account_change *change_r)
{
    const struct json *address = json_member(object, "address");
    *change_r = (struct account_change){.disabled = json_member(object, "disabled"),
                                        .confirmed = json_member(object, "confirmed")};
    enum fault fault = account_gate_read_name(reader, object, &change_r->given, &change_r->name);
    if (!fault)
        fault = account_gate_read_address(reader, object, &change_r->address);
    if (!fault && address && address->kind == JSON_NULL)
        change_r->address = BYTES("");
    if (!fault)
        fault = account_password_read(reader, object, "password", false, &change_r->password);
    if (!fault)
        fault = account_gate_read_roles(reader, object, &change_r->roles);
    bool is_one;
    if (!fault)
        fault = reader_boolean(reader, object, "disabled", &is_one);
    return fault ? fault : reader_boolean(reader, object, "confirmed", &is_one);
}

/* The former name becomes free in the same commit. */
static enum fault rename_account(struct attempt *attempt, struct bytes id, const struct account *account,
                                 const struct account_change *change)
{
    struct bytes former = NO_BYTES;
    struct draft *login;
    if (account->name.size && !account_normalise(attempt->call->arena, account->name, &former))
        return reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "name", NULL);
    enum fault fault = account_gate_take_name(attempt, change->name, id);
    if (fault || !former.data || bytes_equal(former, change->name))
        return fault;
    fault = transaction_fetch(attempt->transaction, account_gate_login_name(former), &login);
    if (!fault && bytes_equal(account_gate_find_id(attempt, login), id))
        draft_delete(login);
    return fault;
}

static bool is_set(const struct json *wish)
{
    return wish && wish->kind != JSON_NULL;
}

/* A confirmed address is found by account_address_name. */
static enum fault change_address(struct attempt *attempt, struct bytes id, struct account *account,
                                 const struct account_change *change)
{
    enum fault fault = FAULT_NONE;
    struct bytes former = account->address;
    bool was_confirmed = account->is_confirmed;
    bool is_other = change->address.data && !bytes_equal(change->address, former);
    if (is_other) {
        account->address = change->address;
        account->is_confirmed = false;
    }
    if (is_set(change->confirmed))
        account->is_confirmed = change->confirmed->kind == JSON_TRUE && account->address.size;
    if (was_confirmed && (is_other || !account->is_confirmed))
        fault = account_address_leave(attempt, former, id);
    if (!fault && account->is_confirmed && (is_other || !was_confirmed))
        fault = account_address_take(attempt, account->address, id);
    if (fault || !is_other || !was_confirmed || !account_mail_is_set_up(attempt))
        return fault;
    return account_mail_plan(
        attempt, &(struct account_mail_wish){.kind = LETTER_CHANGED, .address = former, .account = id});
}

enum fault account_change_apply(struct attempt *attempt, struct draft *draft, struct bytes id,
                                struct account *account, const struct account_change *change)
{
    struct arena *arena = attempt->call->arena;
    enum fault fault = FAULT_NONE;
    if (change->password.data)
        fault = account_password_set(attempt, draft, change->password); /* also if the name is taken */
    if (!fault && change->name.data)
        fault = rename_account(attempt, id, account, change);
    if (fault)
        return fault;
    if (change->name.data)
        account->name = change->given;
    fault = change_address(attempt, id, account, change);
    if (fault)
        return fault;
    if (is_set(change->disabled))
        account->is_disabled = change->disabled->kind == JSON_TRUE;
    account_gate_write(attempt, draft, account);
    if (!change->roles)
        return FAULT_NONE;
    draft_set_item(draft, BYTES("Roles"), BYTES(""), false, account_write_roles(arena, change->roles));
    return account_gate_read(attempt, draft, account);
}

enum fault account_change_delete(struct attempt *attempt, struct draft *draft, const struct account *account)
{
    struct bytes name;
    struct draft *login;
    const struct header *header = &draft_base(draft)->header;
    if (account->name.size && account_normalise(attempt->call->arena, account->name, &name)) {
        enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(name), &login);
        if (fault)
            return fault;
        if (bytes_equal(account_gate_find_id(attempt, login), header->id))
            draft_delete(login);
    }
    if (account->is_confirmed) {
        enum fault fault = account_address_leave(attempt, account->address, header->id);
        if (fault)
            return fault;
    }
    draft_delete(draft);
    return issuer_is_account(header->id) ? FAULT_NONE : account_left_add(attempt, header->id);
}

static void account_change_add_text(struct builder *body, const char *name, struct bytes text)
{
    if (!text.size)
        return;
    builder_printf(body, ",\"%s\":", name);
    json_add_string(body, text);
}

void account_change_write_open(struct attempt *attempt, struct bytes id, const struct account *account)
{
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"account\":");
    json_add_string(body, id);
    account_change_add_text(body, "name", account->name);
    account_change_add_text(body, "address", account->address);
    account_change_add_text(body, "issuer", account->issuer);
    account_change_add_text(body, "subject", account->subject);
    if (account->is_confirmed)
        builder_add_text(body, ",\"confirmed\":true");
    if (issuer_is_account(id))
        builder_add_text(body, ",\"external\":true");
    else if (!account->name.size)
        builder_add_text(body, ",\"anonymous\":true");
    if (account->is_disabled)
        builder_add_text(body, ",\"disabled\":true");
    builder_add_text(body, ",\"roles\":[");
    for (size_t i = 0; i < account->role_count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, account->roles[i]);
    }
    builder_printf(body, "],\"created\":%lld", (long long)account->created);
}

void account_change_write(struct attempt *attempt, struct bytes id, const struct account *account)
{
    account_change_write_open(attempt, id, account);
    builder_add_text(attempt->reply->body, "}");
}
