/* task: requests tasks (tasks.md), and changes documents in the same commit.
 * param {"op","param","delay":seconds|"start":stamp,"info","priority","resource","domain","order","key",
 * "unique":seconds,"within":seconds} → out
 * {"id","startat"}: of the task that waits for the resource already, when there is one.  The caller must be
 * allowed to run the operation itself; of modules only operations that declare it, without the
 * administrator's key.
 * {"tasks":[as above]} → {"tasks":[{"id","startat"}…]}, in the order of the request: all, or none.
 * Either with "docs", as of put → and what put returns. */
#include "operation/administration/task.h"

#include "operation/builtin.h"
#include "operation/documents/put.h"
#include "operation/quota.h"

#include <inttypes.h>

#include "store/tasks/store_tasks.h"
#include "operation/access/access.h"
#include "operation/reader.h"
#include "operation/tasks/task_external.h"
#include "operation/tasks/task_request.h"
#include "operation/reply.h"
#include "document/transaction.h"

#define REQUEST_MEMBERS "op param delay start info priority resource domain order key unique within"

/* The requests of one call. */
struct task_batch {
    struct task_request *requests;
    size_t *places; /* of their tasks among those of the transaction */
    size_t count;
    size_t head;      /* size of what put has left, without its last brace; 0: no documents */
    struct call *put; /* NULL: no documents */
    bool is_list;
};

static enum fault read_operation(struct attempt *attempt, const struct reader *reader,
                                 const struct operation **operation_r)
{
    struct call *call = attempt->call;
    struct bytes name;
    enum fault fault = reader_text(reader, call->param, "op", &name);
    if (fault)
        return fault;
    if (!name.data)
        return reader_wrong(reader, call->param, "op", "The name of an operation is expected.");
    *operation_r = task_external_find(call, name);
    if (!*operation_r || (*operation_r)->task.is_internal)
        return access_refuse_unknown(call, attempt->reply, name);
    fault = access_check(call, attempt->reply, *operation_r);
    if (!fault && (*operation_r)->is_secret)
        return reader_wrong(reader, call->param, "op",
                            "Its param contains a secret, which is not stored: it cannot be a task.");
    if (fault || (*operation_r)->task.may_clients_schedule || access_is_administrator(call))
        return fault;
    return reply_fault(call, attempt->reply, FAULT_SCLOSED,
                       "Without the administrator's key this operation may not be scheduled as a task.",
                       (*operation_r)->name, NULL);
}

