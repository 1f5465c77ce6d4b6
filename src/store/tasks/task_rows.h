/* task_rows: administrators' queries of tasks: parameters of their statements, and their rows as JSON.
 * Shared by the operation `tasks` and `stampctl task`. */
#ifndef STAMPD_STORE_TASKS_TASK_ROWS_H
#define STAMPD_STORE_TASKS_TASK_ROWS_H

#include "model/task/task.h"
#include "edge/pg/pg.h"

/* Which tasks, or which attempts. */
struct task_filter {
    struct bytes id;              /* attempts at this task; NO_BYTES: at all tasks */
    struct bytes operation, info; /* name; prefix; NO_BYTES: all */
    struct bytes states;          /* words of task_state, separated by blanks; NO_BYTES: all */
    struct bytes code, domain;    /* how the last attempt, or the attempt, ended; of tasks.  NO_BYTES: all */
    struct bytes holder;          /* of attempts: the beginning of its name; NO_BYTES: all */
    int64_t retry;                /* tasks with at least that many failures */
    bool only_failures;           /* attempts that failed or were lost */
    int64_t since, until;         /* starts of tasks, ends of attempts */
    int64_t begun_since, begun_until; /* claims: of tasks that run, and of attempts */
    int64_t limit;
    int64_t after_start,
        after_number; /* of the last row of the page before; attempts: the number only, 0: none */
};
#define TASK_FILTER_ALL                                                                                      \
    {                                                                                                        \
        .until = STAMP_MAX, .begun_until = STAMP_MAX, .limit = 100, .after_start = -1                        \
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
    TASK_UNTIL,  /* end of the claim of an external worker */
    TASK_PROGRESS,
    TASK_KEY_TEXT,
    TASK_TRACE, /* the header traceparent of the request that created it */
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
    ATTEMPT_NUMBER, /* order of the ends */
    ATTEMPT_RESULT,
    ATTEMPT_PARAM,
    ATTEMPT_TRACE,
    ATTEMPT_HOLDER /* the process, or the external worker, that had claimed it */
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
/* Columns of TASK_RULES. */
enum rule_column {
    RULE_NAME,
    RULE_OPERATION,
    RULE_PERIOD,
    RULE_MODULE,
    RULE_STATE, /* planned, running, parked, unplanned, dropped */
    RULE_TASK,  /* null: not planned yet */
    RULE_START,
    RULE_RETRY,
    RULE_CODE
};
/* Columns of TASK_PAUSED. */
/* Columns of TASK_LIMITS. */
enum limit_column {
    TASK_LIMIT_OF_QUEUE,
    TASK_LIMIT_OF_OPERATION,
    TASK_LIMIT_OF_BY_KEY,
    TASK_LIMIT_OF_MOST,
    TASK_LIMIT_OF_COUNT,
    TASK_LIMIT_OF_PERIOD,
    TASK_LIMIT_OF_BURST
};
enum pause_column { PAUSE_QUEUE, PAUSE_OPERATION, PAUSE_SINCE, PAUSE_REASON };
/* Columns of TASK_MOVE, TASK_HOLD, TASK_DROP: the result, null if nothing was done; whether there was such
 * a task. */
enum task_deed_column { DEED_RESULT, DEED_IS_THERE };

/* Is it a word for the state of a task? */
bool task_rows_is_state(struct bytes word);
/* Does it leave out anything? */
bool task_rows_is_filtered(const struct task_filter *filter);
/* The parameters of TASK_DO: `deed` run, hold or drop; `is_dry`: only counts. */
void task_rows_add_deed(struct pg_params *params, const char *deed, bool is_dry,
                        const struct task_filter *filter);
/* Columns of TASK_DO. */
enum task_do_column { TASK_DO_FOUND, TASK_DO_DONE };

/* The parameters of TASK_REDRIVE, and its columns; TASK_REDRIVE_LAST is 0 when nothing is left to read. */
void task_rows_add_redrive(struct pg_params *params, bool is_dry, const struct task_filter *filter);
enum task_redrive_column { TASK_REDRIVE_FOUND, TASK_REDRIVE_DONE, TASK_REDRIVE_LAST };

/* A queue, or an operation (queue -1), to pause or to resume. */
struct task_pause {
    int32_t queue;
    struct bytes operation, reason;
    bool is_paused;
};
void task_rows_add_pause(struct pg_params *params, const struct task_pause *pause);

enum { TASK_LIMIT_MOST = 100000, TASK_LIMIT_RATE_MOST = 1000000 };
/* A limit of a queue, of an operation (queue -1), or of its keys; nothing set: none. */
struct task_limit {
    int32_t queue;
    struct bytes operation;
    bool is_by_key;
    int64_t most;                    /* at once; 0: any number */
    int64_t count, period_ms, burst; /* begins; 0: any number */
};
void task_rows_add_limit(struct pg_params *params, const struct task_limit *limit);

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
void task_rows_write_pause(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);
/* With the member rate, as "60/min, burst 20". */
void task_rows_write_limit(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);
void task_rows_write_rule(struct builder *out, struct arena *arena, const struct pg_result *rows, int row);

#endif
