/* statements: every SQL statement of the server, prepared once in each session (commit.md 3 and 5). */
#ifndef STAMPD_STORE_STATEMENTS_H
#define STAMPD_STORE_STATEMENTS_H

#include "edge/pg/pg.h"

/* Number of the last migration in sql/ that the statements need; checked by the session. */
enum { SCHEMA_NUMBER = 25 };

enum statement {
#define STATEMENT(word, label, count, text) STATEMENT_##word,
#include "store/statements_table.h"
#undef STATEMENT
    STATEMENT_COUNT
};

extern const struct pg_statement statements[STATEMENT_COUNT];

#endif
