/* account_sweep: the task `accountsweep`, which plans the end of the anonymous accounts (account_end.h) whose
 * last session began before `anonymous_days` was set, or was set to another number.
 *
 * It visits the accounts in the order of their ids, page by page; each cycle is one commit, bounded by
 * limit_documents, and its checkpoint {"days","last","planned"} says where the next one continues.  Sessions
 * that begin meanwhile plan the end of their accounts themselves.  At the end it records the number of days
 * (tasks/task_sweep.h); with another number, set meanwhile, it begins again.  With 0 days it removes the
 * record. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_walk.h"
#include "operation/accounts/account_end.h"
#include "operation/tasks/task_sweep.h"

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
    enum fault fault = transaction_fetch(attempt->transaction, account_gate_name(id), &draft);
    if (!fault)
        fault = account_end_plan(attempt, draft, id);
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
    enum fault fault = account_walk_list(attempt, BYTES("Account"), sweep->last, &page);
    if (!fault)
        fault = visit_page(attempt, sweep, &page, &visited);
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
    enum fault fault = reader_members(&reader, attempt->call->param, "");
    if (!fault)
        fault = account_gate_find_accounts(attempt);
    if (!fault)
        fault = transaction_fetch(attempt->transaction, task_sweep_name(), &draft);
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
