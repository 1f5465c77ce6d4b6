/* live_key: the keys of topics: what can change, and what listeners name. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_KEY_H
#define STAMPD_LIVE_TOPICS_LIVE_KEY_H

#include "model/schema/definition.h"

/* Each is unique: a class, a document, a collection with its value.  Valid until the next use of `key`. */
struct bytes live_key_of_class(struct builder *key, struct bytes class);
struct bytes live_key_of_document(struct builder *key, struct bytes class, struct bytes id);
struct bytes live_key_of_member(struct builder *key, struct bytes class, struct bytes collection,
                                struct bytes value);
struct bytes live_key_of_definition(struct builder *key, const struct definition *definition);

#endif
