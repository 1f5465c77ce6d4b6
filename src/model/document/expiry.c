/* expiry: the expiry of a document, from a member of one of its singletons. */
#include "model/document/expiry.h"

#include "base/arena.h"
#include "edge/json/json.h"

static bool read_minute(struct bytes content, struct bytes member, int64_t *minute_r)
{
    struct arena *arena = arena_create("life");
    struct json *root;
    bool is_found = false;
    if (json_is_tree(arena, content, 128, 1, &root)) {
        const struct json *value = json_member(root, arena_copy(arena, member.data, member.size));
        is_found = value && json_is_i64(value, minute_r);
    }
    arena_destroy(arena);
    return is_found;
}

int64_t expiry_of(const struct schema *schema, const struct document *document)
{
    const struct schema_class *class = schema_find_class(schema, document->header.class);
    int64_t minute;
    if (!class || !class->max_life.item || !document_exists(document))
        return DOCUMENT_FOREVER;
    const struct item *item = document_find_item(document, class->max_life.item->name, BYTES(""));
    if (!item || item_is_tombstone(item) || item->raw)
        return DOCUMENT_FOREVER;
    return read_minute(item->content, class->max_life.member, &minute) ? minute : DOCUMENT_FOREVER;
}
