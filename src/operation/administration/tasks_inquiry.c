/* tasks_inquiry: statements of administrators on tasks, and their rows in JSON. */
#include "operation/administration/tasks_inquiry.h"

#include "store/tasks/store_tasks.h"

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
