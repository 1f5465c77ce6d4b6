/* schema_sql: the SQL that creates, changes and drops the objects of a schema in a namespace's database: side
 * tables, their functions, views and indexes.  Pure.
 *
 * For the items of class Item in documents of class Class with exported fields there are
 *   x_Class_Item          id, key and a column for each field; a row for each living item
 *   x_Class_Item_field    id, key, value: the elements of a field that is a list
 *   v_Class_Item_field    the index that `find` uses: the value first, then id and key
 *   n_Class_Item_hash     an index over several fields: these in the order of the declaration, then id and
 * key item_Class_Item       the view for people x_Class_Item_write, x_Class_Item_wipe   the functions that
 * keep the rows right. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_SQL_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_SQL_H

#include "control/control.h"
#include "model/schema/schema.h"

/* One side table. */
struct side_name {
    struct bytes class, item;
};

/* Type of the field's column, "text[]"; of one of its elements, "text". */
const char *schema_sql_type(const struct schema_field *field);

/* Each appends one or more statements that end with ";
 * ".  `role` is the workers'. */
void schema_sql_table(struct builder *sql, struct side_name name, const char *role);
void schema_sql_column(struct builder *sql, struct side_name name, const struct schema_field *field,
                       const char *role);
void schema_sql_functions(struct builder *sql, struct side_name name, const struct schema_item *item,
                          const char *role);
/* `has_ends`: the class declares maxLife, and the view leaves out what has expired. */
void schema_sql_view(struct builder *sql, struct side_name name, const struct schema_item *item,
                     bool has_ends);
void schema_sql_drop_functions(struct builder *sql, struct side_name name);
/* Must run outside a transaction. */
void schema_sql_index(struct builder *sql, struct side_name name, const struct schema_field *field);
/* The index over several fields, of this name. */
struct bytes schema_sql_index_name(struct arena *arena, struct side_name name,
                                   const struct schema_index *index);
void schema_sql_several(struct builder *sql, struct side_name name, const struct schema_index *index,
                        struct bytes index_name);
/* Appends a text as an SQL literal. */
void schema_sql_literal(struct builder *sql, struct bytes text);

/* Makes the functions of named searches in a namespace's database, and refuses what is
 * no search. */

/* Within a transaction that has removed the former functions, once the views are there that they read.
 * `role`: the workers'.  On failure reports why, and where in the declaration; the transaction is to be
 * undone then. */
MUST_USE bool schema_searches_sql_make(struct control *control, struct pg *pg, const struct schema *schema,
                                       const char *role);

#endif
