/* search_rows: what rows a search is for, as the FROM and WHERE of a statement; for search.c and
 * search_count.c. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_ROWS_H
#define STAMPD_MODEL_SCHEMA_SEARCH_ROWS_H

#include "model/schema/search.h"

#define SIDE(search)                                                                                         \
    (int)(search)->class->name.size, (search)->class->name.data, (int)(search)->item->name.size,             \
        (search)->item->name.data
#define TEXT(text) (int)(text).size, (text).data

/* A statement under way, for one branch of the search. */
struct composing {
    const struct search *search;
    const struct search_branch *branch;
    struct builder *sql;
    struct pg_params *params;
    const struct search_condition *driver; /* a list whose elements drive the query; NULL: the items' table */
    const char *name;                      /* of the driver's relation: "e", or "x", the items' table */
    int limit;                             /* of a page in the order of fields: the number of its parameter */
    bool counts;        /* all rows; else those of a page, which begins after the search's place */
    bool is_numbered;   /* rows are numbered, and there are `looked_most` at most */
    bool needs_columns; /* the statement reads those of the items' table: it is for items, not documents */
};

/* Goes to a branch. */
void search_rows_choose(struct composing *composing, const struct search_branch *branch);
/* Adds " from … where …" of the branch: relations "x" and "e" with the conditions, without those of a page.
 */
void search_rows_add(struct composing *composing);
/* Adds the beginning of WHERE: checked once, before the first row, so that a search under another schema
 * fails instead of finding nothing. */
void search_rows_add_schema(struct composing *composing);
/* Adds the condition for rows after the previous page, in the order of ids and keys. */
void search_rows_add_after(struct composing *composing, const char *name);
/* Does search_rows_add have the place of the page already? */
bool search_rows_begin_after(const struct composing *composing);
/* Of a page in the order of fields: are all rows found first, and sorted? */
bool search_rows_sort_all(const struct composing *composing);
/* Do no rows of the branch come in the order of ids?  Then all of them are found first, and sorted: the
 * planner, which does not know the values, would otherwise scan all documents in order. */
bool search_rows_must_sort(const struct composing *composing);

#endif
