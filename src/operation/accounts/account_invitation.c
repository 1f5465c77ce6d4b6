/* account_invitation: a document Ticket/<SHA-256>, used up by the commit that names the account. */
#include "operation/accounts/account_invitation.h"

#include "base/clock.h"
#include "operation/accounts/account_gate.h"
#include "operation/accounts/account_ticket.h"
#include "operation/access/caller.h"

enum fault account_invitation_check(struct attempt *attempt, struct bytes invitation)
{
    enum ns_registration registration = attempt->call->accounts.registration;
    const char *detail = NULL;
    if (registration == REGISTRATION_CLOSED)
        detail = "Registration is closed.";
    else if (registration == REGISTRATION_INVITATION && !invitation.data)
        detail = "An invitation is expected.";
    return detail ? reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail,
                                attempt->operation->name, NULL)
                  : FAULT_NONE;
}

enum fault account_invitation_fetch(struct attempt *attempt, struct bytes invitation,
                                    const struct json **roles_r, struct draft **draft_r)
{
    static const struct json_limits limits = {.depth = 3, .tree_depth = 3, .nodes = 64};
    struct call *call = attempt->call;
    struct draft *ticket;
    struct json *root = NULL;
    struct json_problem problem;
    int64_t expires = 0;
    const struct document_name name = account_ticket_name(account_ticket_key(attempt, invitation));
    enum fault fault = transaction_fetch(attempt->transaction, name, &ticket);
    if (fault)
        return fault;
    const struct item *item =
        draft_exists(ticket) ? draft_find_item(ticket, BYTES("Invite"), BYTES("")) : NULL;
    bool is_one = item && !json_read(call->arena, item->content, &limits, &root, &problem);
    const struct json *until = json_member(root, "expires");
    if (!is_one || !until || !json_is_i64(until, &expires) ||
        account_is_over(expires, clock_present_minute()))
        return caller_refuse(attempt->worker_context, call, attempt->reply, "invitation",
                             "The invitation is wrong, used or expired.");
    const struct json *roles = json_member(root, "roles");
    *roles_r = account_are_roles(roles) ? roles : NULL;
    *draft_r = ticket;
    return FAULT_NONE;
}

enum fault account_invitation_take(struct attempt *attempt, struct bytes invitation,
                                   const struct json **roles_r)
{
    struct draft *ticket;
    enum fault fault = account_invitation_fetch(attempt, invitation, roles_r, &ticket);
    if (!fault)
        draft_delete(ticket);
    return fault;
}

/* Those of the invitation, then those of the account that are others. */
static struct json *add_roles(struct arena *arena, const struct json *invited, const struct account *account)
{
    struct json *all = ARENA_NEW(arena, struct json), *last = NULL;
    size_t count = invited->count + account->role_count;
    struct json *room = ARENA_ARRAY(arena, struct json, count + 1);
    const struct json *one = invited->first;
    *all = (struct json){.kind = JSON_ARRAY};
    for (size_t i = 0; i < count; i++) {
        struct bytes role = one ? one->value : account->roles[i - invited->count];
        bool is_there = false;
        for (const struct json *other = all->first; other; other = other->next)
            is_there = is_there || bytes_equal(other->value, role);
        one = one ? one->next : NULL;
        if (is_there)
            continue;
        room[i] = (struct json){.kind = JSON_STRING, .value = role};
        *(last ? &last->next : &all->first) = &room[i];
        last = &room[i];
        all->count++;
    }
    return all;
}

enum fault account_invitation_convert(struct attempt *attempt, const struct account *account,
                                      const struct json **roles_r)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param, *invited = NULL;
    struct bytes invitation;
    *roles_r = NULL;
    enum fault fault = FAULT_FIRST(reader_text(&reader, param, "invitation", &invitation),
                                   account_invitation_check(attempt, invitation));
    if (!fault) /* names that are taken, and digests of passwords */
        fault = account_gate_count(attempt, NO_BYTES);
    if (!fault && invitation.data)
        fault = account_invitation_take(attempt, invitation, &invited);
    if (fault || !invited)
        return fault;
    *roles_r = add_roles(attempt->call->arena, invited, account);
    return account_are_roles(*roles_r)
               ? FAULT_NONE
               : reader_wrong(&reader, param, "invitation", "The account would have too many roles.");
}
