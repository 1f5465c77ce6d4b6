/* task: asks for a task (doc/tasks.md).
 * param {"op","param","delay":seconds|"start":stamp,"info","priority","resource","domain"} → out
 * {"id","startat"}: of the task that waits for the resource already, when there is one.  Whoever asks must be
 * allowed to run the operation itself; of modules only operations that say so, without the administrator's
 * key. */
#include "operation/builtin/builtin.h"

#include "operation/access.h"
#include "operation/reader.h"
#include "operation/task_ask.h"

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
    if (!*operation_r)
        return access_refuse_unknown(call, attempt->reply, name);
    fault = access_check(call, attempt->reply, *operation_r);
    if (fault || (*operation_r)->task.may_clients_schedule || access_is_administrator(call))
        return fault;
    return reply_fault(call, attempt->reply, FAULT_SCLOSED,
                       "Without the administrator's key no task may be made of this operation.",
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

static enum fault read_start(const struct reader *reader, const struct json *param,
                             struct task_request *request)
{
    int64_t delay_s = 0, priority;
    enum fault fault = reader_integer(reader, param, "delay", 0, AGE_MOST, 0, &delay_s);
    if (!fault)
        fault = reader_integer(reader, param, "start", STAMP_MIN, TASK_PARKED - 1, 0, &request->start);
    if (!fault && request->start && !stamp_is_valid(request->start))
        fault = reader_wrong(reader, param, "start", "A stamp is expected: yymmddhhmmssmmm, UTC.");
    if (!fault && request->start && delay_s)
        fault = reader_wrong(reader, param, "delay", "Either start or delay is expected.");
    if (!fault)
        fault = reader_integer(reader, param, "priority", 0, TASK_PRIORITY_MOST, TASK_PRIORITY, &priority);
    if (fault)
        return fault;
    request->delay_ms = delay_s * 1000;
    request->priority = (int)priority;
    return FAULT_NONE;
}

/* Before the commit it is not known which task will stand for a resource: an answer that is kept says
 * nothing. */
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

static enum fault task_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->workshop->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param, *own = json_member(param, "param");
    struct task_request request = {0};
    struct task_excess excess;
    enum fault fault = reader_members(&reader, param, "op param delay start info priority resource domain");
    if (!fault)
        fault = read_operation(attempt, &reader, &request.operation);
    if (!fault)
        fault = read_words(&reader, param, &request);
    if (!fault)
        fault = read_start(&reader, param, &request);
    if (!fault && own && own->kind != JSON_NULL && own->kind != JSON_OBJECT)
        fault = reader_wrong(&reader, param, "param", "An object is expected.");
    if (fault)
        return fault;
    request.param = own && own->kind == JSON_OBJECT ? own->text : NO_BYTES;
    fault = task_ask(attempt, &request, &excess);
    if (fault)
        return reader_over(&reader, NULL, excess.limit, excess.most, excess.value);
    write_task(attempt, request.resource.data != NULL);
    return FAULT_NONE;
}

/* Now it is known which task stands for the resource. */
static enum fault task_afterwork(struct attempt *attempt)
{
    if (!attempt->reply->is_replayed)
        write_task(attempt, false);
    return FAULT_NONE;
}

const struct operation builtin_task = {
    .name = "task", .right = RIGHT_PUBLIC, .work = task_work, .afterwork = task_afterwork};
