/* live_statement: the table as an array. */
#include "live/live_statement.h"

const struct pg_statement live_statements[LIVE_STATEMENTS] = {
#define STATEMENT(word, label, count, text) [LIVE_STATEMENT_##word] = {label, text, count},
#include "live/live_statement_table.h"
#undef STATEMENT
};
