/* schema_index: an index over several fields, as it is declared: ["room","-at"]. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_INDEX_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_INDEX_H

#include "base/arena.h"
#include "base/builder.h"
#include "model/schema/schema_class.h"

/* Writes the list of its fields. */
void schema_index_write(struct builder *text, const struct schema_index *index);
/* Reading an index backwards reverses all its directions: they are the same index when they differ in that
 * only. */
bool schema_index_is_same(const struct schema_index *one, const struct schema_index *other);
/* "room,-at", in the arena: its name in the list of what is being built. */
struct bytes schema_index_word(struct arena *arena, const struct schema_index *index);

#endif
