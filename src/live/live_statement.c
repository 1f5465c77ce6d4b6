/* live_statement: the table as an array. */
#include "live/live_statement.h"

const struct pg_statement live_statements[LIVE_STATEMENTS] = {
#define STATEMENT(word, label, count, text) [LIVE_STATEMENT_##word] = {label, text, count},
#include "live/live_statement_table.h"
#undef STATEMENT
};

static const struct stored_id ids[] = {{LIVE_STATEMENT_LOAD, STORED_ID_EACH, 1, 2},
                                       {LIVE_STATEMENT_NEWS, STORED_ID_EACH, 1, 2},
                                       {LIVE_STATEMENT_NEWS, STORED_ID_BESIDE, 1, 5},
                                       {LIVE_STATEMENT_LOOK, STORED_ID_EACH, 1, 2}};

struct stored_ids live_statement_ids(const struct data_keys *keys)
{
    return (struct stored_ids){keys, live_statements, LIVE_STATEMENTS, ids, COUNT_OF(ids), {0}};
}
