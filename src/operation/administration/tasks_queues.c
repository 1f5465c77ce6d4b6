/* tasks_queues: pauses, resumes and limits queues and operations. */
#include "operation/administration/tasks_queues.h"

#include "model/quotas.h"
#include "model/task/worker_queues.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/reply.h"

static enum fault read_pause(const struct tasks_inquiry *inquiry, bool is_paused, struct task_pause *pause)
{
    const struct reader *reader = &inquiry->reader;
    const char *member = is_paused ? "pause" : "resume";
    int64_t queue;
    if (inquiry->wish->kind != JSON_OBJECT)
        return reader_wrong_value(reader, inquiry->wish, member, "An object is expected.");
    enum fault fault = reader_members(reader, inquiry->wish, is_paused ? "qn op reason" : "qn op");
    if (!fault)
        fault = reader_integer(reader, inquiry->wish, "qn", 0, WORKER_QUEUES_END - 1, -1, &queue);
    if (!fault)
        fault = reader_text(reader, inquiry->wish, "op", &pause->operation);
    if (!fault)
        fault = reader_text(reader, inquiry->wish, "reason", &pause->reason);
    if (fault)
        return fault;
    if ((queue >= 0) == (pause->operation.data != NULL))
        return reader_wrong_value(reader, inquiry->wish, member, "Either qn or op is expected.");
    if (pause->operation.data && !worker_queues_is_operation(pause->operation))
        return reader_wrong(reader, inquiry->wish, "op", "The name of an operation is expected.");
    pause->queue = (int32_t)queue;
    pause->is_paused = is_paused;
    return pause->reason.data ? reader_check_length(reader, inquiry->wish, "reason", pause->reason)
                              : FAULT_NONE;
}

static enum fault pause_or_resume(const struct tasks_inquiry *inquiry, bool is_paused)
{
    struct task_pause pause = {0};
    struct pg_params params;
    struct pg_result *rows;
    enum fault fault = read_pause(inquiry, is_paused, &pause);
    if (fault)
        return fault;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_pause(&params, &pause);
    fault = tasks_inquiry_change(inquiry, STATEMENT_TASK_PAUSE, &params, &rows);
    if (fault)
        return fault;
    if (!is_paused)
        task_wakeup_ns(inquiry->reader.settings, inquiry->attempt->call->ns, stamp_now());
    builder_printf(inquiry->out, "{\"result\":\"%s\"}",
                   !pg_get_bool(rows, 0, 0) ? "same"
                   : is_paused              ? "paused"
                                            : "resumed");
    return FAULT_NONE;
}

enum fault tasks_queues_pause(const struct tasks_inquiry *inquiry)
{
    return pause_or_resume(inquiry, true);
}

enum fault tasks_queues_resume(const struct tasks_inquiry *inquiry)
{
    return pause_or_resume(inquiry, false);
}

static enum fault read_limit(const struct tasks_inquiry *inquiry, struct task_limit *limit)
{
    const struct reader *reader = &inquiry->reader;
    struct quota_rate rate = {0};
    struct bytes text;
    int64_t queue;
    if (inquiry->wish->kind != JSON_OBJECT)
        return reader_wrong_value(reader, inquiry->wish, "limit", "An object is expected.");
    enum fault fault = reader_members(reader, inquiry->wish, "qn op key running rate");
    if (!fault)
        fault = reader_integer(reader, inquiry->wish, "qn", 0, WORKER_QUEUES_END - 1, -1, &queue);
    if (!fault)
        fault = reader_text(reader, inquiry->wish, "op", &limit->operation);
    if (!fault)
        fault = reader_boolean(reader, inquiry->wish, "key", &limit->is_by_key);
    if (!fault)
        fault = reader_integer(reader, inquiry->wish, "running", 1, TASK_LIMIT_MOST, 0, &limit->most);
    if (!fault)
        fault = reader_text(reader, inquiry->wish, "rate", &text);
    if (fault)
        return fault;
    if (text.data && (!quotas_read_rate(inquiry->arena, text, &rate) || rate.count > TASK_LIMIT_RATE_MOST ||
                      rate.burst > TASK_LIMIT_RATE_MOST))
        return reader_wrong(reader, inquiry->wish, "rate", "A rate is expected, as \"60/min, burst 20\".");
    if ((queue >= 0) == (limit->operation.data != NULL) || (queue >= 0 && limit->is_by_key))
        return reader_wrong_value(reader, inquiry->wish, "limit",
                                  "Either qn or op is expected; key with op.");
    if (limit->operation.data && !worker_queues_is_operation(limit->operation))
        return reader_wrong(reader, inquiry->wish, "op", "The name of an operation is expected.");
    limit->queue = (int32_t)queue;
    limit->count = rate.count;
    limit->period_ms = rate.period_ms;
    limit->burst = rate.burst;
    return FAULT_NONE;
}

enum fault tasks_queues_limit(const struct tasks_inquiry *inquiry)
{
    struct task_limit limit = {0};
    struct pg_params params;
    struct pg_result *rows;
    enum fault fault = read_limit(inquiry, &limit);
    if (fault)
        return fault;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_limit(&params, &limit);
    fault = tasks_inquiry_change(inquiry, STATEMENT_TASK_LIMIT, &params, &rows);
    if (fault)
        return fault;
    task_wakeup_ns(inquiry->reader.settings, inquiry->attempt->call->ns, stamp_now());
    builder_printf(inquiry->out, "{\"result\":\"%s\"}",
                   limit.most || limit.count ? "limited"
                   : pg_get_bool(rows, 0, 0) ? "unlimited"
                                             : "same");
    return FAULT_NONE;
}
