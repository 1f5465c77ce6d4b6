/* schema_plan_indexes: the steps of a plan that create and drop indexes: of each field, and those over
 * several fields, which are declared. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_PLAN_INDEXES_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_PLAN_INDEXES_H

#include "control/schema/schema_catalog.h"

/* Is the index of the field complete? */
bool schema_plan_indexes_has(struct planning *planning, struct side_name name,
                             const struct schema_field *field);
/* Gives the kept item those indexes of `wanted` that are applied and whose fields are kept. */
void schema_plan_indexes_keep(struct planning *planning, const struct schema_item *wanted,
                              const struct schema_item *applied, struct schema_item *kept);
/* Adds a word for each index over several fields that is not ready after this round. */
void schema_plan_indexes_building(struct planning *planning, struct side_name name,
                                  const struct schema_item *item, const struct schema_item *kept,
                                  struct builder *words);
/* May the indexes that `wanted` declares be made here: is the extension for those of likeness there, or to be
 * had? On failure reports why. */
MUST_USE bool schema_plan_indexes_may(struct planning *planning, struct pg *pg, const struct schema *wanted);
/* Steps that create what is missing. */
void schema_plan_indexes_add(struct planning *planning, struct side_name name, const struct schema_item *item,
                             const struct schema_item *kept, void *unused);
/* Steps that drop the indexes over several fields that `wanted` does not declare. */
void schema_plan_indexes_drop(struct planning *planning, const struct schema *wanted);

#endif
