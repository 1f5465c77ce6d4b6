/* tasks_queues: pauses and limits of queues and operations, and the tasks of all namespaces. */
#include "operation/administration/tasks.h"

#include "base/clock.h"
#include "model/quotas.h"
#include "model/task/worker_queues.h"
#include "operation/access/access.h"
#include "operation/access/configurations.h"
#include "operation/administration/of_z.h"
#include "store/collections/store_list.h"
#include "store/tasks/store_tasks.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/reply.h"

/* --- tasks inquiry --- */

enum fault tasks_inquiry_ask(const struct tasks_inquiry *inquiry, enum statement statement,
                             const struct pg_params *params, struct pg_result **rows_r)
{
    return store_tasks_administer(documents_store(inquiry->attempt->worker_context->documents),
                                  inquiry->attempt->ns, statement, params, rows_r);
}

enum fault tasks_inquiry_change(const struct tasks_inquiry *inquiry, enum statement statement,
                                const struct pg_params *params, struct pg_result **rows_r)
{
    struct attempt *attempt = inquiry->attempt;
    enum fault fault = store_tasks_change(documents_store(attempt->worker_context->documents), attempt->ns,
                                          statement, params, rows_r);
    attempt->has_acted |= !fault;
    return fault;
}

enum fault tasks_inquiry_count(const struct tasks_inquiry *inquiry, bool is_dry, enum statement statement,
                               const struct pg_params *params, struct pg_result **rows_r)
{
    const struct attempt *attempt = inquiry->attempt;
    return is_dry ? store_tasks_count(documents_store(attempt->worker_context->documents), attempt->ns,
                                      statement, params, rows_r)
                  : tasks_inquiry_change(inquiry, statement, params, rows_r);
}

void tasks_inquiry_write_rows(const struct tasks_inquiry *inquiry, const struct pg_result *rows, int count,
                              tasks_inquiry_writer *write)
{
    builder_add_text(inquiry->out, "[");
    for (int row = 0; row < count; row++) {
        if (row)
            builder_add_text(inquiry->out, ",");
        write(inquiry->out, inquiry->arena, rows, row);
    }
    builder_add_text(inquiry->out, "]");
}

static enum fault read_pause(const struct tasks_inquiry *inquiry, bool is_paused, struct task_pause *pause)
{
    const struct reader *reader = &inquiry->reader;
    const char *member = is_paused ? "pause" : "resume";
    int64_t queue;
    if (inquiry->wish->kind != JSON_OBJECT)
        return reader_wrong_value(reader, inquiry->wish, member, "An object is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(reader, inquiry->wish, is_paused ? "qn op reason" : "qn op"),
                    reader_integer(reader, inquiry->wish, "qn", 0, WORKER_QUEUES_END - 1, -1, &queue),
                    reader_text(reader, inquiry->wish, "op", &pause->operation),
                    reader_text(reader, inquiry->wish, "reason", &pause->reason));
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
    enum fault fault =
        FAULT_FIRST(reader_members(reader, inquiry->wish, "qn op key running rate"),
                    reader_integer(reader, inquiry->wish, "qn", 0, WORKER_QUEUES_END - 1, -1, &queue),
                    reader_text(reader, inquiry->wish, "op", &limit->operation),
                    reader_boolean(reader, inquiry->wish, "key", &limit->is_by_key),
                    reader_integer(reader, inquiry->wish, "running", 1, TASK_LIMIT_MOST, 0, &limit->most),
                    reader_text(reader, inquiry->wish, "rate", &text));
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

/* --- tasks everywhere --- */

enum { NAMESPACES_OF_ONE_CALL = 32 };

static enum fault everywhere_ask(const struct tasks_inquiry *inquiry, struct bytes code,
                                 const struct task_filter *filter, struct pg_result **rows_r)
{
    struct worker_context *context = inquiry->attempt->worker_context;
    const struct configuration *own, *z;
    enum fault fault = configurations_find_of(context, inquiry->attempt->call, code, &own, &z);
    if (fault)
        return fault;
    struct ns_conf conf = own->conf;
    if (!conf.database.size || !access_is_namespace(context->settings, &conf, code, conf.database))
        return FAULT_NNAMESPACE;
    access_add_state_of_z(&conf, &z->conf);
    fault = access_refuse_state(context->settings, &conf, conf.database, true);
    int ns = fault ? -1 : documents_ns(context->documents, conf.database);
    if (fault || ns < 0)
        return fault ? fault : FAULT_BINTERNAL;
    struct pg_params params;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_filter(&params, filter);
    return store_tasks_administer(documents_store(context->documents), ns, STATEMENT_TASK_LIST, &params,
                                  rows_r);
}

static void add_code(struct builder *list, struct bytes code, const char *before)
{
    builder_printf(list, "%s%s", list->size ? "," : "", before);
    json_add_string(list, code);
}

static void add_tasks(const struct tasks_inquiry *inquiry, struct bytes code, const struct pg_result *rows,
                      int count, struct builder *tasks)
{
    for (int row = 0; row < count; row++) {
        add_code(tasks, code, "{\"ns\":");
        builder_add_text(tasks, ",\"task\":");
        task_rows_write_task(tasks, inquiry->arena, rows, row);
        builder_add_text(tasks, "}");
    }
}

enum fault tasks_everywhere(const struct tasks_inquiry *inquiry, const struct task_filter *filter)
{
    struct call *call = inquiry->attempt->call;
    struct list_query query = {
        .class = BYTES("Namespace"), .limit = NAMESPACES_OF_ONE_CALL, .minute = clock_present_minute()};
    struct builder tasks = {0}, more = {0}, faults = {0};
    struct header *headers;
    size_t count = 0, i = 0;
    struct bytes cursor;
    enum fault fault =
        of_z_check_place(&inquiry->reader, "Tasks of all namespaces: call it in the namespace z.");
    if (!fault && json_member(inquiry->wish, "cursor"))
        fault = of_z_read_code(&inquiry->reader, inquiry->wish, "cursor", &query.cursor);
    if (!fault)
        fault = store_list(documents_store(inquiry->attempt->worker_context->documents), inquiry->attempt->ns,
                           inquiry->arena, &query, &headers, &count, &cursor);
    if (fault)
        return fault;
    int64_t end_ms = clock_monotonic_ms() + (call->deadline_ms - clock_monotonic_ms()) / 2;
    for (; i < count && (!i || clock_monotonic_ms() < end_ms); i++) {
        struct pg_result *rows;
        struct bytes code = headers[i].id;
        enum fault refusal = everywhere_ask(inquiry, code, filter, &rows);
        if (refusal) {
            add_code(&faults, code, "{\"ns\":");
            builder_printf(&faults, ",\"code\":\"%s\"}", fault_code(refusal));
            continue;
        }
        bool has_more = pg_rows(rows) == filter->limit;
        add_tasks(inquiry, code, rows, pg_rows(rows) - has_more, &tasks);
        if (has_more)
            add_code(&more, code, "");
    }
    builder_printf(inquiry->out, "{\"tasks\":[%.*s],\"more\":[%.*s],\"faults\":[%.*s]", (int)tasks.size,
                   tasks.size ? tasks.data : "", (int)more.size, more.size ? more.data : "", (int)faults.size,
                   faults.size ? faults.data : "");
    if (i < count)
        cursor = headers[i - 1].id;
    if (cursor.data)
        add_code(inquiry->out, cursor, "\"cursor\":");
    builder_add_text(inquiry->out, "}");
    builder_free(&tasks);
    builder_free(&more);
    builder_free(&faults);
    return FAULT_NONE;
}
