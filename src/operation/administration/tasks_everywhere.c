/* tasks_everywhere: one namespace after the other, each by its own session. */
#include "operation/administration/tasks_everywhere.h"

#include "base/clock.h"
#include "store/collections/store_list.h"
#include "store/tasks/store_tasks.h"
#include "operation/access/access.h"
#include "operation/access/configurations.h"
#include "operation/administration/of_z.h"

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
