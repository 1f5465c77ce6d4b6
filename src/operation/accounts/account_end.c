/* account_end: see the header. */
#include "operation/accounts/account_end.h"

#include "base/clock.h"
#include "model/account/issuer.h"
#include "model/document/stamp.h"
#include "operation/accounts/account_change.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/account_walk.h"
#include "operation/accounts/accounts.h"
#include "operation/tasks/task_request.h"
#include "operation/tasks/task_sweep.h"

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
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "account"),
                                   reader_text(&reader, attempt->call->param, "account", &id),
                                   reader_check_length(&reader, attempt->call->param, "account", id),
                                   account_gate_find_accounts(attempt),
                                   transaction_fetch(attempt->transaction, account_gate_name(id), &draft));
    return fault || !draft_exists(draft) ? fault : account_end_settle(attempt, draft, id);
}

const struct operation accounts_accountend = {
    .name = "accountend", .right = RIGHT_ADMIN, .work = accountend_work, .task = {.is_internal = true}};

/* The task `accountsweep`, which plans the end of the anonymous accounts (account_end.h) whose
 * last session began before `anonymous_days` was set, or was set to another number.
 *
 * It visits the accounts in the order of their ids, page by page; each cycle is one commit, bounded by
 * limit_documents, and its checkpoint {"days","last","planned"} says where the next one continues.  Sessions
 * that begin meanwhile plan the end of their accounts themselves.  At the end it records the number of days
 * (tasks/task_sweep.h); with another number, set meanwhile, it begins again.  With 0 days it removes the
 * record. */

struct account_sweep {
    int64_t days, planned;
    struct bytes last; /* the id that was visited last; empty: before the first */
    bool is_over;      /* all accounts were visited */
};

static struct account_sweep read_sweep(const struct attempt *attempt, int64_t days)
{
    const struct json *root = account_walk_read(attempt);
    if (!root || account_walk_number(root, "days") != days)
        return (struct account_sweep){.days = days, .last = BYTES("")};
    return (struct account_sweep){.days = days,
                                  .planned = account_walk_number(root, "planned"),
                                  .last = account_walk_text(root, "last")};
}

static void keep_sweep(struct attempt *attempt, const struct account_sweep *sweep)
{
    struct builder text = {0};
    builder_printf(&text, "{\"days\":%lld,\"planned\":%lld,\"last\":", (long long)sweep->days,
                   (long long)sweep->planned);
    json_add_string(&text, sweep->last);
    builder_add_text(&text, "}");
    account_walk_keep(attempt, &text);
}

/* May account_end_plan find that it is bounded?  One that is malformed has no end. */
static bool is_anonymous(struct attempt *attempt, const struct document *document)
{
    struct account account;
    return document_exists(document) &&
           account_read(attempt->call->arena, account_find(document, BYTES("Self"), BYTES("")),
                        account_find(document, BYTES("Roles"), BYTES("")), &account) &&
           !account.name.size && !account.is_confirmed;
}

static enum fault account_sweep_plan(struct attempt *attempt, struct account_sweep *sweep, struct bytes id)
{
    struct draft *draft;
    enum fault fault = FAULT_FIRST(transaction_fetch(attempt->transaction, account_gate_name(id), &draft),
                                   account_end_plan(attempt, draft, id));
    sweep->planned += !fault;
    return fault;
}

/* Visits accounts of the page up to the last that this cycle has room for. */
static enum fault visit_page(struct attempt *attempt, struct account_sweep *sweep,
                             const struct account_page *page, size_t *visited_r)
{
    const struct document **documents;
    int64_t most = account_walk_most(attempt) - 1; /* the record too is fetched */
    int64_t before = sweep->planned;
    *visited_r = 0;
    enum fault fault = account_walk_load(attempt, page, &documents);
    for (size_t i = 0; !fault && i < page->count && documents[i]; i++) {
        if (is_anonymous(attempt, documents[i])) {
            if (sweep->planned - before == most)
                return FAULT_NONE;
            fault = account_sweep_plan(attempt, sweep, page->names[i].id);
        }
        sweep->last = page->names[i].id;
        *visited_r = i + 1;
    }
    return fault;
}

static enum fault account_sweep_visit(struct attempt *attempt, struct account_sweep *sweep)
{
    struct account_page page;
    size_t visited = 0;
    enum fault fault = FAULT_FIRST(account_walk_list(attempt, BYTES("Account"), sweep->last, &page),
                                   visit_page(attempt, sweep, &page, &visited));
    sweep->is_over = !fault && visited == page.count && !page.more.data;
    return fault;
}

static void account_sweep_record(struct attempt *attempt, struct draft *draft, int64_t days)
{
    char *text = arena_printf(attempt->call->arena, "%lld", (long long)days);
    if (!days) {
        if (draft_exists(draft))
            draft_delete(draft);
        return;
    }
    draft_create(draft);
    draft_set_item(draft, BYTES(TASK_SWEEP_ITEM), BYTES(""), false, bytes_of(text));
}

static enum fault accountsweep_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct draft *draft;
    enum fault fault =
        FAULT_FIRST(reader_members(&reader, attempt->call->param, ""), account_gate_find_accounts(attempt),
                    transaction_fetch(attempt->transaction, task_sweep_name(), &draft));
    if (fault)
        return fault;
    const struct ns_accounts *accounts = &attempt->call->accounts;
    int64_t days = accounts->is_on ? accounts->anonymous_days : 0;
    struct account_sweep sweep = read_sweep(attempt, days);
    const struct item *item = draft_find_item(draft, BYTES(TASK_SWEEP_ITEM), BYTES(""));
    sweep.is_over = days == task_sweep_read(item ? item->content : NO_BYTES) || !days;
    if (!sweep.is_over)
        fault = account_sweep_visit(attempt, &sweep);
    if (fault)
        return fault;
    if (sweep.is_over)
        account_sweep_record(attempt, draft, days);
    else
        keep_sweep(attempt, &sweep);
    builder_printf(attempt->reply->body, "{\"planned\":%lld,\"more\":%s}", (long long)sweep.planned,
                   sweep.is_over ? "false" : "true");
    return FAULT_NONE;
}

const struct operation accounts_accountsweep = {.name = TASK_SWEEP_OPERATION,
                                                .right = RIGHT_ADMIN,
                                                .work = accountsweep_work,
                                                .task = {.is_internal = true}};
