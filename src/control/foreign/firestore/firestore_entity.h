/* firestore_entity: the fields of a document of an export as JSON.
 *
 * An entity has properties: a map is an entity inside a property, a list is several properties of one name.
 */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_ENTITY_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_ENTITY_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/settings.h"

/* Finds the key of an entity; NO_BYTES: it has none, or these bytes are no entity. */
struct bytes firestore_entity_key(struct bytes entity);
/* What becomes of NaN and infinities, which JSON does not have: the document is wrong, or they become null,
 * or the texts "NaN", "Infinity" and "-Infinity", as in the JSON of Firestore. */
enum firestore_not_finite { FIRESTORE_REFUSE, FIRESTORE_NULL, FIRESTORE_TEXT };
/* Appends the fields as an object, ordered by their names, within limit_depth and limit_content_bytes.  NULL,
 * or what is wrong and where, in the arena; then the text is of no use. */
const char *firestore_entity_write(struct arena *arena, const struct settings *settings,
                                   enum firestore_not_finite not_finite, struct bytes entity,
                                   struct builder *json);

#endif
