/* confirm: the address of an account.  {} requests a mail to the address of the caller's account; {"ticket"}
 * confirms it, by whoever has received the mail.  Where confirmation is required, the confirmed address
 * becomes the name, and an account without a password gets one. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_change.h"
#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_ticket.h"
#include "operation/accounts/passkey_credential.h"

static enum fault request_mail(struct attempt *attempt, const struct reader *reader)
{
    struct account_mail_wish wish = {.kind = LETTER_CONFIRM, .account = attempt->call->caller.account};
    struct account account;
    struct draft *draft;
    struct bytes lower;
    enum fault fault = reader_members(reader, attempt->call->param, "");
    if (!fault)
        fault = account_gate_fetch_caller(attempt, &draft);
    if (!fault)
        fault = account_gate_read(attempt, draft, &account);
    if (fault)
        return fault;
    if (account.is_confirmed || !letter_is_address(account.address) ||
        !account_normalise(attempt->call->arena, account.address, &lower))
        return reader_wrong(reader, NULL, "param",
                            account.is_confirmed ? "An address that is not confirmed is expected."
                                                 : "The account has no address to which mails can be sent.");
    wish.address = account.address;
    return account_mail_request(attempt, &wish, lower);
}

/* The name is the address, and needs a password or a passkey. */
static enum fault complete(struct attempt *attempt, const struct reader *reader, const struct draft *draft,
                           struct bytes address, struct account_change *change)
{
    const struct json *param = attempt->call->param;
    bool has_password = draft_find_item(draft, BYTES("Secret"), BYTES("")) != NULL;
    change->given = address;
    if (!account_normalise(attempt->call->arena, address, &change->name))
        return account_ticket_refuse(attempt);
    bool is_needed = !has_password && !passkey_credential_count(draft);
    enum fault fault = account_password_read(reader, param, "password", is_needed, &change->password);
    if (!fault && has_password && change->password.data)
        fault = reader_wrong(reader, param, "password", "The account has a password: none is expected.");
    return fault;
}

static enum fault confirm(struct attempt *attempt, const struct reader *reader, struct bytes secret)
{
    static const struct json yes = {.kind = JSON_TRUE};
    struct account_ticket ticket;
    struct account_change change = {.confirmed = &yes};
    struct account account;
    struct draft *draft;
    enum fault fault = reader_members(reader, attempt->call->param, "ticket password");
    if (!fault)
        fault = account_gate_count(attempt, NO_BYTES);
    if (!fault)
        fault = account_ticket_fetch(attempt, secret, LETTER_CONFIRM, &ticket);
    if (!fault)
        fault = transaction_fetch(attempt->transaction, account_gate_name(ticket.account), &draft);
    if (!fault && !draft_exists(draft))
        fault = account_ticket_refuse(attempt);
    if (!fault)
        fault = account_gate_read(attempt, draft, &account);
    if (!fault && !bytes_equal(account.address, ticket.address))
        fault = account_ticket_refuse(attempt);
    if (!fault && attempt->call->accounts.needs_confirmation)
        fault = complete(attempt, reader, draft, ticket.address, &change);
    if (!fault)
        fault = account_change_apply(attempt, draft, ticket.account, &account, &change);
    if (fault)
        return fault;
    draft_delete(ticket.draft);
    builder_add_text(attempt->reply->body, "{\"confirmed\":");
    json_add_string(attempt->reply->body, ticket.address);
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

static enum fault confirm_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct bytes secret;
    enum fault fault = account_ticket_read(attempt, &secret);
    if (fault)
        return fault;
    return secret.data ? confirm(attempt, &reader, secret) : request_mail(attempt, &reader);
}

const struct operation accounts_confirm = {
    .name = "confirm", .right = RIGHT_PUBLIC, .is_secret = true, .work = confirm_work};
