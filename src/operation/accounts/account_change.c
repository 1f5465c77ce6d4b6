/* account_change: see the header. */
#include "operation/accounts/account_change.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "model/account/issuer.h"
#include "model/document/stamp.h"
#include "model/rules/rules_sight.h"
#include "operation/access/configurations.h"
#include "operation/accounts/account_address.h"
#include "operation/accounts/account_gate.h"
#include "operation/accounts/account_mail.h"
#include "operation/accounts/account_password.h"
#include "operation/accounts/account_walk.h"
#include "operation/accounts/accounts.h"
#include "operation/tasks/task_request.h"
#include "store/collections/store_list.h"

/* --- what an account leaves --- */

/* What deleted accounts leave behind.
 *
 * The commit that deletes an account writes the document Ticket/left <account> and plans the task
 * `accountclean`, of which a namespace has one that waits and one that runs at most.  The task visits the
 * documents of the classes that the rules concern (model/rules/rules_sight.h), page by page; each cycle is
 * one commit, bounded by limit_documents, and its checkpoint says where the next one continues.  At the end
 * of the walk the documents Ticket/left … that it has served are deleted: until then everything can be done
 * again.
 *
 * A request of the account that was under way may still commit until limit_operation_s later; a walk serves
 * the accounts that were deleted before that.  Every change is decided again by the newest document, which
 * the commit verifies. */

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

/* The account is deleted by this commit. */
static enum fault account_left_add(struct attempt *attempt, struct bytes id)
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
    json_add_text(&text, ",\"class\":", walk->class);
    json_add_text(&text, ",\"id\":", walk->id);
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
    enum fault fault = FAULT_FIRST(account_walk_list(attempt, walk->class, walk->id, &page),
                                   visit_documents(attempt, walk, left, &page, &visited, settled));
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
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, ""),
                                   configurations_find(attempt->worker_context, attempt->call, &own, &z));
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

/* --- the change --- */

enum fault account_change_read(const struct reader *reader, const struct json *object,
                               struct account_change *change_r)
{
    const struct json *address = json_member(object, "address");
    *change_r = (struct account_change){.disabled = json_member(object, "disabled"),
                                        .confirmed = json_member(object, "confirmed"),
                                        .hidden = json_member(object, "hidden")};
    enum fault fault = FAULT_FIRST(account_gate_read_name(reader, object, &change_r->given, &change_r->name),
                                   account_gate_read_address(reader, object, &change_r->address));
    if (!fault && address && address->kind == JSON_NULL)
        change_r->address = BYTES("");
    if (!fault)
        fault = FAULT_FIRST(account_password_read(reader, object, "password", false, &change_r->password),
                            account_gate_read_roles(reader, object, &change_r->roles));
    bool is_one;
    if (!fault)
        fault = FAULT_FIRST(reader_boolean(reader, object, "disabled", &is_one),
                            reader_boolean(reader, object, "hidden", &is_one));
    return fault ? fault : reader_boolean(reader, object, "confirmed", &is_one);
}

/* The former name becomes free in the same commit. */
static enum fault rename_account(struct attempt *attempt, struct bytes id, const struct account *account,
                                 const struct account_change *change)
{
    struct bytes former = NO_BYTES;
    struct draft *login;
    if (account->name.size && !account_normalise(attempt->call->arena, account->name, &former))
        return reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "name", NULL);
    enum fault fault = account_gate_take_name(attempt, change->name, id);
    if (fault || !former.data || bytes_equal(former, change->name))
        return fault;
    fault = transaction_fetch(attempt->transaction, account_gate_login_name(former), &login);
    if (!fault && bytes_equal(account_gate_find_id(attempt, login), id))
        draft_delete(login);
    return fault;
}

static bool is_set(const struct json *wish)
{
    return wish && wish->kind != JSON_NULL;
}

