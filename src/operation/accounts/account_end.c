/* account_end: see the header. */
#include "operation/accounts/account_end.h"

#include "base/clock.h"
#include "model/account/issuer.h"
#include "model/document/stamp.h"
#include "operation/accounts/account_change.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/accounts.h"
#include "operation/tasks/task_request.h"

#define DAY_MS INT64_C(86400000)

/* Can it be an account that nobody comes back to?  One with a name or a confirmed address is of somebody, one
 * with a service key never ends by itself, and the document of a provider's account belongs to the
 * administrator. */
static bool is_bounded(struct attempt *attempt, const struct draft *draft, struct bytes id,
                       const struct account *account)
{
    const struct ns_accounts *accounts = &attempt->call->accounts;
    return accounts->is_on && accounts->anonymous_days && !account->name.size && !account->is_confirmed &&
           !issuer_is_account(id) && !account_session_has_key(attempt, draft);
}

/* The document's last change, a logout too, or the end of its last session, and anonymous_days later. */
static int64_t end_of(struct attempt *attempt, const struct draft *draft)
{
    int64_t changed = draft_base(draft)->header.version;
    int64_t until = account_session_last(attempt, draft);
    return stamp_add_ms(changed > until ? changed : until, attempt->call->accounts.anonymous_days * DAY_MS);
}

static enum fault plan_account_end(struct attempt *attempt, struct bytes id, int64_t start)
{
    const struct reader reader = account_gate_reader(attempt);
    struct task_excess excess;
    const struct task_request request = {
        .operation = &accounts_accountend,
        .param =
            bytes_of(arena_printf(attempt->call->arena, "{\"account\":\"%.*s\"}", (int)id.size, id.data)),
        .resource = id,
        .start = start,
        .priority = TASK_PRIORITY_MOST,
        .is_of_server = true,
    };
    enum fault fault = task_request_add(attempt, &request, &excess);
    return fault ? reader_over(&reader, NULL, excess.limit, excess.most, excess.value) : FAULT_NONE;
}

enum fault account_end_plan(struct attempt *attempt, const struct draft *draft, struct bytes id)
{
    struct account account;
    if (!attempt->call->accounts.anonymous_days)
        return FAULT_NONE;
    enum fault fault = account_gate_read(attempt, draft, &account);
    if (fault || !is_bounded(attempt, draft, id, &account))
        return fault;
    return plan_account_end(attempt, id, end_of(attempt, draft));
}

/* --- the task `accountend`, param {"account":id} --- */

static enum fault account_end_settle(struct attempt *attempt, struct draft *draft, struct bytes id)
{
    struct account account;
    enum fault fault = account_gate_read(attempt, draft, &account);
    if (fault || !is_bounded(attempt, draft, id, &account))
        return fault;
    int64_t end = end_of(attempt, draft);
    return account_is_over(end, clock_present_minute()) ? account_change_delete(attempt, draft, &account)
                                                        : plan_account_end(attempt, id, end);
}

static enum fault accountend_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct draft *draft;
    struct bytes id;
    enum fault fault = reader_members(&reader, attempt->call->param, "account");
    if (!fault)
        fault = reader_text(&reader, attempt->call->param, "account", &id);
    if (!fault)
        fault = reader_check_length(&reader, attempt->call->param, "account", id);
    if (!fault)
        fault = account_gate_find_accounts(attempt);
    if (!fault)
        fault = transaction_fetch(attempt->transaction, account_gate_name(id), &draft);
    return fault || !draft_exists(draft) ? fault : account_end_settle(attempt, draft, id);
}

const struct operation accounts_accountend = {
    .name = "accountend", .right = RIGHT_ADMIN, .work = accountend_work, .task = {.is_internal = true}};
