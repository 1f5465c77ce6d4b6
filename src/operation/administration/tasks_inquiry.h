/* tasks_inquiry: one call of the operation tasks, and the rows that answer it. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_TASKS_INQUIRY_H
#define STAMPD_OPERATION_ADMINISTRATION_TASKS_INQUIRY_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"
#include "edge/pg/pg.h"
#include "store/statements.h"
#include "operation/attempt.h"
#include "operation/reader.h"

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

#endif