static enum fault read_words(const struct reader *reader, const struct json *param,
                             struct task_request *request)
{
    const struct {
        const char *member;
        struct bytes *text;
    } words[] = {{"info", &request->info},
                 {"resource", &request->resource},
                 {"domain", &request->domain},
                 {"key", &request->key}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        enum fault fault = reader_text(reader, param, words[i].member, words[i].text);
        if (!fault && words[i].text->data)
            fault = reader_check_length(reader, param, words[i].member, *words[i].text);
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* Names chosen by untrusted clients are separate from those of modules and administrators, and each account
 * and each other client has its own: otherwise one could replace, empty or hold up the tasks of another. */
static struct bytes own_name(const struct call *call, struct bytes name)
{
    struct bytes account = call->caller.account;
    if (account.data)
        return bytes_of(arena_printf(call->arena, "~%.*s/%.*s", (int)account.size, account.data,
                                     (int)name.size, name.data));
    return bytes_of(
        arena_printf(call->arena, "~%016" PRIx64 "/%.*s", call->client, (int)name.size, name.data));
}

static enum fault task_read_names(struct attempt *attempt, const struct reader *reader,
                                  struct task_request *request, bool is_trusted)
{
    struct call *call = attempt->call;
    struct bytes *const names[] = {&request->resource, &request->domain, &request->key};
    struct bytes order;
    bool is_shared = is_trusted && !call->rules && !call->caller.account.data;
    for (size_t i = 0; i < COUNT_OF(names) && !is_shared; i++)
        if (names[i]->data)
            *names[i] = own_name(call, *names[i]);
    enum fault fault = reader_text(reader, call->param, "order", &order);
    if (fault || !order.data)
        return fault;
    if (!bytes_equal(order, BYTES("strict")))
        return reader_wrong(reader, call->param, "order", "The word strict is expected.");
    if (!request->domain.data)
        return reader_wrong(reader, call->param, "domain", "Strict order needs a domain.");
    request->is_strict = true;
    return FAULT_NONE;
}

/* As the task will read it. */
static enum fault check_param(struct attempt *attempt, const struct task_request *request)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct json_limits limits = {
        .depth = (int)settings->limit_depth, .tree_depth = CALL_PARAM_TREE, .nodes = CALL_PARAM_NODES};
    const struct reader reader = {settings, attempt->call, attempt->reply};
    struct json_problem problem = {0};
    struct call call = *attempt->call;
    struct attempt inner = *attempt;
    struct json *param;
    if (!request->operation->check)
        return FAULT_NONE;
    if (json_read(call.arena, request->param.data ? request->param : BYTES("{}"), &limits, &param, &problem))
        return reader_wrong(&reader, attempt->call->param, "param",
                            "JSON that the operation could read is expected.");
    call.param = param;
    call.param_at = arena_printf(call.arena, "%s/param", call.param_at ? call.param_at : "/param");
    inner.call = &call;
    inner.operation = request->operation;
    return request->operation->check(&inner);
}

static enum fault read_start(const struct reader *reader, const struct json *param,
                             struct task_request *request, bool is_trusted)
{
    const int64_t day_s = 86400, days = reader->settings->limit_task_delay_days;
    int64_t delay_s = 0, priority;
    enum fault fault =
        FAULT_FIRST(reader_integer(reader, param, "delay", 0, AGE_MOST, 0, &delay_s),
                    reader_integer(reader, param, "start", STAMP_MIN, TASK_PARKED - 1, 0, &request->start));
    if (!fault && request->start && !stamp_is_valid(request->start))
        fault = reader_wrong(reader, param, "start", "A stamp is expected: yymmddhhmmssmmm, UTC.");
    if (!fault && request->start && delay_s)
        fault = reader_wrong(reader, param, "delay", "Either start or delay is expected.");
    if (!fault)
        fault = reader_integer(reader, param, "priority", is_trusted ? 0 : TASK_PRIORITY, TASK_PRIORITY_MOST,
                               TASK_PRIORITY, &priority);
    if (fault)
        return fault;
    int64_t latest = stamp_add_ms(stamp_now(), days * day_s * 1000);
    if (!is_trusted && (delay_s > days * day_s || request->start > latest))
        return reader_over(reader, json_member(param, request->start ? "start" : "delay"),
                           "limit_task_delay_days", days,
                           request->start ? days + 1 : (delay_s + day_s - 1) / day_s);
    request->longest_ms = is_trusted ? 0 : reader->settings->task_postpone_s * 1000;
    request->delay_ms = delay_s * 1000;
    request->priority = (int)priority;
    return FAULT_NONE;
}

static enum fault read_unique(const struct reader *reader, const struct json *param,
                              struct task_request *request)
{
    int64_t period_s;
    enum fault fault =
        reader_integer(reader, param, "unique", 0, reader->settings->task_history_s, -1, &period_s);
    if (fault || period_s < 0)
        return fault;
    if (!request->resource.data)
        return reader_wrong(reader, param, "resource", "A unique task needs a resource.");
    request->is_unique = true;
    request->unique_ms = period_s * 1000;
    return FAULT_NONE;
}

static enum fault read_within(const struct reader *reader, const struct json *param,
                              struct task_request *request)
{
    int64_t within_s;
    enum fault fault = reader_integer(reader, param, "within", 1, AGE_MOST, 0, &within_s);
    if (!fault && within_s && !request->resource.data)
        return reader_wrong(reader, param, "resource",
                            "Without a resource no other request moves the start: within needs one.");
    request->within_ms = within_s * 1000;
    return fault;
}

/* The members of one request; `more`: the other members of the param. */
static enum fault read_request(struct attempt *attempt, const struct reader *reader, const char *more,
                               bool is_trusted, struct task_request *request)
{
    const struct json *param = attempt->call->param, *own = json_member(param, "param");
    const char *members = arena_printf(attempt->call->arena, "%s%s", REQUEST_MEMBERS, more);
    enum fault fault = FAULT_FIRST(
        reader_members(reader, param, members), read_operation(attempt, reader, &request->operation),
        read_words(reader, param, request), read_start(reader, param, request, is_trusted),
        task_read_names(attempt, reader, request, is_trusted), read_unique(reader, param, request),
        read_within(reader, param, request));
    if (!fault && own && own->kind != JSON_NULL && own->kind != JSON_OBJECT)
        fault = reader_wrong(reader, param, "param", "An object is expected.");
    if (fault)
        return fault;
    request->param = own && own->kind == JSON_OBJECT ? own->text : NO_BYTES;
    return check_param(attempt, request);
}

/* Of a task that the server or an administrator has requested, too. */
static bool is_of_client(const struct call *call)
{
    return call->task ? call->task->is_of_client : !access_is_administrator(call);
}

/* Without the administrator's key, and not for a client without limits. */
static bool is_limited(const struct attempt *attempt)
{
    return attempt->call->client && !access_is_administrator(attempt->call);
}

enum fault task_read(struct attempt *attempt, const char *more, struct task_request *request_r)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    *request_r = (struct task_request){0};
    enum fault fault = read_request(attempt, &reader, more, !is_limited(attempt), request_r);
    if (fault)
        return fault;
    if (is_limited(attempt))
        request_r->requester = (int64_t)(attempt->call->client & INT64_MAX);
    request_r->is_of_client = is_of_client(attempt->call);
    return FAULT_NONE;
}

