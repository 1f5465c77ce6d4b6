/* module_task: tasks for modules (stampd.h): requesting them, running as one. */
#include "operation/module/module_convert.h"
#include "operation/module/module_try.h"
#include "base/schedule.h"
#include "model/task/cron.h"
#include "operation/tasks/task_external.h"
#include "operation/tasks/task_request.h"
#include "document/transaction.h"

/* The upper limit, a century in seconds. */
static const int64_t delay_most_s = INT64_C(3155760000);

/* --- requesting --- */

static bool module_task_is_text(const char *text)
{
    return !text || bytes_is_utf8(bytes_of(text));
}

/* The operation of which tasks exist; NULL: it is unknown, or the server's own. */
static const struct operation *find_operation(const struct stampd_call *call, const char *name)
{
    const struct operation *operation = task_external_find(module_try_attempt(call)->call, bytes_of(name));
    return operation && operation->task.is_internal ? NULL : operation;
}

static const char *wrong_unique(const struct stampd_task *task)
{
    int64_t period_ms;
    if (!task->unique)
        return NULL;
    if (!task->resource)
        return "Invalid task request: it is unique, but has no resource:";
    return schedule_delay_ms(bytes_of(task->unique), &period_ms)
               ? NULL
               : "Invalid task request: unique is no period:";
}

/* An invalid request is a mistake of the application; NULL: it is well formed. */
static const char *wrong_with(const struct stampd_task *task, const struct operation *operation)
{
    if (!operation)
        return "Invalid task request: unknown operation:";
    if (task->start && (task->delay_s || !stamp_is_valid(task->start)))
        return "Invalid task request: the start is no stamp:";
    if (task->delay_s < 0 || task->delay_s > delay_most_s)
        return "Invalid task request: the delay is out of range:";
    if (task->priority < STAMPD_FIRST || task->priority > TASK_PRIORITY_MOST)
        return "Invalid task request: the priority is out of range:";
    if (!module_task_is_text(task->info) || !module_task_is_text(task->resource) ||
        !module_task_is_text(task->domain))
        return "Invalid task request: a text is not UTF-8:";
    if (task->resource && *task->resource == '~')
        return "Invalid task request: the resource begins with ~, which is reserved for clients:";
    if (task->domain && *task->domain == '~')
        return "Invalid task request: the domain begins with ~, which is reserved for clients:";
    if (task->order && (strcmp(task->order, "strict") != 0 || !task->domain))
        return "Invalid task request: the order is unknown, or there is no domain:";
    if (task->longest_wait_s < 0 || task->longest_wait_s > delay_most_s)
        return "Invalid task request: the longest wait is out of range:";
    return wrong_unique(task);
}

static int priority_of(const struct stampd_task *task)
{
    if (task->priority == STAMPD_FIRST)
        return 0;
    return task->priority ? task->priority : TASK_PRIORITY;
}

static bool is_param(struct stampd_call *call, struct bytes param)
{
    const char *what;
    if (!param.data)
        return true;
    struct json *json = module_try_read_json(call, param, &what);
    return json && json->kind == JSON_OBJECT;
}

/* False: the call has failed. */
static bool may_request(struct stampd_call *call, const char *wrong, const char *name)
{
    if (wrong || module_try_is_afterwork(call))
        module_try_fail(call, FAULT_BMODULE,
                        wrong ? wrong : "Invalid task request: it comes in afterwork:", name);
    else if (module_try_operation(call)->is_read_only)
        module_try_fail(call, FAULT_BREADONLY, NULL, NULL);
    return !module_try_fault(call);
}

void stampd_schedule(struct stampd_call *call, const struct stampd_task *task)
{
    struct task_excess excess;
    if (module_try_fault(call))
        return;
    const char *name = task->operation ? task->operation : "";
    const struct operation *operation = find_operation(call, name);
    int64_t unique_ms = 0, unique_most_s = module_try_settings(call)->task_history_s;
    if (!may_request(call, wrong_with(task, operation), name))
        return;
    if (task->unique && schedule_delay_ms(bytes_of(task->unique), &unique_ms) &&
        unique_ms > unique_most_s * 1000)
        return module_try_fail_limit(call, "task_history_s", unique_most_s, unique_ms / 1000);
    if (!is_param(call, bytes_from(task->param)))
        return module_try_fail(call, FAULT_BMODULE,
                               "Invalid task request: param is not a JSON object:", name);
    const struct task_request request = {.operation = operation,
                                         .param = bytes_from(task->param),
                                         .info = bytes_of(task->info),
                                         .resource = bytes_of(task->resource),
                                         .domain = bytes_of(task->domain),
                                         .key = bytes_of(task->key),
                                         .start = task->start,
                                         .delay_ms = task->delay_s * 1000,
                                         .longest_ms = task->longest_wait_s * 1000,
                                         .is_unique = task->unique != NULL,
                                         .unique_ms = unique_ms,
                                         .is_strict = task->order != NULL,
                                         .priority = priority_of(task)};
    if (task_request_add(module_try_attempt(call), &request, &excess))
        module_try_fail_limit(call, excess.limit, excess.most, excess.value);
}

