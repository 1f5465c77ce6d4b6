/* delta: the items that a copy lacks, as JSON for a client or as a new snapshot within the server. */
#include "model/document/delta.h"

#include <stdlib.h>

#include "base/log.h"
#include "model/document/stamp.h"
#include "edge/json/json.h"

/* `version`: of the source, as its holder sees it. */
static inline struct delta compute(const struct document *source, struct client_copy held, int64_t version)
{
    const struct header *header = &source->header;
    struct delta delta = {.source = source, .version = version};
    if (!document_exists(source))
        return delta;
    delta.dtime = header->dtime;
    if (held.version <= 0 || held.ctime != header->ctime) {
        /* A complete copy without tombstones: it has no record of removals up to the last of them. */
        if (source->newest_tombstone > delta.dtime)
            delta.dtime = source->newest_tombstone;
        return delta;
    }
    delta.with_tombstones = true;
    if (held.version > version) {
        delta.with_keys = true;
    } else {
        delta.since = held.version;
        delta.with_keys = held.version < header->dtime;
        if (!delta.with_keys && held.dtime > delta.dtime)
            delta.dtime = held.dtime;
    }
    return delta;
}

struct delta delta_compute(const struct document *source, struct client_copy held)
{
    return compute(source, held, source->header.version);
}

/* A copy under another view is treated as one of a version that the source has never had. */
struct delta delta_compute_view(const struct document *source, struct client_copy held,
                                struct bytes held_view, const struct view *view)
{
    if (held.version > 0 && !bytes_equal(held_view, view_name(view)))
        held.version = INT64_MAX;
    if (view_is_whole(view))
        return delta_compute(source, held);
    struct delta delta = compute(source, held, view->version);
    delta.view = view;
    delta.dtime = view->version;
    return delta;
}

static bool is_whole_copy(const struct delta *delta)
{
    return !delta->with_tombstones;
}

/* Does the delta contain the item itself? */
static bool is_in(const struct delta *delta, const struct item *item)
{
    if (!view_shows(delta->view, item->iclass))
        return false;
    return item->version > delta->since && (delta->with_tombstones || !item_is_tombstone(item));
}

/* Does the delta list its name as still existing? */
static bool delta_is_named(const struct delta *delta, const struct item *item)
{
    if (!view_shows(delta->view, item->iclass))
        return false;
    return delta->with_keys && item->version <= delta->since && !item_is_tombstone(item);
}

bool delta_is_empty(const struct delta *delta)
{
    const struct document *source = delta->source;
    return !document_exists(source) ||
           (!is_whole_copy(delta) && delta->since >= delta->version && !delta->with_keys);
}

