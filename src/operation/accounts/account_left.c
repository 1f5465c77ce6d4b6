/* account_left: see the header. */
#include "operation/accounts/account_left.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "model/rules/rules_left.h"
#include "model/document/stamp.h"
#include "operation/accounts/account_walk.h"
#include "operation/accounts/accounts.h"
#include "operation/access/configurations.h"
#include "operation/tasks/task_request.h"
#include "store/collections/store_list.h"

#define PREFIX "left "

enum {
    LEFT_MOST = 1000, /* accounts that a walk serves */
    PAGES_MOST = 8,   /* of a cycle that changes nothing */
    MARGIN_MS = 2000  /* beyond limit_operation_s */
};

/* --- the commit that deletes an account --- */

static int64_t settle_ms(const struct attempt *attempt)
{
    return attempt->worker_context->settings->limit_operation_s * 1000 + MARGIN_MS;
}

static enum fault account_left_plan(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct task_excess excess;
    const struct task_request request = {
        .operation = &accounts_accountclean,
        .resource = BYTES("accountclean"),
        .domain = BYTES("accountclean"),
        .delay_ms = settle_ms(attempt),
        .longest_ms = 1, /* one that waits keeps its start: deletions cannot postpone it */
        .priority = TASK_PRIORITY_MOST,
        .is_of_server = true,
    };
    enum fault fault = task_request_add(attempt, &request, &excess);
    return fault ? reader_over(&reader, NULL, excess.limit, excess.most, excess.value) : FAULT_NONE;
}

enum fault account_left_add(struct attempt *attempt, struct bytes id)
{
    struct draft *draft;
    const struct document_name name = {
        BYTES("Ticket"), bytes_of(arena_printf(attempt->call->arena, PREFIX "%.*s", (int)id.size, id.data))};
    enum fault fault = transaction_fetch(attempt->transaction, name, &draft);
    if (fault)
        return fault;
    draft_create(draft);
    return account_left_plan(attempt);
}

/* --- a walk --- */

struct account_walk {
    int64_t until;          /* stamp: accounts that were deleted later are left to the next walk */
    int64_t rules;          /* version of the rules by which it began; -1: not begun */
    struct bytes last;      /* the last of its Ticket/left …; empty: not known yet */
    struct bytes class, id; /* of the document that was visited last; empty: before the first */
    int64_t deleted, changed;
    bool is_over; /* all documents were visited */

    struct bytes *accounts; /* sorted */
    size_t count;
    bool has_others; /* accounts that it does not serve */
};

static bool is_gone(void *context, struct bytes account)
{
    const struct account_walk *walk = context;
    size_t low = 0, high = walk->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(walk->accounts[middle], account);
        if (!order)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* --- its checkpoint --- */

/* The one that the task continues, or a new one. */
static struct account_walk read_walk(const struct attempt *attempt)
{
    const struct json *root = account_walk_read(attempt);
    if (!root)
        return (struct account_walk){.until = stamp_add_ms(stamp_now(), -settle_ms(attempt)),
                                     .rules = -1,
                                     .last = BYTES(""),
                                     .class = BYTES(""),
                                     .id = BYTES("")};
    const struct json *is_over = json_member(root, "over");
    return (struct account_walk){.until = account_walk_number(root, "until"),
                                 .rules = account_walk_number(root, "rules"),
                                 .last = account_walk_text(root, "last"),
                                 .class = account_walk_text(root, "class"),
                                 .id = account_walk_text(root, "id"),
                                 .deleted = account_walk_number(root, "deleted"),
                                 .changed = account_walk_number(root, "changed"),
                                 .is_over = is_over && is_over->kind == JSON_TRUE};
}

static void keep_walk(struct attempt *attempt, const struct account_walk *walk)
{
    struct builder text = {0};
    builder_printf(&text,
                   "{\"until\":%lld,\"rules\":%lld,\"deleted\":%lld,\"changed\":%lld,\"over\":%s,\"last\":",
                   (long long)walk->until, (long long)walk->rules, (long long)walk->deleted,
                   (long long)walk->changed, walk->is_over ? "true" : "false");
    json_add_string(&text, walk->last);
    builder_add_text(&text, ",\"class\":");
    json_add_string(&text, walk->class);
    builder_add_text(&text, ",\"id\":");
    json_add_string(&text, walk->id);
    builder_add_text(&text, "}");
    account_walk_keep(attempt, &text);
}

/* --- the accounts that it serves --- */

/* Does the walk serve the account of this marker? */
static bool account_left_is_served(const struct account_walk *walk, const struct header *marker)
{
    return marker->version <= walk->until && walk->count < LEFT_MOST &&
           (!walk->last.size || bytes_compare(marker->id, walk->last) <= 0);
}

static enum fault read_accounts(struct attempt *attempt, struct account_walk *walk)
{
    struct list_query query = {.class = BYTES("Ticket"),
                               .prefix = BYTES(PREFIX),
                               .cursor = BYTES(""),
                               .minute = clock_present_minute(),
                               .limit = LEFT_MOST};
    struct header *headers;
    struct bytes more, last = BYTES("");
    size_t count;
    walk->accounts = ARENA_ROOM(attempt->call->arena, struct bytes, LEFT_MOST);
    do {
        enum fault fault = store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                                      attempt->call->arena, &query, &headers, &count, &more);
        if (fault)
            return fault;
        for (size_t i = 0; i < count; i++) {
            if (!account_left_is_served(walk, &headers[i])) {
                walk->has_others = true;
                continue;
            }
            last = headers[i].id;
            walk->accounts[walk->count++] =
                (struct bytes){last.data + strlen(PREFIX), last.size - strlen(PREFIX)};
        }
        query.cursor = more;
    } while (more.data && walk->count < LEFT_MOST);
    walk->has_others = walk->has_others || more.data;
    if (!walk->last.size)
        walk->last = last;
    return FAULT_NONE;
}

