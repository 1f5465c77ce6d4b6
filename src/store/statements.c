/* statements: the table as an array for pg_prepare. */
#include "store/statements.h"

#include "store/data_keys.h"

const struct pg_statement statements[STATEMENT_COUNT] = {
#define STATEMENT(word, label, count, text)                                                                  \
    [STATEMENT_##word] = {.name = label, .sql = text, .parameters = count},
#include "store/statements_table.h"
#undef STATEMENT
};
