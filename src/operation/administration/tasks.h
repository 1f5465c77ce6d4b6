/* tasks: parts of the operation tasks: one call of it and the rows that answer it; pauses and limits of
 * queues and operations; the tasks of all namespaces.  What administrators set is in the database of the
 * namespace: every manager and every external worker obeys. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_TASKS_H
#define STAMPD_OPERATION_ADMINISTRATION_TASKS_H

#include "edge/json/json.h"
#include "edge/pg/pg.h"
#include "operation/attempt.h"
#include "operation/reader.h"
#include "store/statements.h"
#include "store/tasks/task_rows.h"

struct tasks_inquiry {
    struct attempt *attempt;
    struct reader reader;
    struct arena *arena;
    struct builder *out;
    const struct json *param, *wish; /* and the value of its one member */
};

MUST_USE enum fault tasks_inquiry_ask(const struct tasks_inquiry *inquiry, enum statement statement,
                                      const struct pg_params *params, struct pg_result **rows_r);

/* The same for a statement that changes tasks, at once and not with the commit of the request. */
MUST_USE enum fault tasks_inquiry_change(const struct tasks_inquiry *inquiry, enum statement statement,
                                         const struct pg_params *params, struct pg_result **rows_r);
/* A change that may be a dry one, which only counts. */
MUST_USE enum fault tasks_inquiry_count(const struct tasks_inquiry *inquiry, bool is_dry,
                                        enum statement statement, const struct pg_params *params,
                                        struct pg_result **rows_r);

typedef void tasks_inquiry_writer(struct builder *out, struct arena *arena, const struct pg_result *rows,
                                  int row);

/* Writes the first `count` rows as an array. */
void tasks_inquiry_write_rows(const struct tasks_inquiry *inquiry, const struct pg_result *rows, int count,
                              tasks_inquiry_writer *write);

/* Each answers one member of tasks. */
MUST_USE enum fault tasks_queues_pause(const struct tasks_inquiry *inquiry);
MUST_USE enum fault tasks_queues_resume(const struct tasks_inquiry *inquiry);
MUST_USE enum fault tasks_queues_limit(const struct tasks_inquiry *inquiry);

/* Writes {"tasks":[{"ns","task"}…],"more":[code…],"faults":[{"ns","code"}…],"cursor":code}: of up to 32
 * namespaces behind the member `cursor` of the wish, in the order of their codes.  Of each there are the
 * first `filter->limit` - 1 tasks; `more` has the codes of those with more, `faults` of those that could not
 * be asked.  `cursor` is there when there are more namespaces: when half of the time of the call is over,
 * too. */
MUST_USE enum fault tasks_everywhere(const struct tasks_inquiry *inquiry, const struct task_filter *filter);

#endif