/* --- a page of documents --- */

/* Changes or deletes the document as it is now; the commit is refused if it changes meanwhile. */
static enum fault account_left_settle(struct attempt *attempt, struct account_walk *walk,
                                      const struct rules_left *left, struct document_name name)
{
    struct draft *draft;
    enum fault fault = transaction_fetch(attempt->transaction, name, &draft);
    if (fault)
        return fault;
    enum rules_left_act act = rules_left_apply(left, attempt->call->arena, draft);
    walk->deleted += act == RULES_LEFT_DOCUMENT;
    walk->changed += act == RULES_LEFT_MEMBERS;
    return FAULT_NONE;
}

/* Visits documents of the page up to the last that this cycle has room for. */
static enum fault visit_documents(struct attempt *attempt, struct account_walk *walk,
                                  const struct rules_left *left, const struct account_page *page,
                                  size_t *visited_r, int64_t *settled)
{
    const struct document **documents;
    *visited_r = 0;
    enum fault fault = account_walk_load(attempt, page, &documents);
    for (size_t i = 0; !fault && i < page->count && documents[i]; i++) {
        if (rules_left_find(left, attempt->call->arena, documents[i])) {
            if (*settled == account_walk_most(attempt))
                return FAULT_NONE;
            fault = account_left_settle(attempt, walk, left, page->names[i]);
            ++*settled;
        }
        walk->id = page->names[i].id;
        *visited_r = i + 1;
    }
    return fault;
}

static enum fault visit_page(struct attempt *attempt, struct account_walk *walk,
                             const struct rules_left *left, int64_t *settled)
{
    struct account_page page;
    size_t visited;
    enum fault fault = account_walk_list(attempt, walk->class, walk->id, &page);
    if (!fault)
        fault = visit_documents(attempt, walk, left, &page, &visited, settled);
    if (fault || visited < page.count)
        return fault;
    walk->id = page.more.data ? page.more : BYTES("");
    if (page.more.data)
        return FAULT_NONE;
    struct bytes next = rules_left_next_class(left->rules, walk->class);
    walk->is_over = !next.data;
    walk->class = next.data ? next : BYTES("");
    return FAULT_NONE;
}

/* Begins at the first class again when the rules have changed. */
static enum fault account_left_visit(struct attempt *attempt, struct account_walk *walk,
                                     const struct configuration *own)
{
    const struct rules_left left = {.rules = own->rules, .is_gone = is_gone, .context = walk};
    enum fault fault = FAULT_NONE;
    int64_t settled = 0;
    if (walk->rules != own->rules_version) {
        walk->rules = own->rules_version;
        walk->class = own->rules ? rules_left_next_class(own->rules, BYTES("")) : NO_BYTES;
        walk->id = BYTES("");
        walk->is_over = !walk->class.data;
        if (walk->is_over)
            walk->class = BYTES("");
    }
    for (int page = 0; !fault && !walk->is_over && !settled && page < PAGES_MOST; page++)
        fault = visit_page(attempt, walk, &left, &settled);
    return fault;
}

/* --- the end --- */

/* Forgets as many accounts as a commit may. */
static enum fault account_left_forget(struct attempt *attempt, const struct account_walk *walk,
                                      size_t *count_r)
{
    enum fault fault = FAULT_NONE;
    size_t most = (size_t)account_walk_most(attempt);
    *count_r = walk->count < most ? walk->count : most;
    for (size_t i = 0; i < *count_r && !fault; i++) {
        struct draft *draft;
        const struct bytes id = {walk->accounts[i].data - strlen(PREFIX),
                                 walk->accounts[i].size + strlen(PREFIX)};
        fault = transaction_fetch(attempt->transaction, (struct document_name){BYTES("Ticket"), id}, &draft);
        if (!fault)
            draft_delete(draft);
    }
    return fault;
}

static enum fault account_left_finish(struct attempt *attempt, const struct account_walk *walk)
{
    const struct bytes ns = attempt->call->ns;
    if (walk->count)
        log_info("documents of deleted accounts are settled namespace=%.*s deleted=%lld changed=%lld",
                 (int)ns.size, ns.data, (long long)walk->deleted, (long long)walk->changed);
    return walk->has_others ? account_left_plan(attempt) : FAULT_NONE;
}

static enum fault accountclean_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct configuration *own, *z;
    struct account_walk walk = read_walk(attempt);
    size_t forgotten = 0;
    enum fault fault = reader_members(&reader, attempt->call->param, "");
    if (!fault)
        fault = configurations_find(attempt->worker_context, attempt->call, &own, &z);
    if (fault)
        return fault;
    configurations_hold(own, attempt->call->arena);
    fault = read_accounts(attempt, &walk);
    bool was_over = walk.is_over;
    if (!fault && walk.count)
        fault = account_left_visit(attempt, &walk, own);
    if (!fault && was_over && walk.is_over)
        fault = account_left_forget(attempt, &walk, &forgotten);
    if (fault)
        return fault;
    bool is_end = forgotten == walk.count;
    if (!is_end)
        keep_walk(attempt, &walk);
    builder_printf(attempt->reply->body, "{\"deleted\":%lld,\"changed\":%lld,\"more\":%s}",
                   (long long)walk.deleted, (long long)walk.changed, is_end ? "false" : "true");
    return is_end ? account_left_finish(attempt, &walk) : FAULT_NONE;
}

const struct operation accounts_accountclean = {
    .name = "accountclean", .right = RIGHT_ADMIN, .work = accountclean_work, .task = {.is_internal = true}};
