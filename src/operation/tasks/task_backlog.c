/* task_backlog: one statement, into shared memory. */
#include "operation/tasks/task_backlog.h"

#include "base/clock.h"
#include "base/log.h"
#include "segment/counts/backlog.h"
#include "store/tasks/store_tasks.h"
#include "store/tasks/task_rows.h"

enum { ROWS_MOST = 10000, FRESH_MS = 1000 };

void task_backlog_look(struct worker_context *worker_context, struct call *call, int ns)
{
    struct backlog *backlog = backlog_of(worker_context->segment, ns);
    struct backlog_numbers numbers[BACKLOG_QUEUES] = {0};
    int64_t now_ms = clock_monotonic_ms(), age_ms = backlog_age_ms(backlog, now_ms);
    struct pg_params params;
    struct pg_result *rows;
    if ((age_ms >= 0 && age_ms < FRESH_MS) || call->ns.size > BACKLOG_CODE_BYTES)
        return;
    pg_params_start(&params, call->arena);
    pg_params_add_i32(&params, ROWS_MOST);
    enum fault fault = store_tasks_administer(documents_store(worker_context->documents), ns,
                                              STATEMENT_TASK_BACKLOG, &params, &rows);
    if (fault) {
        log_debug("tasks are not counted code=%s", fault_code(fault));
        return;
    }
    for (int row = 0; row < pg_rows(rows); row++) {
        int64_t queue = pg_get_i64(rows, row, BACKLOG_QUEUE);
        if (queue < 0 || queue >= BACKLOG_QUEUES)
            continue; /* the table was edited by hand */
        numbers[queue] = (struct backlog_numbers){
            .due = pg_get_i64(rows, row, BACKLOG_DUE),
            .later = pg_get_i64(rows, row, BACKLOG_LATER),
            .running = pg_get_i64(rows, row, BACKLOG_RUNNING),
            .parked = pg_get_i64(rows, row, BACKLOG_PARKED),
            .failing = pg_get_i64(rows, row, BACKLOG_FAILING),
            .oldest = pg_get_i64(rows, row, BACKLOG_OLDEST),
        };
    }
    backlog_write(backlog, call->ns, numbers, now_ms);
}
