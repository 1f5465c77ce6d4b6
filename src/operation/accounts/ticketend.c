/* ticketend: the task that deletes a ticket after its expiry, param {"ticket":key}, and of an invitation to a
 * document what the list of its invitations has of it. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_ticket.h"
#include "operation/accounts/membership_ticket.h"

static enum fault ticketend_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct draft *draft;
    struct bytes key;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "ticket"),
                                   reader_text(&reader, attempt->call->param, "ticket", &key),
                                   reader_check_length(&reader, attempt->call->param, "ticket", key),
                                   transaction_fetch(attempt->transaction, account_ticket_name(key), &draft),
                                   membership_ticket_end(attempt, draft));
    if (!fault && draft_exists(draft))
        draft_delete(draft);
    return fault;
}

const struct operation accounts_ticketend = {.name = "ticketend",
                                             .right = RIGHT_ADMIN,
                                             .work = ticketend_work,
                                             .task = {.batch = 100, .is_internal = true}};
