/* pg_describe: the parameters and columns that PostgreSQL finds in the text of one statement, which is not
 * run. */
#ifndef STAMPD_EDGE_PG_PG_DESCRIBE_H
#define STAMPD_EDGE_PG_PG_DESCRIBE_H

#include "edge/pg/pg.h"

struct pg_column {
    struct bytes name;
    uint32_t type; /* its number in the catalog */
};
struct pg_description {
    int parameters;
    int columns; /* 0: it returns no rows */
    struct pg_column *column;
};
/* `types`: of the first `count` parameters.  A text of several statements is an error.  What was described
 * lives in the arena; pg_position says where an error is. */
MUST_USE enum fault pg_describe(struct pg *pg, struct arena *arena, const char *sql, const uint32_t *types,
                                int count, struct pg_description *description_r);

#endif
