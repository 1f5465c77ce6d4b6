/* account: the caller reads, changes and deletes its own account.  A change requires a proof: the present
 * password or a passkey of the account, if it has one.  A new password ends all other sessions.  An account
 * without a name, set name and password together, becomes one that can log in, with the same id, as far as
 * the registration allows (account_invitation.h); one with a passkey may have a name alone. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_change.h"
#include "operation/accounts/account_invitation.h"
#include "operation/accounts/account_proof.h"
#include "operation/accounts/account_session.h"
#include "operation/passkeys/passkey_credential.h"

static enum fault check_conversion(const struct reader *reader, const struct json *wish,
                                   const struct account_change *change, const struct draft *draft,
                                   const struct account *account)
{
    bool has_passkey = passkey_credential_count(draft) > 0;
    if (account->name.size || (has_passkey && !change->password.data) ||
        (change->name.data != NULL) == (change->password.data != NULL))
        return FAULT_NONE;
    return reader_wrong(reader, wish, change->name.data ? "password" : "name",
                        "An account gets its name and its password together.");
}

static enum fault account_set(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                              struct draft *draft, struct account *account)
{
    struct account_change change = {0};
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, "set", "An object is expected.");
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "name address password hidden"),
                                   account_change_read(reader, wish, &change));
    if (!fault && change.name.data && attempt->call->accounts.needs_confirmation)
        fault = reader_wrong(reader, wish, "name",
                             "Here the confirmed address is the name: set the address, and confirm it.");
    if (!fault)
        fault = check_conversion(reader, wish, &change, draft, account);
    bool is_conversion = change.name.data && !account->name.size;
    if (!fault && !is_conversion && json_member(attempt->call->param, "invitation"))
        fault = reader_wrong(reader, attempt->call->param, "invitation",
                             "Only an account that gets its first name uses an invitation.");
    if (!fault && is_conversion)
        fault = account_invitation_convert(attempt, account, &change.roles);
    if (!fault)
        fault = account_change_apply(attempt, draft, attempt->call->caller.account, account, &change);
    if (!fault && change.password.data)
        account_session_end(attempt, draft, BYTES(""), attempt->call->caller_session);
    return fault;
}

static enum fault act(struct attempt *attempt, const struct reader *reader, struct draft *draft,
                      struct account *account, bool *is_deleted_r)
{
    const struct json *param = attempt->call->param, *wish = json_member(param, "set");
    enum fault fault = reader_boolean(reader, param, "delete", is_deleted_r);
    if (fault || (!wish && !*is_deleted_r))
        return fault;
    if (wish && *is_deleted_r)
        return reader_wrong(reader, param, "delete", "Either set or delete is expected.");
    if (!wish && json_member(param, "invitation"))
        return reader_wrong(reader, param, "invitation", "An invitation is expected beside set only.");
    fault = account_proof_check(attempt, reader, param, draft, account);
    if (!fault && wish)
        fault = account_set(attempt, reader, wish, draft, account);
    else if (!fault)
        fault = account_change_delete(attempt, draft, account);
    if (!fault && account->name.size)
        account_gate_forget(attempt, account->name);
    return fault;
}

/* An account of a provider, with the roles of the token too. */
static enum fault show_external(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct draft *draft;
    struct account account;
    enum fault fault =
        transaction_fetch(attempt->transaction, account_gate_name(call->caller.account), &draft);
    if (!fault)
        fault = account_gate_read_external(attempt, draft, &account);
    if (fault)
        return fault;
    account.roles = call->caller.roles;
    account.role_count = call->caller.role_count;
    account_change_write(attempt, call->caller.account, &account);
    return FAULT_NONE;
}

static bool account_is_look(const struct call *call);

static enum fault account_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct account account;
    struct draft *draft;
    bool is_deleted = false;
    enum fault fault =
        reader_members(&reader, attempt->call->param, "set delete password passkey invitation");
    if (!fault && account_gate_is_external(attempt) && account_is_look(attempt->call))
        return show_external(attempt);
    if (!fault)
        fault = FAULT_FIRST(account_gate_fetch_caller(attempt, &draft),
                            account_gate_read(attempt, draft, &account),
                            act(attempt, &reader, draft, &account, &is_deleted));
    if (fault)
        return fault;
    if (is_deleted)
        builder_add_text(attempt->reply->body, "{\"deleted\":true}");
    else
        account_change_write(attempt, attempt->call->caller.account, &account);
    return FAULT_NONE;
}

static bool account_is_look(const struct call *call)
{
    return !json_member(call->param, "set") && !json_member(call->param, "delete");
}

const struct operation accounts_account = {.name = "account",
                                           .right = RIGHT_PUBLIC,
                                           .is_secret = true,
                                           .work = account_work,
                                           .is_look = account_is_look};
