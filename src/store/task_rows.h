/* task_rows: administrators' queries of tasks: parameters of their statements, and their rows as JSON.
 * Shared by the operation `tasks` and `stampctl task`. */
#ifndef STAMPD_STORE_TASK_ROWS_H
#define STAMPD_STORE_TASK_ROWS_H

#include "model/task.h"
#include "edge/pg.h"

/* Which tasks, or which attempts. */
struct task_filter {
    struct bytes id;              /* attempts at this task; NO_BYTES: at all tasks */
    struct bytes operation, info; /* name; prefix; NO_BYTES: all */
    int64_t retry;                /* tasks with at least that many failures */
    bool only_failures;           /* attempts that failed or were lost */
    int64_t since, until;         /* starts of tasks, ends of attempts */
    int64_t limit;
    int64_t after_start,
        after_number; /* of the last row of the page before; attempts: the number only, 0: none */
};
#define TASK_FILTER_ALL                                                                                      \
    {                                                                                                        \
        .until = STAMP_MAX, .limit = 100, .after_start = -1                                                  \
    }

/* Columns of TASK_LIST and TASK_SHOW, of TASK_ATTEMPTS, of TASK_BACKLOG. */
enum task_column {
    TASK_ID,
    TASK_OPERATION,
    TASK_STATE,
    TASK_QUEUE,
    TASK_PRIORITY_LEVEL,
    TASK_START,
    TASK_RETRY,
    TASK_CLAIM,
    TASK_OWNER,
    TASK_BATCH,
    TASK_INFO,
    TASK_RESOURCE,
    TASK_DOMAIN,
    TASK_STEP,
    TASK_CODE,
    TASK_REPORT,
    TASK_CREATED,
    TASK_ACCOUNT,
    TASK_CREDENTIAL,
    TASK_NUMBER, /* order of creation: with the start, the position in the list */
    TASK_PARAM,
    TASK_CHECKPOINT
};
enum attempt_column {
    ATTEMPT_ID,
    ATTEMPT_OPERATION,
    ATTEMPT_QUEUE,
    ATTEMPT_RETRY,
    ATTEMPT_STEP,
    ATTEMPT_START,
    ATTEMPT_CLAIM,
    ATTEMPT_STOP,
    ATTEMPT_INFO,
    ATTEMPT_CODE,
    ATTEMPT_REPORT,
    ATTEMPT_NUMBER /* order of the ends */
};
enum backlog_column {
    BACKLOG_QUEUE,
    BACKLOG_DUE,
    BACKLOG_LATER,
    BACKLOG_RUNNING,
    BACKLOG_PARKED,
    BACKLOG_FAILING,
    BACKLOG_OLDEST
};
/* Columns of TASK_MOVE, TASK_HOLD, TASK_DROP: the result, null if nothing was done; whether there was such
 * a task. */
enum task_deed_column { DEED_RESULT, DEED_IS_THERE };

/* The parameters of TASK_LIST; of TASK_ATTEMPTS. */
void task_rows_add_filter(struct pg_params *params, const struct task_filter *filter);
void task_rows_add_attempt_filter(struct pg_params *params, const struct task_filter *filter);

/* Appends a row as a JSON object, without null or empty values.  A task's `param` that is not JSON becomes
 * a string. */
void task_rows_write_task(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);
/* The same as lines `name: value`, without `param` and `checkpoint`. */
void task_rows_write_task_lines(struct builder *out, const struct pg_result *rows, int row);
void task_rows_write_attempt(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);
void task_rows_write_backlog(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);

#endif