/* --- all requests of a call --- */

static enum fault task_read_element(struct attempt *attempt, const struct json *element, size_t place,
                                    struct task_request *request_r)
{
    const struct call *outer = attempt->call;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct call call = *outer;
    struct attempt inner = *attempt;
    if (element->kind != JSON_OBJECT || element->is_shallow)
        return reader_wrong_value(&reader, element, "tasks", "An object is expected.");
    call.param = element;
    call.param_at =
        arena_printf(call.arena, "%s/tasks/%zu", outer->param_at ? outer->param_at : "/param", place);
    inner.call = &call;
    return task_read(&inner, "", request_r);
}

static enum fault task_read_list(struct attempt *attempt, const struct reader *reader,
                                 struct task_batch *batch)
{
    struct call *call = attempt->call;
    const struct json *list;
    size_t place = 0;
    enum fault fault = FAULT_FIRST(
        reader_members(reader, call->param, "tasks docs"),
        reader_array(reader, call->param, "tasks", "limit_tasks", reader->settings->limit_tasks, &list));
    if (!fault && !list->count)
        fault = reader_wrong(reader, call->param, "tasks", "At least one task is expected.");
    if (fault)
        return fault;
    batch->is_list = true;
    batch->count = (size_t)list->count;
    batch->requests = ARENA_ARRAY(call->arena, struct task_request, batch->count);
    for (const struct json *element = list->first; element && !fault; element = element->next, place++)
        fault = task_read_element(attempt, element, place, &batch->requests[place]);
    return fault;
}

static enum fault read_batch(struct attempt *attempt, struct task_batch **batch_r)
{
    struct call *call = attempt->call;
    const struct reader reader = {attempt->worker_context->settings, call, attempt->reply};
    struct task_batch *batch = ARENA_NEW(call->arena, struct task_batch);
    enum fault fault;
    *batch_r = batch;
    if (json_member(call->param, "tasks")) {
        fault = task_read_list(attempt, &reader, batch);
    } else {
        batch->count = 1;
        batch->requests = ARENA_NEW(call->arena, struct task_request);
        fault = task_read(attempt, " docs", batch->requests);
    }
    batch->places = ARENA_ARRAY(call->arena, size_t, batch->count + 1);
    batch->put = put_beside_find(attempt);
    return fault ? fault : put_beside_check(attempt, batch->put);
}

/* --- the answer --- */

static void add_members(struct builder *body, const struct task *task)
{
    json_add_text(body, "\"id\":", task->id);
    builder_printf(body, ",\"startat\":%lld", (long long)task->start);
}

/* Before the commit (`is_open`) it is unknown which task will represent a resource: a stored answer omits it.
 */
