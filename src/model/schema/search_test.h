/* search_test: a condition as SQL. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_TEST_H
#define STAMPD_MODEL_SCHEMA_SEARCH_TEST_H

#include "model/schema/search.h"

/* Adds that an SQL expression satisfies the condition; values become parameters. */
void search_test_add(struct builder *sql, struct pg_params *params, const struct search_condition *condition,
                     const char *column);
/* Adds that an SQL expression is one of the values of a test that takes a list. */
void search_test_add_any(struct builder *sql, struct pg_params *params,
                         const struct search_condition *condition, const char *column);

#endif
