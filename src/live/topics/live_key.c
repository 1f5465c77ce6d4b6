/* live_key: keys are those of definitions. */
#include "live/topics/live_key.h"

struct bytes live_key_of_class(struct builder *key, struct bytes class)
{
    return live_key_of_definition(key, &(struct definition){.class = class});
}

struct bytes live_key_of_document(struct builder *key, struct bytes class, struct bytes id)
{
    return live_key_of_definition(key, &(struct definition){.class = class, .id = id});
}

struct bytes live_key_of_member(struct builder *key, struct bytes class, struct bytes collection,
                                struct bytes value)
{
    return live_key_of_definition(
        key, &(struct definition){.class = class, .collection = collection, .value = value});
}

struct bytes live_key_of_definition(struct builder *key, const struct definition *definition)
{
    builder_clear(key, key->capacity);
    definition_add_key(definition, key);
    return builder_bytes(key);
}
