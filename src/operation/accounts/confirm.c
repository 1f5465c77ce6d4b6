/* confirm: the address of an account.  {} requests a mail to the address of the caller's account; {"ticket"}
 * confirms it, by whoever has received the mail.  Where confirmation is required, the confirmed address
 * becomes the name, and an account without a password gets one.  An account that gets its first name keeps
 * its sessions and passkeys only if one of its sessions sends the ticket; one that has another name needs
 * that. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_change.h"
#include "operation/accounts/account_invitation.h"
#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"
#include "operation/passkeys/passkey_credential.h"
#include "operation/passkeys/passkey_list.h"
#include "operation/access/caller.h"

static enum fault request_mail(struct attempt *attempt, const struct reader *reader)
{
    struct account_mail_wish wish = {.kind = LETTER_CONFIRM, .account = attempt->call->caller.account};
    struct account account;
    struct draft *draft;
    struct bytes lower;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, attempt->call->param, ""),
                    account_gate_fetch_caller(attempt, &draft), account_gate_read(attempt, draft, &account));
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

/* Is the ticket used by its account itself, and not only by whoever has received the mail? */
static bool is_own(const struct attempt *attempt, struct bytes account)
{
    const struct call *call = attempt->call;
    return call->caller_session.data && bytes_equal(call->caller.account, account);
}

/* Whoever made the account may have named an address of somebody else: only who has the mail keeps access. */
static void end_access(struct attempt *attempt, struct draft *draft)
{
    (void)account_session_end(attempt, draft, BYTES(""), NO_BYTES);
    (void)passkey_list_remove(draft, NO_BYTES);
}

/* The account gets its first name, as far as the registration allows. */
static enum fault convert(struct attempt *attempt, struct draft *draft, const struct account *account,
                          struct bytes id, struct account_change *change)
{
    enum fault fault = account_invitation_convert(attempt, account, &change->roles);
    if (!fault && !is_own(attempt, id))
        end_access(attempt, draft);
    return fault;
}

/* Does the account have another name?  That it may be given is shown by one of its sessions: the mail alone
 * shows whose the address is, and not whose the account. */
static bool is_other_name(struct arena *arena, const struct account *account, struct bytes name)
{
    struct bytes former;
    return account->name.size &&
           (!account_normalise(arena, account->name, &former) || !bytes_equal(former, name));
}

/* The name is the address, and needs a password or a passkey. */
static enum fault confirm_complete(struct attempt *attempt, const struct reader *reader, struct draft *draft,
                                   const struct account *account, const struct account_ticket *ticket,
                                   struct account_change *change)
{
    const struct json *param = attempt->call->param;
    bool is_strange = !account->name.size && !is_own(attempt, ticket->account);
    bool has_password = draft_find_item(draft, BYTES("Secret"), BYTES("")) != NULL && !is_strange;
    change->given = ticket->address;
    if (!account_normalise(attempt->call->arena, ticket->address, &change->name))
        return account_ticket_refuse(attempt);
    if (is_other_name(attempt->call->arena, account, change->name) && !is_own(attempt, ticket->account))
        return caller_refuse(attempt->worker_context, attempt->call, attempt->reply, "ticket",
                             "A session of the account is expected: it has another name.");
    bool is_needed = is_strange || (!has_password && !passkey_credential_count(draft));
    enum fault fault = account_password_read(reader, param, "password", is_needed, &change->password);
    if (!fault && has_password && change->password.data)
        fault = reader_wrong(reader, param, "password", "The account has a password: none is expected.");
    return fault || account->name.size ? fault : convert(attempt, draft, account, ticket->account, change);
}

static enum fault confirm(struct attempt *attempt, const struct reader *reader, struct bytes secret)
{
    static const struct json yes = {.kind = JSON_TRUE};
    struct account_ticket ticket;
    struct account_change change = {.confirmed = &yes};
    struct account account;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(
        reader_members(reader, attempt->call->param, "ticket password invitation"),
        account_gate_count(attempt, NO_BYTES), account_ticket_fetch(attempt, secret, LETTER_CONFIRM, &ticket),
        transaction_fetch(attempt->transaction, account_gate_name(ticket.account), &draft));
    if (!fault && !draft_exists(draft))
        fault = account_ticket_refuse(attempt);
    if (!fault)
        fault = account_gate_read(attempt, draft, &account);
    if (!fault && !bytes_equal(account.address, ticket.address))
        fault = account_ticket_refuse(attempt);
    bool is_conversion = attempt->call->accounts.needs_confirmation && !account.name.size;
    if (!fault && !is_conversion && json_member(attempt->call->param, "invitation"))
        fault = reader_wrong(reader, attempt->call->param, "invitation",
                             "Only an account that gets its first name uses an invitation.");
    if (!fault && attempt->call->accounts.needs_confirmation)
        fault = confirm_complete(attempt, reader, draft, &account, &ticket, &change);
    if (!fault)
        fault = account_change_apply(attempt, draft, ticket.account, &account, &change);
    if (fault)
        return fault;
    draft_delete(ticket.draft);
    json_add_text(attempt->reply->body, "{\"confirmed\":", ticket.address);
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

static enum fault confirm_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct bytes secret;
    return FAULT_FIRST(account_ticket_read(attempt, &secret),
                       secret.data ? confirm(attempt, &reader, secret) : request_mail(attempt, &reader));
}

const struct operation accounts_confirm = {
    .name = "confirm", .right = RIGHT_PUBLIC, .is_secret = true, .work = confirm_work};
