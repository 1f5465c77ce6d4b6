/* schema_planning: a plan while it is made: for the files that make plans only. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_PLANNING_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_PLANNING_H

#include "control/schema/schema_catalog.h"
#include "control/schema/schema_plan.h"

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

#endif
