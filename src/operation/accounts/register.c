/* register: makes an account and begins its first session.
 *
 * Where confirmation is required (namespace.h), the names of accounts are confirmed addresses.  {"address"}
 * requests a mail, with the same answer and the same work whether the address has an account; {"ticket",
 * "password"} makes the account. */
#include "operation/accounts/accounts.h"

#include "model/document/stamp.h"
#include "operation/accounts/account_address.h"
#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_end.h"
#include "operation/accounts/account_invitation.h"
#include "operation/accounts/account_proof.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_ticket.h"
#include "operation/passkeys/passkey_credential.h"

struct registration_wish {
    struct bytes given, name, address, password, invitation;
    struct bytes lower, ticket; /* where confirmation is required: of a request of a mail, of its use */
    bool is_confirmed;
    struct session_wish session;
    bool has_passkey; /* instead of a password */
    struct passkey_credential passkey;
};

static enum fault register_read_wish(const struct reader *reader, const struct json *param,
                                     struct registration_wish *wish)
{
    enum fault fault =
        reader_members(reader, param, "name password passkey address invitation device cookie");
    if (!fault)
        fault = FAULT_FIRST(account_gate_read_name(reader, param, &wish->given, &wish->name),
                            passkey_credential_read(reader, param, "passkey", PASSKEY_CREATE, &wish->passkey,
                                                    &wish->has_passkey),
                            account_password_read(reader, param, "password",
                                                  wish->name.data && !wish->has_passkey, &wish->password));
    if (!fault && wish->password.data && !wish->name.data)
        fault = reader_wrong(reader, param, "name", "A name is expected beside a password.");
    if (!fault)
        fault = FAULT_FIRST(account_gate_read_address(reader, param, &wish->address),
                            reader_text(reader, param, "invitation", &wish->invitation));
    return fault ? fault : account_session_read(reader, param, &wish->session);
}

/* May an account be made at all, as far as the configuration decides? */
static enum fault check_registration(struct attempt *attempt, const struct registration_wish *wish)
{
    const struct ns_accounts *accounts = &attempt->call->accounts;
    bool is_named = wish->name.data || wish->lower.data || wish->ticket.data;
    const char *detail = NULL;
    if (!is_named && !accounts->has_anonymous)
        detail = accounts->needs_confirmation
                     ? "Accounts without a name are not made here: send an address."
                     : "Accounts without a name are not made here: send name and password.";
    if (detail)
        return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, "register", NULL);
    return is_named ? account_invitation_check(attempt, wish->invitation) : FAULT_NONE;
}

/* --- where confirmation is required --- */

static enum fault read_ticket(const struct reader *reader, const struct json *param,
                              struct registration_wish *wish)
{
    enum fault fault =
        reader_members(reader, param, "ticket address password passkey invitation device cookie");
    if (!fault)
        fault = FAULT_FIRST(reader_text(reader, param, "ticket", &wish->ticket),
                            account_mail_read_address(reader, param, &wish->address, &wish->lower));
    if (!fault && wish->ticket.data && wish->address.data)
        fault = reader_wrong(reader, param, "address", "Beside a ticket no address is expected.");
    if (!fault)
        fault = FAULT_FIRST(passkey_credential_read(reader, param, "passkey", PASSKEY_CREATE, &wish->passkey,
                                                    &wish->has_passkey),
                            account_password_read(reader, param, "password",
                                                  wish->ticket.data && !wish->has_passkey, &wish->password));
    if (!fault && wish->password.data && !wish->ticket.data)
        fault = reader_wrong(reader, param, "password", "A password is expected beside a ticket only.");
    if (!fault && wish->has_passkey && wish->address.data)
        fault = reader_wrong(reader, param, "passkey", "Beside an address no passkey is expected.");
    if (!fault)
        fault = reader_text(reader, param, "invitation", &wish->invitation);
    return fault ? fault : account_session_read(reader, param, &wish->session);
}

/* The invitation is used up by the ticket: here it only has to be valid. */
static enum fault request_mail(struct attempt *attempt, const struct registration_wish *wish)
{
    const struct account_mail_wish mail = {.kind = LETTER_REGISTER, .address = wish->address};
    const struct json *roles;
    struct draft *ticket;
    enum fault fault = FAULT_NONE;
    if (wish->invitation.data)
        fault = account_invitation_fetch(attempt, wish->invitation, &roles, &ticket);
    return fault ? fault : account_mail_request(attempt, &mail, wish->lower);
}