static void write_tasks(struct attempt *attempt, const struct task_batch *batch, bool is_open)
{
    struct builder *body = attempt->reply->body;
    size_t count;
    const struct task *tasks = transaction_tasks(attempt->transaction, &count);
    body->size = attempt->out + batch->head;
    if (!batch->head)
        builder_add_text(body, "{");
    if (batch->is_list)
        builder_add_bytes(body, batch->head ? BYTES(",\"tasks\":[") : BYTES("\"tasks\":["));
    for (size_t i = 0; i < batch->count; i++) {
        bool is_known = !is_open || !batch->requests[i].resource.data;
        if (batch->is_list)
            builder_add_bytes(body, i ? BYTES(",{") : BYTES("{"));
        else if (is_known && batch->head)
            builder_add_text(body, ",");
        if (is_known)
            add_members(body, &tasks[batch->places[i]]);
        if (batch->is_list)
            builder_add_text(body, "}");
    }
    builder_add_bytes(body, batch->is_list ? BYTES("]}") : BYTES("}"));
}

/* --- the operation --- */

/* Of a task that requests tasks. */
static enum fault task_check(struct attempt *attempt)
{
    struct task_batch *batch;
    return read_batch(attempt, &batch);
}

/* The place of the task that the request has been merged with. */
static size_t find_merged(const struct task *tasks, size_t count, const struct task_request *request)
{
    size_t i = 0;
    while (i < count && !(tasks[i].resource.data && bytes_equal(tasks[i].resource, request->resource) &&
                          bytes_equal(tasks[i].operation, bytes_of(request->operation->name))))
        i++;
    assert(i < count);
    return i;
}

static enum fault add_tasks(struct attempt *attempt, const struct task_batch *batch)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_excess excess;
    for (size_t i = 0; i < batch->count; i++) {
        size_t before, count;
        transaction_tasks(attempt->transaction, &before);
        if (task_request_add(attempt, &batch->requests[i], &excess))
            return reader_over(&reader, NULL, excess.limit, excess.most, excess.value);
        const struct task *tasks = transaction_tasks(attempt->transaction, &count);
        batch->places[i] = count > before ? before : find_merged(tasks, count, &batch->requests[i]);
    }
    return FAULT_NONE;
}

static enum fault task_work(struct attempt *attempt)
{
    struct task_batch *batch;
    enum fault fault = read_batch(attempt, &batch);
    if (!fault && batch->put)
        fault = put_beside_work(attempt, batch->put);
    if (fault)
        return fault;
    batch->head = batch->put ? attempt->reply->body->size - attempt->out - 1 : 0;
    quota_limit_tasks(attempt);
    fault = add_tasks(attempt, batch);
    if (fault)
        return fault;
    attempt->kept = batch;
    write_tasks(attempt, batch, true);
    return FAULT_NONE;
}

/* Now it is known which task represents a resource. */
static enum fault task_afterwork(struct attempt *attempt)
{
    if (!attempt->reply->is_replayed)
        write_tasks(attempt, attempt->kept, false);
    return put_beside_is_left(attempt) ? put_beside_afterwork(attempt) : FAULT_NONE;
}

/* Each counts as if it had come alone; the first has been counted with the call. */
static enum fault task_prepare(struct attempt *attempt)
{
    const struct json *list = json_member(attempt->call->param, "tasks");
    int64_t most = attempt->worker_context->settings->limit_tasks;
    enum fault fault = FAULT_NONE;
    if (!list || list->kind != JSON_ARRAY || list->count > most)
        return FAULT_NONE; /* work refuses it */
    for (int64_t i = 1; !fault && i < list->count; i++)
        fault = quota_take(attempt->worker_context->segment, attempt->call, attempt->reply, attempt->ns,
                           QUOTA_TASKS);
    return fault;
}

static int task_quota(const struct call *call UNUSED)
{
    return QUOTA_TASKS;
}

const struct operation builtin_task = {.name = "task",
                                       .right = RIGHT_PUBLIC,
                                       .prepare = task_prepare,
                                       .work = task_work,
                                       .check = task_check,
                                       .quota = task_quota,
                                       .obeys_rules = true,
                                       .afterwork = task_afterwork};
