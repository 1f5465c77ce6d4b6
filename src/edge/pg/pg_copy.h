/* pg_copy: rows in bulk, in PostgreSQL's binary COPY format: the fastest road out of a table and into one. */
#ifndef STAMPD_EDGE_PG_PG_COPY_H
#define STAMPD_EDGE_PG_PG_COPY_H

#include "edge/pg/pg.h"

/* --- out of the database --- */

enum { PG_COPY_FIELDS_MAX = 48 };
struct pg_copy_row {
    int count;                               /* fields; 0: there are no more rows */
    struct bytes fields[PG_COPY_FIELDS_MAX]; /* data NULL: null.  Valid until the next call */
};
/* Begins `copy … to stdout (format binary)`.  Until the last row was taken the connection can run nothing
 * else; a caller that does not take all rows closes it. */
MUST_USE enum fault pg_copy_out(struct pg *pg, const char *sql);
MUST_USE enum fault pg_copy_next(struct pg *pg, struct pg_copy_row *row_r);
/* The number in a field of type int8; null is 0. */
int64_t pg_copy_i64(struct bytes field);
/* The truth value in a field of type bool; null is false. */
bool pg_copy_bool(struct bytes field);

/* --- into it: the rows are composed first --- */

/* Begin a row of `count` fields, then append each of them. */
void pg_copy_add_row(struct builder *rows, int count);
void pg_copy_add_i64(struct builder *rows, int64_t value);
void pg_copy_add_bool(struct builder *rows, bool value);
void pg_copy_add_text(struct builder *rows, struct bytes text); /* data NULL: null */
/* Runs `copy … from stdin (format binary)` with these rows. */
MUST_USE enum fault pg_copy_in(struct pg *pg, const char *sql, struct bytes rows);

#endif
