/* shown: which members of an item the database reads in an encrypted namespace, and in which form
 * (doc/explanation/encryption.md).  Members of collections and unique properties, and keys of items by which
 * a collection is: their values are hashed, so that equal ones are found; the member that holds the expiry,
 * and exported fields of an item whose declaration allows it: in clear; exported fields of type hash: hashed.
 * Nothing else.
 *
 * The functions of the database read this text where they read the content in other namespaces.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_SHOWN_H
#define STAMPD_MODEL_SCHEMA_SHOWN_H

#include "model/document/item.h"
#include "model/schema/schema.h"

/* The hash of a value of a document of the class, as property_text() of the database writes values.  `field`:
 * "Item.member", of an exported field; "": of a collection or a unique property. */
typedef struct bytes shown_hash(void *context, struct arena *arena, struct bytes class, struct bytes field,
                                struct bytes value);

/* The object with them, in the arena; "": none is declared, or the content has none.  A hashed member has the
 * prefix SHOWN_HASHED, which no name of a property has. */
#define SHOWN_HASHED "~"
struct bytes shown_write(struct arena *arena, const struct schema_class *class, struct bytes iclass,
                         struct bytes key, bool is_raw, struct bytes content, shown_hash *hash,
                         void *context);

/* A value of a collection, of so many properties, as it is stored: that of each is hashed. */
struct bytes shown_value(struct arena *arena, struct bytes class, struct bytes value, size_t count,
                         shown_hash *hash, void *context);

/* A value of an exported field of type hash, as its column has it. */
struct bytes shown_field_value(struct arena *arena, const struct schema_class *class,
                               const struct schema_item *item, struct bytes member, struct bytes value,
                               shown_hash *hash, void *context);

#endif
