/* rules_view: names a view by a digest of the names that it hides, so that it means the same under other
 * rules. */
#include "model/rules_private.h"

#include "base/hash.h"

bool rules_view_is_whole(const struct rules_view *view)
{
    return !view->class || !view->hidden;
}

bool rules_view_shows(const struct rules_view *view, struct bytes item_class)
{
    if (rules_view_is_whole(view))
        return true;
    const struct rules_item *item = rules_find_item(view->class, item_class);
    return !item || !(view->hidden >> (item - view->class->items) & 1);
}

const char *rules_view_name(const struct rules_view *view, struct arena *arena)
{
    uint64_t hash = HASH_START;
    if (rules_view_is_whole(view))
        return "";
    for (size_t i = 0; i < view->class->item_count; i++)
        if (view->hidden >> i & 1)
            hash = hash_more(hash_more(hash, view->class->items[i].name), BYTES("."));
    return arena_printf(arena, "%016llx", (unsigned long long)hash);
}
