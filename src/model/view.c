/* view: the ready JSON of the items that are shown. */
#include "model/view.h"

#define NAME_BEFORE  ",\"w\":\""
#define NAME_AFTER   "\""
#define ITEMS_BEFORE ",\"items\":["
#define ITEMS_AFTER  "]}"

struct bytes view_name(const struct view *view)
{
    return view_is_whole(view) ? BYTES("") : bytes_of(view->name);
}

void view_write_name(const struct view *view, struct builder *builder)
{
    if (view_is_whole(view))
        return;
    builder_add_text(builder, NAME_BEFORE);
    builder_add_bytes(builder, bytes_of(view->name));
    builder_add_text(builder, NAME_AFTER);
}

static bool is_shown(const struct view *view, const struct item *item)
{
    return !item_is_tombstone(item) && view_shows(view, item->iclass);
}

void view_write_json(const struct view *view, const struct document *document, struct builder *builder)
{
    if (view_is_whole(view)) {
        builder_add_bytes(builder, document->json);
        return;
    }
    builder_add(builder, document->json.data, document->json_header);
    view_write_name(view, builder);
    builder_add_text(builder, ITEMS_BEFORE);
    bool is_first = true;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++) {
        if (!is_shown(view, item))
            continue;
        if (!is_first)
            builder_add_text(builder, ",");
        is_first = false;
        builder_add_bytes(builder, item->json);
    }
    builder_add_text(builder, ITEMS_AFTER);
}

size_t view_size(const struct view *view, const struct document *document)
{
    if (view_is_whole(view))
        return document->json.size;
    size_t size =
        document->json_header + strlen(NAME_BEFORE NAME_AFTER ITEMS_BEFORE ITEMS_AFTER) + strlen(view->name);
    size_t commas = 0;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++)
        if (is_shown(view, item))
            size += item->json.size + (commas++ > 0);
    return size;
}
