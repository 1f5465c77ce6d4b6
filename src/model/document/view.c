/* view: the ready JSON of the items that are shown. */
#include "model/document/view.h"

#include "model/document/stamp.h"
#include "edge/json/json.h"

#define ITEMS_BEFORE ",\"items\":["
#define ITEMS_AFTER  "]}"

void view_take(struct view *view, const struct document *document, struct arena *arena)
{
    view->name = view->filtered ? view->filtered : rules_view_name(&view->rules, arena);
    view->version = document->header.version;
    if (view_is_whole(view))
        return;
    view->version = document->header.ctime;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++)
        if (item->version > view->version && view_shows(view, item->iclass))
            view->version = item->version;
}

const struct view_class *view_find_class(const struct view *view, struct bytes iclass)
{
    for (size_t i = 0; i < view->class_count; i++)
        if (bytes_equal(view->classes[i].name, iclass))
            return &view->classes[i];
    return NULL;
}

struct bytes view_name(const struct view *view)
{
    return view_is_whole(view) ? BYTES("") : bytes_of(view->name);
}

int64_t view_version(const struct view *view, const struct document *document)
{
    return !document_exists(document) ? 0 : view_is_whole(view) ? document->header.version : view->version;
}

void view_write_header(const struct view *view, const struct document *document, struct builder *builder)
{
    const struct header *header = &document->header;
    if (view_is_whole(view)) {
        builder_add(builder, document->json.data, document->json_header);
        return;
    }
    json_add_text(builder, "{\"c\":", header->class);
    json_add_text(builder, ",\"id\":", header->id);
    builder_printf(builder, ",\"v\":%lld,\"ct\":%lld,\"dt\":%lld,\"w\":\"%s\"", (long long)view->version,
                   (long long)header->ctime, (long long)view->version, view->name);
}

static bool view_is_shown(const struct view *view, const struct item *item)
{
    return !item_is_tombstone(item) && view_shows(view, item->iclass);
}

void view_write_part(const struct view *view, const struct document *document, struct builder *builder)
{
    view_write_header(view, document, builder);
    builder_add_text(builder, ITEMS_BEFORE);
    bool is_first = true;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++) {
        if (!view_is_shown(view, item))
            continue;
        if (!is_first)
            builder_add_text(builder, ",");
        is_first = false;
        builder_add_bytes(builder, item->json);
    }
    builder_add_text(builder, ITEMS_AFTER);
}

size_t view_part_size(const struct view *view, const struct document *document)
{
    size_t size = document->json_header + 2 * STAMP_DIGITS + strlen(",'w':''" ITEMS_BEFORE ITEMS_AFTER) +
                  strlen(view->name);
    size_t commas = 0;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++)
        if (view_is_shown(view, item))
            size += item->json.size + (commas++ > 0);
    return size;
}
