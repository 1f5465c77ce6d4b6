/* firestore_key: names of documents: the path of a key, {collection, id} after {collection, id}. */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_KEY_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_KEY_H

#include "base/arena.h"
#include "base/builder.h"

struct firestore_key {
    struct bytes collection; /* those of the path: users/orders */
    struct bytes id;         /* the ids of the path: ann/7 */
    bool is_nested;          /* in a document of another collection */
};
/* Reads a key, of an entity; texts are in the arena.  NULL, or what is wrong, static. */
const char *firestore_key_read(struct arena *arena, struct bytes reference, struct firestore_key *key_r);
/* Appends the path that the value of a field refers to: users/ann/orders/7.  NULL, or what is wrong, static.
 */
const char *firestore_key_add_reference(struct bytes group, struct builder *path);

/* Is it UTF-8 without NUL, which contents of documents are made of? */
bool firestore_key_is_text(struct bytes text);

#endif
