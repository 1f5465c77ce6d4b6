/* login: begins a session of the account with this name and password.  The work and the answer are the same
 * whether there is no such account, the password is wrong, or the account is disabled. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"

struct login_wish {
    struct bytes given, name, password;
    struct session_wish session;
};

static enum fault login_read_wish(const struct reader *reader, const struct json *param,
                                  struct login_wish *wish)
{
    enum fault fault = reader_members(reader, param, "name password device cookie");
    if (!fault)
        fault = account_gate_read_name(reader, param, &wish->given, &wish->name);
    if (!fault && !wish->name.data)
        fault = reader_wrong(reader, param, "name", "A name is expected.");
    if (!fault)
        fault = account_password_read(reader, param, "password", true, &wish->password);
    return fault ? fault : account_session_read(reader, param, &wish->session);
}

/* FAULT_SKEY: the name or the password is wrong. */
static enum fault login_fetch_account(struct attempt *attempt, const struct login_wish *wish,
                                      struct bytes *id_r, struct draft **account_r)
{
    struct draft *login;
    struct account account = {0};
    bool is_right = false;
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(wish->name), &login);
    if (fault)
        return fault;
    bool is_there;
    *id_r = account_gate_find_id_or_nobody(attempt, login, wish->name, &is_there);
    fault = transaction_fetch(attempt->transaction, account_gate_name(*id_r), account_r);
    if (!fault)
        fault = account_password_compare(attempt, *account_r, wish->password, &is_right);
    if (!fault && is_there && is_right)
        fault = account_gate_read(attempt, *account_r, &account);
    if (!fault && (!is_there || !is_right || account.is_disabled))
        fault = account_password_refuse(attempt, "The name or the password is wrong.");
    return fault;
}

static enum fault login_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct login_wish wish = {0};
    struct draft *account;
    struct bytes id;
    enum fault fault = account_gate_check(attempt);
    if (!fault)
        fault = login_read_wish(&reader, attempt->call->param, &wish);
    if (!fault)
        fault = account_gate_count(attempt, wish.name);
    if (!fault)
        fault = login_fetch_account(attempt, &wish, &id, &account);
    if (fault)
        return fault;
    account_gate_forget(attempt, wish.name);
    account_session_begin(attempt, account, id, &wish.session);
    return FAULT_NONE;
}

const struct operation accounts_login = {
    .name = "login", .right = RIGHT_PUBLIC, .is_of_z = true, .is_secret = true, .work = login_work};
