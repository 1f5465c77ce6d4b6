/* schema_catalog: the parts of a schema in a namespace's database: columns, indexes, unfinished work. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_CATALOG_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_CATALOG_H

#include "control/control.h"
#include "control/schema/schema_plan.h"
#include "control/schema/schema_sql.h"

struct catalog_column {
    struct bytes table, name, type;
};
struct index {
    struct bytes name;
    bool is_valid;
};
struct catalog {
    struct catalog_column *columns;
    size_t column_count;
    struct index *indexes;
    size_t index_count;
    struct side_name *fills; /* not finished, or with unfinished indexes */
    size_t fill_count;
    struct bytes
        *followed; /* collections and unique properties that are ready: "Class.name kind Item.member …" */
    size_t followed_count;
    struct bytes *searches; /* names of functions that run as the role of searches */
    size_t search_count;
    struct bytes *collations; /* of ICU that PostgreSQL has: "fr" */
    size_t collation_count;
    bool has_trigrams; /* the extension for indexes of likeness */
};

/* On failure reports why. */
MUST_USE bool schema_catalog_read(struct control *control, struct pg *pg, struct catalog *catalog_r);
/* NULL: there is none. */
const struct catalog_column *schema_catalog_column(const struct catalog *catalog, struct bytes table,
                                                   struct bytes name);
const struct index *schema_catalog_index(const struct catalog *catalog, struct bytes name);
/* Is there a record of how far this has come? */
bool schema_catalog_fills(const struct catalog *catalog, struct bytes class, struct bytes item);

/* --- schema planning: a plan while it is made: for the files that make plans only --- */
struct planning {
    struct control *control;
    struct arena *arena;
    const char *role;
    struct catalog catalog;
    struct schema_plan *plan;
    size_t capacity;
};

/* A text that lives as long as the plan. */
struct builder *schema_planning_text(struct planning *planning);
/* Adds a step; the plan takes the text. */
void schema_planning_add(struct planning *planning, enum step_kind kind, const char *what,
                         struct builder *sql);
/* "x_Class_Item", with "_field" when there is one; the letters before it are `prefix`. */
struct bytes schema_planning_table(struct arena *arena, const char *prefix, struct side_name name,
                                   struct bytes field);
/* Do the words have "Class.Item.field"? */
bool schema_planning_has_word(struct arena *arena, struct bytes words, struct side_name name,
                              struct bytes field);

/* Waits for transactions that may still use the schema of before. */

/* Waits until all transactions that now run in this database and began before have ended; on failure reports
 * why. */
MUST_USE bool schema_wait_for_older(struct control *control, struct pg *pg);

#endif
