/* schema_paths: fields that are members of objects within a content,
 * {"type":"string","at":["address","city"]}.
 *
 * Each name on the way is that of a member of an object.  For a field that is a list, a list on the way
 * stands for those of its elements that are objects, and the field has the values of all of them. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_PATHS_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_PATHS_H

#include "model/schema/schema_reader.h"

/* Sets the type and the path of the field, whose name is known. */
MUST_USE bool schema_paths_read(struct schema_reader *reader, struct schema_node node,
                                struct schema_field *field);
/* A list of names that leads to a member; false: it is none, which is recorded. */
MUST_USE bool schema_paths_read_list(struct schema_reader *reader, struct schema_node node,
                                     struct schema_path *path);
/* Do both lead to the same members?  NULL: to the member with the name of the field. */
bool schema_paths_are_same(const struct schema_path *one, const struct schema_path *other);

/* The values in the content of a field that has a path: one, or those of a list, in the arena.  False: it has
 * none; a list may be there and be empty. */
bool schema_paths_follow(struct arena *arena, const struct schema_field *field, struct bytes content,
                         const struct json *const **values_r, size_t *count_r);

#endif
