/* schema_searches_sql: makes the functions of named searches in a namespace's database, and refuses what is
 * no search. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_SEARCHES_SQL_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_SEARCHES_SQL_H

#include "control/control.h"
#include "model/schema/schema.h"

/* Within a transaction that has removed the former functions, once the views are there that they read.
 * `role`: the workers'.  On failure reports why, and where in the declaration; the transaction is to be
 * undone then. */
MUST_USE bool schema_searches_sql_make(struct control *control, struct pg *pg, const struct schema *schema,
                                       const char *role);

#endif
