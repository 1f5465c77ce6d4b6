/* search_test: a condition as SQL. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_TEST_H
#define STAMPD_MODEL_SCHEMA_SEARCH_TEST_H

#include "model/schema/search.h"

/* Adds that an SQL expression satisfies the condition; values become parameters. */
void search_test_add(struct builder *sql, struct pg_params *params, const struct search_condition *condition,
                     const char *column);
/* Adds the words that a MATCH asks for, as an SQL expression. */
void search_test_add_words(struct builder *sql, struct pg_params *params,
                           const struct search_condition *condition);
/* Adds the text of a LIKE, as an SQL expression; null: nothing is like it. */
void search_test_add_likeness(struct builder *sql, struct pg_params *params,
                              const struct search_condition *condition);
/* Adds that an SQL expression is one of the values of a test that takes a list. */
void search_test_add_any(struct builder *sql, struct pg_params *params,
                         const struct search_condition *condition, const char *column);

/* Does the integer satisfy the condition, which is not negated? */
bool search_test_holds(const struct search_condition *condition, int64_t value);
/* Is the first value the least that does? */
bool search_test_has_least(const struct search_condition *condition);

#endif
