/* live_statement: the SQL statements of the process for live events. */
#ifndef STAMPD_LIVE_LIVE_STATEMENT_H
#define STAMPD_LIVE_LIVE_STATEMENT_H

#include "store/stored_id.h"

enum live_statement {
#define STATEMENT(word, label, count, text) LIVE_STATEMENT_##word,
#include "live/live_statement_table.h"
#undef STATEMENT
    LIVE_STATEMENTS
};
extern const struct pg_statement live_statements[LIVE_STATEMENTS];

/* Where they have ids of documents. */
struct stored_ids live_statement_ids(const struct data_keys *keys);

/* Kinds of rows in results, their first column. */
enum { LIVE_ROW_OF_ALL, LIVE_ROW_OF_DOCUMENT, LIVE_ROW_OF_COLLECTION };

#endif