size_t delta_size(const struct delta *delta)
{
    const struct document *source = delta->source;
    size_t size = source->json_header + STAMP_DIGITS + strlen(",'items':[],'dels':[],'clkeys':[]}");
    if (delta->view)
        size += 2 * STAMP_DIGITS + strlen(",'w':''") + view_name(delta->view).size;
    if (delta_is_empty(delta))
        return size;
    if (is_whole_copy(delta) && !delta->view)
        return size + source->json.size;
    for (const struct item *item = source->items; item < source->items + source->item_count; item++) {
        if (is_in(delta, item))
            size += item->json.size + 1;
        else if (delta_is_named(delta, item))
            size += json_string_size(item->iclass) + json_string_size(item->key) + 1;
    }
    return size;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

/* Writes the prepared header, with the delta's dtime as its last number when that differs. */
static void write_header(const struct delta *delta, struct builder *builder)
{
    const struct document *source = delta->source;
    struct bytes header = {source->json.data, source->json_header};
    if (delta->view) {
        view_write_header(delta->view, source, builder);
        return;
    }
    if (!document_exists(source) || delta->dtime == source->header.dtime) {
        builder_add_bytes(builder, header);
        return;
    }
    while (header.data[header.size - 1] != ':')
        header.size--;
    builder_add_bytes(builder, header);
    builder_add_i64(builder, delta->dtime);
}

/* Writes the items of the delta: the live ones or the tombstones. */
static void write_items(const struct delta *delta, bool of_tombstones, struct builder *builder)
{
    const struct document *source = delta->source;
    if (delta->since >= delta->version || (of_tombstones && delta->since >= source->newest_tombstone))
        return;
    bool is_first = true;
    for (const struct item *item = source->items; item < source->items + source->item_count; item++) {
        if (item_is_tombstone(item) != of_tombstones || !is_in(delta, item))
            continue;
        if (!is_first)
            builder_add_text(builder, ",");
        is_first = false;
        builder_add_bytes(builder, item->json);
    }
}

static void write_keys(const struct delta *delta, struct builder *builder)
{
    const struct document *source = delta->source;
    bool is_first = true;
    for (const struct item *item = source->items; item < source->items + source->item_count; item++) {
        if (!delta_is_named(delta, item))
            continue;
        if (!is_first)
            builder_add_text(builder, ",");
        is_first = false;
        json_add_string(builder, item->iclass);
        if (!item->key.size)
            continue;
        size_t between =
            --builder->size; /* the key's opening quote overwrites the closing one and becomes a dot */
        json_add_string(builder, item->key);
        builder->data[between] = '.';
    }
}

void delta_write_json(const struct delta *delta, struct builder *builder)
{
    const struct document *source = delta->source;
    write_header(delta, builder);
    if (!document_exists(source)) {
        builder_add_text(builder, "}");
        return;
    }
    if (is_whole_copy(delta) && !delta->view) { /* `,"items":[…]` copied from the ready JSON */
        builder_add(builder, source->json.data + source->json_header,
                    source->json.size - source->json_header - 1);
        builder_add_text(builder, ",\"dels\":[");
    } else if (delta->since >= delta->version && !delta->with_keys) { /* no changes */
        builder_add_text(builder, ",\"items\":[],\"dels\":[]}");
        return;
    } else {
        builder_add_text(builder, ",\"items\":[");
        write_items(delta, false, builder);
        builder_add_text(builder, "],\"dels\":[");
        write_items(delta, true, builder);
    }
    if (delta->with_keys) {
        builder_add_text(builder, "],\"clkeys\":[");
        write_keys(delta, builder);
    }
    builder_add_text(builder, "]}");
}

/* --- the client's copy -------------------------------------------------------------------------- */

/* The copy's item after the delta, from its present item and that of the source (one may be NULL, both have
 * the same name); NULL: none. */
static const struct item *choose(const struct delta *delta, const struct item *had, const struct item *has)
{
    const struct item *item;
    if (has && is_in(delta, has))
        item = has;
    else if (!delta->with_keys || (has && delta_is_named(delta, has)))
        item = had;
    else
        item = NULL;
    return item && item_is_tombstone(item) && item->version <= delta->dtime ? NULL : item;
}

struct document *delta_apply(const struct delta *delta, const struct document *copy)
{
    const struct document *source = delta->source;
    struct header header = source->header;
    header.dtime = delta->dtime;
    if (!document_exists(source)) {
        header.version = 0;
        return document_build(&header, NULL, 0);
    }
    const struct item *has = source->items, *has_end = has + source->item_count, *had = has, *had_end = has;
    if (copy && !is_whole_copy(delta)) {
        had = copy->items;
        had_end = had + copy->item_count;
    }
    size_t most = (size_t)(had_end - had) + source->item_count, count = 0;
    struct item *items = malloc((most ? most : 1) * sizeof *items);
    if (!items)
        log_fatal("out of memory delta items=%zu", most);
    while (had < had_end || has < has_end) {
        int order = had == had_end   ? 1
                    : has == has_end ? -1
                                     : item_compare(had->iclass, had->key, has->iclass, has->key);
        const struct item *item = choose(delta, order <= 0 ? had : NULL, order >= 0 ? has : NULL);
        if (item)
            items[count++] = *item;
        had += order <= 0;
        has += order >= 0;
    }
    struct document *document = document_build(&header, items, count);
    free(items);
    return document;
}
