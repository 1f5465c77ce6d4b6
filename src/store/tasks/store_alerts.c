/* store_alerts: tasks with unreported failures, tasks parked too long ago, tasks requested by clients; task
 * declarations of operations. */
#include "store/statements.h"
#include "store/store_run.h"
#include "store/tasks/store_tasks.h"

enum fault store_tasks_unreported(struct store *store, int ns, struct arena *arena, int64_t failures,
                                  int64_t limit, struct failed_task **tasks_r, size_t *count_r)
{
    enum { ID, OPERATION, INFO, RETRY, START, CODE, REPORT };
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    pg_params_add_i32(&params, (int32_t)failures);
    pg_params_add_i32(&params, (int32_t)limit);
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_UNREPORTED, &params, &rows);
    *count_r = fault ? 0 : (size_t)pg_rows(rows);
    *tasks_r = ARENA_ARRAY(arena, struct failed_task, *count_r);
    for (int row = 0; row < (int)*count_r; row++)
        (*tasks_r)[row] = (struct failed_task){
            .id = pg_get_text(rows, row, ID),
            .operation = pg_get_text(rows, row, OPERATION),
            .info = pg_get_text(rows, row, INFO),
            .code = pg_get_text(rows, row, CODE),
            .report = pg_get_text(rows, row, REPORT),
            .failures = pg_get_i64(rows, row, RETRY),
            .start = pg_get_i64(rows, row, START),
        };
    return fault;
}

enum fault store_tasks_reported(struct store *store, int ns, struct arena *arena, struct bytes id,
                                int64_t failures)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, id);
    pg_params_add_i32(&params, (int32_t)failures);
    return store_run_change_again(store, ns, STATEMENT_TASK_REPORTED, &params, &rows);
}

enum fault store_tasks_expire(struct store *store, int ns, struct arena *arena, int64_t before, int64_t batch,
                              int64_t *count_r)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    pg_params_add_i64(&params, before);
    pg_params_add_i32(&params, (int32_t)batch);
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_EXPIRE, &params, &row);
    *count_r = fault ? 0 : pg_get_i64(row, 0, 0);
    return fault;
}

enum fault store_tasks_declare(struct store *store, int ns, struct arena *arena,
                               const struct task_declaration *operations, size_t count, int64_t param_bytes)
{
    struct pg_params params;
    struct pg_result *rows;
    struct bytes *names = ARENA_ARRAY(arena, struct bytes, count);
    int32_t *queues = ARENA_ARRAY(arena, int32_t, count), *batches = ARENA_ARRAY(arena, int32_t, count);
    int32_t *kept = ARENA_ARRAY(arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        names[i] = operations[i].operation;
        queues[i] = operations[i].queue;
        batches[i] = operations[i].batch;
        kept[i] = operations[i].kept_bytes;
    }
    pg_params_start(&params, arena);
    pg_params_add_text_array(&params, names, count);
    pg_params_add_i32_array(&params, queues, count);
    pg_params_add_i32_array(&params, batches, count);
    pg_params_add_i32(&params, (int32_t)param_bytes);
    pg_params_add_i32_array(&params, kept, count);
    return store_run_statement(store, ns, STATEMENT_TASK_OPERATIONS, &params, &rows);
}
