/* account_walk: see the header. */
#include "operation/accounts/account_walk.h"

#include "base/clock.h"

enum {
    CHANGES_MOST = 32,   /* of a cycle */
    PAGE = 100,          /* documents */
    PAGE_BYTES = 8 << 20 /* of memory for a page */
};

int64_t account_walk_most(const struct attempt *attempt)
{
    int64_t most = attempt->worker_context->settings->limit_documents;
    return most < CHANGES_MOST ? most : CHANGES_MOST;
}

enum fault account_walk_query(struct attempt *attempt, const struct list_query *query,
                              struct account_page *page_r)
{
    struct header *headers;
    enum fault fault = store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                                  attempt->call->arena, query, &headers, &page_r->count, &page_r->more);
    if (fault)
        return fault;
    page_r->names = ARENA_ROOM(attempt->call->arena, struct document_name, page_r->count);
    for (size_t i = 0; i < page_r->count; i++)
        page_r->names[i] = (struct document_name){query->class, headers[i].id};
    return FAULT_NONE;
}

enum fault account_walk_list(struct attempt *attempt, struct bytes class, struct bytes after,
                             struct account_page *page_r)
{
    const struct list_query query = {.class = class,
                                     .prefix = BYTES(""),
                                     .cursor = after,
                                     .minute = clock_present_minute(),
                                     .limit = PAGE};
    return account_walk_query(attempt, &query, page_r);
}

enum fault account_walk_load(struct attempt *attempt, const struct account_page *page,
                             const struct document ***documents_r)
{
    *documents_r = ARENA_ROOM(attempt->call->arena, const struct document *, page->count);
    return transaction_newest(attempt->transaction, page->names, page->count, PAGE_BYTES, *documents_r);
}

const struct json *account_walk_read(const struct attempt *attempt)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2, .nodes = 16};
    const struct task *task = attempt->call->task;
    struct json *root;
    struct json_problem problem;
    if (!task || !task->checkpoint.data ||
        json_read(attempt->call->arena, task->checkpoint, &limits, &root, &problem))
        return NULL;
    return root;
}

struct bytes account_walk_text(const struct json *root, const char *name)
{
    return json_text_of(root, name, BYTES(""));
}

int64_t account_walk_number(const struct json *root, const char *name)
{
    const struct json *number = json_member(root, name);
    int64_t value;
    return number && json_is_i64(number, &value) ? value : 0;
}

void account_walk_keep(struct attempt *attempt, struct builder *text)
{
    transaction_set_checkpoint(attempt->transaction, builder_take(text, attempt->call->arena));
}