/* The address of the ticket is the name. */
static enum fault take_ticket(struct attempt *attempt, struct registration_wish *wish)
{
    struct account_ticket ticket;
    enum fault fault = account_ticket_fetch(attempt, wish->ticket, LETTER_REGISTER, &ticket);
    if (fault)
        return fault;
    wish->given = wish->address = ticket.address;
    wish->is_confirmed = true;
    draft_delete(ticket.draft);
    return account_normalise(attempt->call->arena, ticket.address, &wish->name)
               ? FAULT_NONE
               : account_ticket_refuse(attempt);
}

/* --- the account --- */

static enum fault make_account(struct attempt *attempt, const struct registration_wish *wish, struct bytes id,
                               const struct json *roles, struct draft *draft)
{
    const struct account account = {.name = wish->given,
                                    .address = wish->address,
                                    .is_confirmed = wish->is_confirmed,
                                    .created = stamp_now()};
    account_gate_write(attempt, draft, &account);
    if (roles)
        draft_set_item(draft, BYTES("Roles"), BYTES(""), false,
                       account_write_roles(attempt->call->arena, roles));
    enum fault fault = FAULT_NONE;
    if (wish->password.data)
        fault = account_password_set(attempt, draft, wish->password); /* also if the name is taken */
    if (!fault && wish->name.data)
        fault = account_gate_take_name(attempt, wish->name, id);
    return fault || !wish->is_confirmed ? fault : account_address_take(attempt, wish->address, id);
}

/* The account gets the id that its passkey has, which was made before; it is given to one account only. */
static enum fault make_with_passkey(struct attempt *attempt, const struct registration_wish *wish,
                                    const struct json *roles, struct bytes *id_r, struct draft **draft_r)
{
    struct webauthn_credential verified;
    struct passkey_challenge challenge;
    enum fault fault = FAULT_FIRST(account_proof_check_passkeys(attempt),
                                   passkey_credential_verify(attempt, PASSKEY_FOR_REGISTER, NO_BYTES,
                                                             &wish->passkey, &verified, &challenge));
    if (fault)
        return fault;
    *id_r = challenge.account;
    fault = transaction_fetch(attempt->transaction, account_gate_name(*id_r), draft_r);
    if (!fault && (draft_exists(*draft_r) || draft_base(*draft_r)->header.version))
        fault = passkey_credential_refuse_challenge(attempt);
    if (!fault)
        fault = make_account(attempt, wish, *id_r, roles, *draft_r);
    return fault ? fault
                 : passkey_credential_add(attempt, *draft_r, &verified, wish->session.device, &challenge);
}

static enum fault register_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *roles = NULL;
    struct registration_wish wish = {0};
    struct draft *draft;
    bool is_by_mail = attempt->call->accounts.needs_confirmation;
    enum fault fault = FAULT_FIRST(account_gate_check(attempt),
                                   is_by_mail ? read_ticket(&reader, attempt->call->param, &wish)
                                              : register_read_wish(&reader, attempt->call->param, &wish),
                                   check_registration(attempt, &wish), account_gate_count(attempt, NO_BYTES));
    if (!fault && wish.address.data && is_by_mail)
        return request_mail(attempt, &wish);
    if (!fault && wish.ticket.data)
        fault = take_ticket(attempt, &wish);
    if (!fault && wish.invitation.data)
        fault = account_invitation_take(attempt, wish.invitation, &roles);
    struct bytes id = account_session_new_id(attempt);
    if (!fault && !wish.has_passkey)
        fault = transaction_fetch(attempt->transaction, account_gate_name(id), &draft);
    if (!fault)
        fault = wish.has_passkey ? make_with_passkey(attempt, &wish, roles, &id, &draft)
                                 : make_account(attempt, &wish, id, roles, draft);
    if (fault)
        return fault;
    account_session_begin(attempt, draft, id, &wish.session);
    return account_end_plan(attempt, draft, id);
}

const struct operation accounts_register = {
    .name = "register", .right = RIGHT_PUBLIC, .is_secret = true, .work = register_work};
