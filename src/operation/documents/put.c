/* put: documents created, changed, deleted, all in one commit.
 * param {"docs":[{"c","id","if":version,"items":[{"c","k","j"|"s"} | {"c","k","del":true}],"delete":true}]} →
 * out {"v","docs":[{"c","id","v"}]}. Items named are set or removed ("j":null removes too), the others stay;
 * a document that does not exist is created, without items too; delete ends its incarnation, and with
 * items a new one begins.  `v`: the version of the commit, or, when nothing had to change, the highest
 * version among the documents named; that of `docs`: of each document, as `if` takes it. */
#include "operation/documents/put.h"

#include "document/transaction.h"
#include "model/document/stamp.h"
#include "operation/access/access.h"
#include "operation/attachments/put_files.h"
#include "operation/builtin.h"
#include "operation/documents/change.h"
#include "operation/judge/judge.h"
#include "operation/reader.h"
#include "operation/reply.h"
#include "operation/sync/versions_after.h"

/* One document of the request. */
struct order {
    struct document_name name;
    const struct json *element, *items; /* items NULL: none */
    int64_t expected;                   /* version; -1: any */
    struct view view;                   /* what the caller sees of it now */
    bool is_delete;
};

static enum fault read_order(const struct reader *reader, const struct json *element, struct order *order)
{
    if (element->kind != JSON_OBJECT)
        return reader_wrong_value(reader, element, "docs",
                                  "Objects with c, id, if, items and delete are expected.");
    order->element = element;
    enum fault fault = FAULT_FIRST(reader_members(reader, element, "c id if items delete"),
                                   reader_name(reader, element, &order->name),
                                   reader_integer(reader, element, "if", 0, STAMP_MAX, -1, &order->expected),
                                   reader_boolean(reader, element, "delete", &order->is_delete));
    const struct json *items = json_member(element, "items");
    if (!fault && items && items->kind != JSON_NULL) {
        if (items->kind != JSON_ARRAY || items->is_shallow)
            return reader_wrong(reader, element, "items", "An array is expected.");
        order->items = items;
    }
    return fault;
}

static enum fault check_version(const struct reader *reader, const struct order *order,
                                const struct draft *draft)
{
    if (order->expected < 0 || order->expected == view_version(&order->view, draft_base(draft)))
        return FAULT_NONE;
    enum fault fault = change_refuse_view(reader, draft_base(draft), &order->view);
    reader_place(reader, order->element, "if");
    return fault;
}

/* A document that the caller may not read is treated as one that does not exist. */
static enum fault apply_order(struct attempt *attempt, const struct reader *reader, const struct order *order,
                              struct draft *draft)
{
    enum fault fault = check_version(reader, order, draft);
    if (fault)
        return fault;
    bool has_items = order->items && order->items->count;
    if (order->is_delete)
        draft_delete(draft);
    if (!order->is_delete || has_items)
        draft_create(draft);
    return change_items(attempt, draft, has_items ? order->items : NULL, true);
}

static enum fault put_work(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = {settings, attempt->call, attempt->reply};
    struct arena *arena = attempt->call->arena;
    const struct json *docs;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "docs"),
                                   reader_array(&reader, attempt->call->param, "docs", "limit_documents",
                                                settings->limit_documents, &docs));
    if (fault)
        return fault;
    struct order *orders = ARENA_ARRAY(arena, struct order, docs->count);
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, docs->count);
    struct draft **drafts = ARENA_ARRAY(arena, struct draft *, docs->count);
    size_t count = 0;
    for (const struct json *element = docs->first; element; element = element->next, count++) {
        fault = read_order(&reader, element, &orders[count]);
        if (fault)
            return fault;
        names[count] = orders[count].name;
    }
    fault = transaction_fetch_many(attempt->transaction, names, count, drafts);
    int64_t highest = 0;
    for (size_t i = 0; !fault && i < count; i++) {
        if (call_is_judged(attempt->call) && (fault = judge_draft(attempt, &drafts[i], &orders[i].view)))
            return fault;
        int64_t present = view_version(&orders[i].view, draft_base(drafts[i]));
        if (present > highest)
            highest = present;
        fault = apply_order(attempt, &reader, &orders[i], drafts[i]);
    }
    change_leave_version(attempt, highest);
    return fault;
}

