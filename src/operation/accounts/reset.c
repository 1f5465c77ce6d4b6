/* reset: a new password by mail.  {"name"} or {"address"} requests the mail; the answer, and the work, are
 * the same whether there is such an account.  {"ticket","password"} sets the password, ends all sessions and
 * begins one. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"

static enum fault request_mail(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    struct account_mail_wish wish = {.kind = LETTER_RESET};
    struct bytes given, address, lower;
    enum fault fault = reader_members(reader, param, "name address");
    if (!fault)
        fault = account_gate_read_name(reader, param, &given, &wish.name);
    if (!fault)
        fault = account_mail_read_address(reader, param, &address, &lower);
    if (!fault && (wish.name.data != NULL) == (lower.data != NULL))
        fault = reader_wrong(reader, param, "name", "Either a name or an address is expected.");
    if (fault)
        return fault;
    wish.address = lower;
    return account_mail_request(attempt, &wish, wish.name.data ? wish.name : lower);
}

/* The ticket holds while the address is the account's, and its password the one of then. */
static enum fault reset_fetch_account(struct attempt *attempt, const struct account_ticket *ticket,
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
                 bytes_equal(account_ticket_proof(attempt, *draft_r), ticket->proof);
    return holds ? FAULT_NONE : account_ticket_refuse(attempt);
}

static enum fault set_password(struct attempt *attempt, const struct reader *reader, struct bytes secret)
{
    const struct json *param = attempt->call->param;
    struct session_wish session;
    struct account_ticket ticket;
    struct account account;
    struct draft *draft;
    struct bytes password, name;
    enum fault fault = reader_members(reader, param, "ticket password device cookie");
    if (!fault)
        fault = account_password_read(reader, param, "password", true, &password);
    if (!fault)
        fault = account_session_read(reader, param, &session);
    if (!fault)
        fault = account_gate_count(attempt, NO_BYTES);
    if (!fault)
        fault = account_ticket_fetch(attempt, secret, LETTER_RESET, &ticket);
    if (!fault)
        fault = reset_fetch_account(attempt, &ticket, &draft, &account);
    if (!fault)
        fault = account_password_set(attempt, draft, password);
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
    enum fault fault = account_ticket_read(attempt, &secret);
    if (fault)
        return fault;
    return secret.data ? set_password(attempt, &reader, secret) : request_mail(attempt, &reader);
}

const struct operation accounts_reset = {
    .name = "reset", .right = RIGHT_PUBLIC, .is_secret = true, .work = reset_work};
