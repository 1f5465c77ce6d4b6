/* content_place: where a subschema stands, and refusals that name it. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_PLACE_H
#define STAMPD_MODEL_CONTENT_CONTENT_PLACE_H

#include "base/builder.h"
#include "model/content/content_compiling.h"

/* That of a keyword in it, in the arena. */
const char *content_place_of_rule(struct arena *arena, const struct content_node *node, const char *keyword);

/* Reports the problem at this keyword (NULL: the subschema itself), and returns false. */
bool content_place_refuse(struct content_compiling *compiling, const struct content_node *node,
                          const char *keyword, const char *expected);

#endif
