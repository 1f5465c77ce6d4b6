/* rules_view: names a view by a digest of the names that it hides, so that it means the same under other
 * rules. */
#include "model/rules/rules_private.h"

#include "base/coding/hash.h"

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

struct bytes rules_view_hidden(const struct rules_view *view, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; !rules_view_is_whole(view) && i < view->class->item_count; i++)
        if (view->hidden >> i & 1)
            text = arena_printf(arena, "%s%s%.*s", text, *text ? " " : "",
                                (int)view->class->items[i].name.size, view->class->items[i].name.data);
    return bytes_of(text);
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
