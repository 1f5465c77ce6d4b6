/* reset: a new password by mail.  {"name"} or {"address"} requests the mail; the answer, and the work, are
 * the same whether there is such an account.  {"ticket","password"} sets the password, ends all sessions and
 * begins one. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"

static enum fault set_password(struct attempt *attempt, const struct reader *reader, struct bytes secret)
{
    const struct json *param = attempt->call->param;
    struct session_wish session;
    struct account_ticket ticket;
    struct account account;
    struct draft *draft;
    struct bytes password, name;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "ticket password device cookie"),
                    account_password_read(reader, param, "password", true, &password),
                    account_session_read(reader, param, &session), account_gate_count(attempt, NO_BYTES),
                    account_ticket_fetch(attempt, secret, LETTER_RESET, &ticket),
                    account_ticket_fetch_account(attempt, &ticket, &draft, &account),
                    account_password_set(attempt, draft, password));
    if (fault)
        return fault;
    draft_delete(ticket.draft);
    account_session_end(attempt, draft, BYTES(""), NO_BYTES);
    if (account_normalise(attempt->call->arena, account.name, &name))
        account_gate_forget(attempt, name);
    account_session_begin(attempt, draft, ticket.account, &session);
    return FAULT_NONE;
}

static enum fault reset_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct bytes secret;
    return FAULT_FIRST(account_ticket_read(attempt, &secret),
                       secret.data ? set_password(attempt, &reader, secret)
                                   : account_mail_request_by(attempt, LETTER_RESET));
}

const struct operation accounts_reset = {
    .name = "reset", .right = RIGHT_PUBLIC, .is_secret = true, .work = reset_work};
