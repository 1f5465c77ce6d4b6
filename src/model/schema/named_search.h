/* named_search: a search in SQL that the schema declares under a name, with its parameters and the columns of
 * its rows (searches.md), and the SQL that makes and calls it.  Pure.
 *
 * The database has two functions for a search: "q_name" with the declared text, and "q_name_run", which runs
 * it as a role that may only read (sql/0023_searches.sql).  Their last parameter is the most rows. */
#ifndef STAMPD_MODEL_SCHEMA_NAMED_SEARCH_H
#define STAMPD_MODEL_SCHEMA_NAMED_SEARCH_H

#include "base/builder.h"

enum {
    NAMED_SEARCHES_MOST = 64, /* of a namespace */
    NAMED_SEARCH_PARAMS_MOST = 16,
    NAMED_SEARCH_COLUMNS_MOST = 32,
    NAMED_SEARCH_SQL_MOST = 16384, /* bytes */
};

enum named_search_type {
    NAMED_STRING,
    NAMED_LONG,
    NAMED_INT,
    NAMED_DOUBLE,
    NAMED_BOOLEAN,
    NAMED_JSON,    /* of columns */
    NAMED_ACCOUNT, /* of parameters: the caller's, which no caller can choose */
    NAMED_TYPES
};

/* A parameter, or a column of the rows. */
struct named_search_value {
    struct bytes name;
    enum named_search_type type;
    bool is_list; /* of parameters: strings or longs */
};

struct named_search {
    struct bytes name;
    struct bytes class; /* whose documents the caller must be able to read, all of them */
    struct bytes sql;   /* one select */
    const struct named_search_value *params, *columns;
    size_t param_count, column_count;
};

/* "string", "long[]"; and back, false when it is not a type of parameters, or of columns. */
const char *named_search_type_name(const struct named_search_value *value);
bool named_search_type_of(struct bytes name, bool is_param, struct named_search_value *value);
/* Its type in PostgreSQL, and the number of that. */
const char *named_search_sql_type(const struct named_search_value *value);
uint32_t named_search_sql_oid(const struct named_search_value *value);

/* Each appends one statement, without a semicolon: the function with the text, whose parameters and columns
 * were compared with the declaration before; the function that runs it. */
void named_search_add_query(const struct named_search *search, struct builder *sql);
void named_search_add_run(const struct named_search *search, struct builder *sql);
/* "(text, bigint)": the types of their parameters. */
void named_search_add_types(const struct named_search *search, struct builder *sql);
/* The statement of a call: its parameters are those of the search, the number of the schema, the most rows
 * and the most bytes.  A row is one JSON object, null beyond the bytes. */
void named_search_add_call(const struct named_search *search, struct builder *sql);

#endif
