/* login: begins a session of the account with this name and password.  The work and the answer are the same
 * whether there is no such account, the password is wrong, or the account is disabled. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"

struct login_wish {
    struct bytes given, name, password;
    struct session_wish session;
};

static enum fault login_read_wish(const struct reader *reader, const struct json *param,
                                  struct login_wish *wish)
{
    enum fault fault = FAULT_FIRST(reader_members(reader, param, "name password device cookie"),
                                   account_gate_read_name(reader, param, &wish->given, &wish->name));
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
    fault = FAULT_FIRST(transaction_fetch(attempt->transaction, account_gate_name(*id_r), account_r),
                        account_password_compare(attempt, *account_r, wish->password, &is_right));
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
    enum fault fault = FAULT_FIRST(
        account_gate_check(attempt), login_read_wish(&reader, attempt->call->param, &wish),
        account_gate_count(attempt, wish.name), login_fetch_account(attempt, &wish, &id, &account));
    if (fault)
        return fault;
    account_gate_forget(attempt, wish.name);
    account_session_begin(attempt, account, id, &wish.session);
    return FAULT_NONE;
}

const struct operation accounts_login = {
    .name = "login", .right = RIGHT_PUBLIC, .is_of_z = true, .is_secret = true, .work = login_work};

/* A session by a mail, where the namespace has that.  {"name"} or {"address"} requests the mail;
 * the answer, and the work, are the same whether there is such an account.  {"ticket"} begins the session.
 *
 * A ticket works once, and ends when another one of its account is used, and with the password, the address
 * and the account.  Only POST uses it: a program that opens all links of a mail, as scanners of mails do,
 * opens a page, and uses up nothing, also where the setting get_writes accepts GET. */

static enum fault maillogin_check(struct attempt *attempt)
{
    struct call *call = attempt->call;
    enum fault fault = account_gate_check(attempt);
    if (fault)
        return fault;
    if (!call->accounts.has_mail_login)
        return reply_fault(call, attempt->reply, FAULT_SCLOSED, "Nobody signs in by mail here.", "maillogin",
                           NULL);
    if (call->method == CALL_POST)
        return FAULT_NONE;
    attempt->reply->is_post_only = true;
    return reply_fault(call, attempt->reply, FAULT_AMETHOD, "A ticket is used by POST.", "GET", NULL);
}

static enum fault maillogin_begin(struct attempt *attempt, struct bytes secret)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    struct session_wish session;
    struct account_ticket ticket;
    struct account account;
    struct draft *draft;
    struct bytes name;
    enum fault fault =
        FAULT_FIRST(reader_members(&reader, param, "ticket device cookie"),
                    account_session_read(&reader, param, &session), account_gate_count(attempt, NO_BYTES),
                    account_ticket_fetch(attempt, secret, LETTER_LOGIN, &ticket),
                    account_ticket_fetch_account(attempt, &ticket, &draft, &account));
    if (fault)
        return fault;
    account_ticket_use_login(attempt, draft, &ticket);
    if (account_normalise(attempt->call->arena, account.name, &name))
        account_gate_forget(attempt, name);
    account_session_begin(attempt, draft, ticket.account, &session);
    return FAULT_NONE;
}

static enum fault maillogin_work(struct attempt *attempt)
{
    struct bytes secret;
    return FAULT_FIRST(maillogin_check(attempt), account_ticket_read(attempt, &secret),
                       secret.data ? maillogin_begin(attempt, secret)
                                   : account_mail_request_by(attempt, LETTER_LOGIN));
}

const struct operation accounts_maillogin = {
    .name = "maillogin", .right = RIGHT_PUBLIC, .is_secret = true, .work = maillogin_work};