static const char *wrong_cancel(const struct operation *operation, const char *resource)
{
    if (!operation)
        return "Invalid cancellation of tasks: unknown operation:";
    if (!resource)
        return "Invalid cancellation of tasks: there is no resource:";
    if (!module_task_is_text(resource))
        return "Invalid cancellation of tasks: the resource is not UTF-8:";
    if (*resource == '~')
        return "Invalid cancellation of tasks: the resource begins with ~, which is reserved for clients:";
    return NULL;
}

void stampd_cancel_task(struct stampd_call *call, const char *operation, const char *resource)
{
    struct task_excess excess;
    if (module_try_fault(call))
        return;
    const char *name = operation ? operation : "";
    const struct operation *found = find_operation(call, name);
    if (!may_request(call, wrong_cancel(found, resource), name))
        return;
    if (task_request_cancel(module_try_attempt(call), found, bytes_of(resource), &excess))
        module_try_fail_limit(call, excess.limit, excess.most, excess.value);
}

/* --- running as one --- */

static const struct task *task_of(const struct stampd_call *call)
{
    return module_try_attempt(call)->call->task;
}

bool stampd_is_task(const struct stampd_call *call)
{
    return task_of(call) != NULL;
}

static const char *module_task_text_of(const struct stampd_call *call, struct bytes text)
{
    return text.data ? arena_copy(module_try_arena(call), text.data, text.size) : NULL;
}

const char *stampd_task_id(const struct stampd_call *call)
{
    return task_of(call) ? module_task_text_of(call, task_of(call)->id) : NULL;
}

const char *stampd_task_info(const struct stampd_call *call)
{
    return task_of(call) ? module_task_text_of(call, task_of(call)->info) : NULL;
}

int64_t stampd_task_start(const struct stampd_call *call)
{
    return task_of(call) ? task_of(call)->claim : 0;
}

unsigned stampd_task_retry(const struct stampd_call *call)
{
    return task_of(call) ? (unsigned)task_of(call)->attempt : 0;
}

unsigned stampd_task_step(const struct stampd_call *call)
{
    return task_of(call) ? (unsigned)task_of(call)->step : 0;
}

const struct stampd_json *stampd_checkpoint(struct stampd_call *call)
{
    const char *what;
    if (module_try_fault(call) || !task_of(call) || !task_of(call)->checkpoint.data)
        return NULL;
    struct json *json = module_try_read_json(call, task_of(call)->checkpoint, &what);
    if (!json)
        module_try_fail(call, FAULT_BCONTENT, NULL, "checkpoint");
    return json ? value_of(json) : NULL;
}

void stampd_set_checkpoint(struct stampd_call *call, struct stampd_writer *writer)
{
    struct bytes text = bytes_from(stampd_written(writer));
    int64_t most = module_try_settings(call)->limit_task_param_bytes;
    if (module_try_fault(call))
        return;
    if (!task_of(call))
        return module_try_fail(call, FAULT_BMODULE, "A checkpoint was set without a task.", NULL);
    if ((int64_t)text.size > most)
        return module_try_fail_limit(call, "limit_task_param_bytes", most, (int64_t)text.size);
    transaction_set_checkpoint(module_try_attempt(call)->transaction, text);
}

void stampd_set_progress(struct stampd_call *call, const char *text)
{
    struct bytes progress = bytes_of(text);
    if (module_try_fault(call) || !text || !task_of(call))
        return;
    if (!bytes_is_utf8(progress))
        return module_try_fail(call, FAULT_BMODULE, "The progress of a task is not UTF-8.", NULL);
    if (progress.size > TASK_PROGRESS_MOST)
        progress.size = TASK_PROGRESS_MOST;
    while (!bytes_is_utf8(progress))
        progress.size--;
    module_try_attempt(call)->fence->progress =
        (struct bytes){arena_copy(module_try_arena(call), progress.data, progress.size), progress.size};
}

void stampd_never_retry(struct stampd_call *call)
{
    module_try_attempt(call)->is_final = true;
}

/* --- periods --- */

int64_t stampd_cron_next(const char *period, int64_t after)
{
    struct cron cron;
    if (!period || !cron_parse(bytes_of(period), &cron))
        return 0;
    return stamp_from_epoch_ms(cron_next_ms(&cron, stamp_to_epoch_ms(after)));
}
