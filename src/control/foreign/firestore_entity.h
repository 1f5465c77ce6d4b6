/* firestore_entity: the fields of a document of an export as JSON.
 *
 * An entity has properties: a map is an entity inside a property, a list is several properties of one name.
 */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_ENTITY_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_ENTITY_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/settings.h"

/* Finds the key of an entity; NO_BYTES: it has none, or these bytes are no entity. */
struct bytes firestore_entity_key(struct bytes entity);
/* Appends the fields as an object, ordered by their names, within limit_depth and limit_content_bytes.  NULL,
 * or what is wrong and where, in the arena; then the text is of no use. */
const char *firestore_entity_write(struct arena *arena, const struct settings *settings, struct bytes entity,
                                   struct builder *json);

#endif
