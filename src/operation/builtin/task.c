/* task: requests a task (tasks.md).
 * param {"op","param","delay":seconds|"start":stamp,"info","priority","resource","domain","order"} → out
 * {"id","startat"}: of the task that waits for the resource already, when there is one.  The caller must be
 * allowed to run the operation itself; of modules only operations that declare it, without the
 * administrator's key. */
#include "operation/builtin/builtin.h"
#include "operation/quota.h"

#include <inttypes.h>

#include "store/store_tasks.h"
#include "operation/access.h"
#include "operation/reader.h"
#include "operation/registry.h"
#include "operation/tasks/task_request.h"
#include "operation/reply.h"
#include "document/transaction.h"

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
    *operation_r = registry_find(name);
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
    } words[] = {{"info", &request->info}, {"resource", &request->resource}, {"domain", &request->domain}};
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

static enum fault read_names(struct attempt *attempt, const struct reader *reader,
                             struct task_request *request, bool is_trusted)
{
    struct call *call = attempt->call;
    struct bytes *const names[] = {&request->resource, &request->domain};
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
    enum fault fault = reader_integer(reader, param, "delay", 0, AGE_MOST, 0, &delay_s);
    if (!fault)
        fault = reader_integer(reader, param, "start", STAMP_MIN, TASK_PARKED - 1, 0, &request->start);
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

/* Before the commit it is unknown which task will represent a resource: a stored answer omits it. */
static void write_task(struct attempt *attempt, bool is_open)
{
    struct builder *body = attempt->reply->body;
    size_t count;
    const struct task *task = transaction_tasks(attempt->transaction, &count);
    assert(count == 1);
    body->size = attempt->out;
    builder_add_text(body, "{");
    if (!is_open) {
        builder_add_text(body, "\"id\":");
        json_add_string(body, task->id);
        builder_printf(body, ",\"startat\":%lld", (long long)task->start);
    }
    builder_add_text(body, "}");
}

static enum fault read_request(struct attempt *attempt, const struct reader *reader, bool is_trusted,
                               struct task_request *request)
{
    const struct json *param = attempt->call->param, *own = json_member(param, "param");
    enum fault fault =
        reader_members(reader, param, "op param delay start info priority resource domain order");
    if (!fault)
        fault = read_operation(attempt, reader, &request->operation);
    if (!fault)
        fault = read_words(reader, param, request);
    if (!fault)
        fault = read_start(reader, param, request, is_trusted);
    if (!fault)
        fault = read_names(attempt, reader, request, is_trusted);
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

/* Of a task that requests a task. */
static enum fault task_check(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_request request = {0};
    return read_request(attempt, &reader, !is_limited(attempt), &request);
}

static enum fault task_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct task_request request = {0};
    struct task_excess excess;
    enum fault fault = read_request(attempt, &reader, !is_limited(attempt), &request);
    if (fault)
        return fault;
    if (is_limited(attempt))
        request.requester = (int64_t)(attempt->call->client & INT64_MAX);
    request.is_of_client = is_of_client(attempt->call);
    quota_limit_tasks(attempt);
    fault = task_request_add(attempt, &request, &excess);
    if (fault)
        return reader_over(&reader, NULL, excess.limit, excess.most, excess.value);
    write_task(attempt, request.resource.data != NULL);
    return FAULT_NONE;
}

/* Now it is known which task represents the resource. */
static enum fault task_afterwork(struct attempt *attempt)
{
    if (!attempt->reply->is_replayed)
        write_task(attempt, false);
    return FAULT_NONE;
}

static int quota(const struct call *call UNUSED)
{
    return QUOTA_TASKS;
}

const struct operation builtin_task = {.name = "task",
                                       .right = RIGHT_PUBLIC,
                                       .work = task_work,
                                       .check = task_check,
                                       .quota = quota,
                                       .obeys_rules = true,
                                       .afterwork = task_afterwork};