/* A confirmed address is found by account_address_name. */
static enum fault change_address(struct attempt *attempt, struct bytes id, struct account *account,
                                 const struct account_change *change)
{
    enum fault fault = FAULT_NONE;
    struct bytes former = account->address;
    bool was_confirmed = account->is_confirmed;
    bool is_other = change->address.data && !bytes_equal(change->address, former);
    if (is_other) {
        account->address = change->address;
        account->is_confirmed = false;
    }
    if (is_set(change->confirmed))
        account->is_confirmed = change->confirmed->kind == JSON_TRUE && account->address.size;
    if (was_confirmed && (is_other || !account->is_confirmed))
        fault = account_address_leave(attempt, former, id);
    if (!fault && account->is_confirmed && (is_other || !was_confirmed))
        fault = account_address_take(attempt, account->address, id);
    if (fault || !is_other || !was_confirmed || !account_mail_is_set_up(attempt))
        return fault;
    return account_mail_plan(
        attempt, &(struct account_mail_wish){.kind = LETTER_CHANGED, .address = former, .account = id});
}

enum fault account_change_apply(struct attempt *attempt, struct draft *draft, struct bytes id,
                                struct account *account, const struct account_change *change)
{
    struct arena *arena = attempt->call->arena;
    enum fault fault = FAULT_NONE;
    if (change->password.data)
        fault = account_password_set(attempt, draft, change->password); /* also if the name is taken */
    if (!fault && change->name.data)
        fault = rename_account(attempt, id, account, change);
    if (fault)
        return fault;
    if (change->name.data)
        account->name = change->given;
    fault = change_address(attempt, id, account, change);
    if (fault)
        return fault;
    if (is_set(change->disabled))
        account->is_disabled = change->disabled->kind == JSON_TRUE;
    if (is_set(change->hidden))
        account->is_hidden = change->hidden->kind == JSON_TRUE;
    account_gate_write(attempt, draft, account);
    if (!change->roles)
        return FAULT_NONE;
    draft_set_item(draft, BYTES("Roles"), BYTES(""), false, account_write_roles(arena, change->roles));
    return account_gate_read(attempt, draft, account);
}

enum fault account_change_delete(struct attempt *attempt, struct draft *draft, const struct account *account)
{
    struct bytes name;
    struct draft *login;
    const struct header *header = &draft_base(draft)->header;
    if (account->name.size && account_normalise(attempt->call->arena, account->name, &name)) {
        enum fault fault = transaction_fetch(attempt->transaction, account_gate_login_name(name), &login);
        if (fault)
            return fault;
        if (bytes_equal(account_gate_find_id(attempt, login), header->id))
            draft_delete(login);
    }
    if (account->is_confirmed) {
        enum fault fault = account_address_leave(attempt, account->address, header->id);
        if (fault)
            return fault;
    }
    draft_delete(draft);
    return issuer_is_account(header->id) ? FAULT_NONE : account_left_add(attempt, header->id);
}

void account_change_write_open(struct attempt *attempt, struct bytes id, const struct account *account)
{
    struct builder *body = attempt->reply->body;
    json_add_text(body, "{\"account\":", id);
    json_add_filled(body, "name", account->name);
    json_add_filled(body, "address", account->address);
    json_add_filled(body, "issuer", account->issuer);
    json_add_filled(body, "subject", account->subject);
    if (account->is_confirmed)
        builder_add_text(body, ",\"confirmed\":true");
    if (issuer_is_account(id))
        builder_add_text(body, ",\"external\":true");
    else if (!account->name.size)
        builder_add_text(body, ",\"anonymous\":true");
    if (account->is_disabled)
        builder_add_text(body, ",\"disabled\":true");
    if (account->is_hidden)
        builder_add_text(body, ",\"hidden\":true");
    builder_add_text(body, ",\"roles\":[");
    for (size_t i = 0; i < account->role_count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, account->roles[i]);
    }
    builder_printf(body, "],\"created\":%lld", (long long)account->created);
}

void account_change_write(struct attempt *attempt, struct bytes id, const struct account *account)
{
    account_change_write_open(attempt, id, account);
    builder_add_text(attempt->reply->body, "}");
}