static enum fault put_check(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = {settings, attempt->call, attempt->reply};
    const struct json *docs;
    struct order order;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "docs"),
                                   reader_array(&reader, attempt->call->param, "docs", "limit_documents",
                                                settings->limit_documents, &docs));
    for (const struct json *element = fault ? NULL : docs->first; element && !fault;
         element = element->next) {
        order = (struct order){0};
        fault = FAULT_FIRST(read_order(&reader, element, &order), change_check_items(&reader, order.items));
    }
    return fault;
}

static void write_version_after(struct builder *body, struct document_name name, int64_t version)
{
    json_add_text(body, "{\"c\":", name.class);
    json_add_text(body, ",\"id\":", name.id);
    builder_add_text(body, ",\"v\":");
    builder_add_i64(body, version);
    builder_add_text(body, "}");
}

static enum fault write_versions_after(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct builder *body = attempt->reply->body;
    const struct json *docs = json_member(attempt->call->param, "docs");
    builder_add_text(body, ",\"docs\":[");
    for (const struct json *element = docs->first; element; element = element->next) {
        struct document_name name;
        int64_t version = 0;
        enum fault fault = reader_name(&reader, element, &name);
        if (!fault && !versions_after_find(attempt, name, &version))
            fault = reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "versions_after", NULL);
        if (fault)
            return fault;
        if (element != docs->first)
            builder_add_text(body, ",");
        write_version_after(body, name, version);
    }
    builder_add_text(body, "]");
    return FAULT_NONE;
}

static enum fault put_afterwork(struct attempt *attempt)
{
    enum fault fault = change_complete_version(attempt);
    if (fault)
        return fault;
    attempt->reply->body->size--; /* the brace */
    fault = write_versions_after(attempt);
    builder_add_text(attempt->reply->body, "}");
    return fault;
}

const struct operation builtin_put = {.name = "put",
                                      .right = RIGHT_WRITE,
                                      .obeys_rules = true,
                                      .prepare = put_files_store,
                                      .work = put_work,
                                      .check = put_check,
                                      .afterwork = put_afterwork,
                                      .task = {.may_clients_schedule = true}};

/* Runs the parts of `put` with a call of its own. */

/* Files are stored by the operation `put` alone, before its work: here none can be named. */
struct call *put_beside_find(const struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct json *docs = json_member(call->param, "docs");
    if (!docs || docs->kind == JSON_NULL)
        return NULL;
    struct call *put = ARENA_NEW(call->arena, struct call);
    struct json *member = ARENA_NEW(call->arena, struct json), *param = ARENA_NEW(call->arena, struct json);
    *member = *docs;
    member->next = NULL;
    *param = (struct json){.kind = JSON_OBJECT, .count = 1, .text = call->param->text, .first = member};
    *put = *call;
    put->param = param;
    put->files = NULL;
    put->file_count = 0;
    return put;
}

static enum fault put_beside_run(struct attempt *attempt, struct call *put,
                                 enum fault (*part)(struct attempt *attempt))
{
    struct call *call = attempt->call;
    attempt->call = put;
    enum fault fault = part(attempt);
    attempt->call = call;
    return fault;
}

enum fault put_beside_check(struct attempt *attempt, struct call *put)
{
    if (!put)
        return FAULT_NONE;
    return FAULT_FIRST(access_check(put, attempt->reply, &builtin_put),
                       put_beside_run(attempt, put, builtin_put.check));
}

enum fault put_beside_work(struct attempt *attempt, struct call *put)
{
    return put_beside_run(attempt, put, builtin_put.work);
}

enum fault put_beside_afterwork(struct attempt *attempt)
{
    return put_beside_run(attempt, put_beside_find(attempt), builtin_put.afterwork);
}

bool put_beside_is_left(const struct attempt *attempt)
{
    static const char left_by_put[] = "{\"v\":";
    const struct builder *body = attempt->reply->body;
    return body->size - attempt->out > sizeof left_by_put &&
           memcmp(body->data + attempt->out, left_by_put, sizeof left_by_put - 1) == 0;
}
