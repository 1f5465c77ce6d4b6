/* task_request: limits, queue, start of a new task. */
#include "operation/tasks/task_request.h"

#include "base/schedule.h"
#include "document/transaction.h"
#include "operation/registry.h"
#include "operation/tasks/task_caller.h"
#include "operation/tasks/task_wakeup.h"

static enum fault over(struct task_excess *excess, const char *limit, int64_t most, size_t value)
{
    *excess = (struct task_excess){limit, most, (int64_t)value};
    return FAULT_ALIMIT;
}

/* What stands before the names that clients choose. */
static int64_t owner_bytes(struct bytes name)
{
    const char *end = name.size && *name.data == '~' ? memchr(name.data, '/', name.size) : NULL;
    return end ? end + 1 - name.data : 0;
}

static enum fault check_name(const struct settings *settings, struct bytes name, struct task_excess *excess)
{
    if ((int64_t)name.size > settings->limit_name_bytes + owner_bytes(name))
        return over(excess, "limit_name_bytes", settings->limit_name_bytes, name.size);
    return FAULT_NONE;
}

static enum fault check_limits(const struct settings *settings, const struct attempt *attempt,
                               const struct task_request *request, struct task_excess *excess)
{
    const struct bytes words[] = {request->info, request->resource, request->domain, request->key};
    size_t count;
    transaction_tasks(attempt->transaction, &count);
    if (!request->is_of_batch && (int64_t)count >= settings->limit_tasks)
        return over(excess, "limit_tasks", settings->limit_tasks, count + 1);
    if ((int64_t)request->param.size > settings->limit_task_param_bytes)
        return over(excess, "limit_task_param_bytes", settings->limit_task_param_bytes, request->param.size);
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < COUNT_OF(words) && !fault; i++)
        fault = check_name(settings, words[i], excess);
    return fault;
}

/* Beyond it, later requests for the resource do not move the start; 0: there is no bound. */
static int64_t choose_latest(const struct task_request *request, int64_t start)
{
    int64_t longest = request->longest_ms ? stamp_add_ms(start, request->longest_ms) : STAMP_MAX;
    int64_t within = request->within_ms ? stamp_add_ms(stamp_now(), request->within_ms) : STAMP_MAX;
    int64_t latest = longest < within ? longest : within;
    return latest == STAMP_MAX || !request->resource.data ? 0 : latest > start ? latest : start;
}

enum fault task_request_add(struct attempt *attempt, const struct task_request *request,
                            struct task_excess *excess_r)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct operation *operation = request->operation;
    enum fault fault = check_limits(settings, attempt, request, excess_r);
    if (fault)
        return fault;
    int64_t start = request->start ? request->start : stamp_add_ms(stamp_now(), request->delay_ms);
    struct bytes name = bytes_of(operation->name);
    const struct task task = {
        .id = task_draw_id(attempt->call->arena),
        .operation = name,
        .param = request->param.data ? request->param : BYTES("{}"),
        .info = request->info.data ? request->info : BYTES(""),
        .resource = request->resource,
        .domain = request->domain,
        .key = request->key,
        .start = start < TASK_PARKED ? start : TASK_PARKED - 1,
        .latest = choose_latest(request, start),
        .is_strict = request->is_strict,
        .unique_until = request->is_unique ? stamp_add_ms(stamp_now(), request->unique_ms) : 0,
        .requester = request->requester,
        .account = request->is_of_server ? NO_BYTES : attempt->call->caller.account,
        .credential = request->is_of_server ? NO_BYTES : task_caller_credential(attempt->call),
        .is_of_client = request->is_of_client,
        .trace = attempt->call->trace,
        .queue = operation->task.is_external
                     ? operation->task.queue
                     : schedule_queue(settings->task_queues, name, operation->task.queue),
        .priority = request->priority,
        .batch = request->domain.data || !operation->task.batch ? 1 : operation->task.batch,
    };
    transaction_schedule(attempt->transaction, &task);
    return FAULT_NONE;
}

enum fault task_request_cancel(struct attempt *attempt, const struct operation *operation,
                               struct bytes resource, struct task_excess *excess_r)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct task_cancel cancel = {bytes_of(operation->name), resource};
    size_t count = transaction_count_cancels(attempt->transaction);
    if ((int64_t)count >= settings->limit_tasks)
        return over(excess_r, "limit_tasks", settings->limit_tasks, count + 1);
    enum fault fault = check_name(settings, resource, excess_r);
    if (!fault)
        transaction_cancel_task(attempt->transaction, &cancel);
    return fault;
}

enum fault task_request_commit(struct attempt *attempt,
                               enum fault (*add)(struct attempt *attempt, bool *is_any_r))
{
    const struct call *call = attempt->call;
    bool is_any = false;
    int64_t version;
    enum fault fault = transaction_begin(attempt->worker_context->documents, attempt->ns, call->arena, false,
                                         &attempt->transaction);
    if (fault)
        return fault;
    fault = add(attempt, &is_any);
    if (!fault && is_any)
        fault = transaction_validate(attempt->transaction, &version);
    if (!fault && is_any)
        task_wakeup_commit(attempt->worker_context, attempt->ns, call->ns, attempt->transaction);
    transaction_end(attempt->transaction);
    return fault;
}

static enum fault add_own(struct attempt *attempt, bool *is_any_r)
{
    const struct task_request request = {
        .operation = attempt->operation,
        .resource = bytes_of(attempt->operation->name),
        .domain = bytes_of(attempt->operation->name),
        .longest_ms = 1, /* a task that waits keeps its start, else scans would postpone it */
        .priority = TASK_PRIORITY_MOST,
        .is_of_server = true,
    };
    struct task_excess excess;
    *is_any_r = true;
    return task_request_add(attempt, &request, &excess);
}

enum fault task_request_own(struct worker_context *worker_context, struct call *call, int ns,
                            struct bytes operation)
{
    struct attempt attempt = {
        .operation = registry_find(operation), .worker_context = worker_context, .call = call, .ns = ns};
    return attempt.operation ? task_request_commit(&attempt, add_own) : FAULT_NONE;
}
