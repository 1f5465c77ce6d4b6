/* document: a snapshot is measured first, then written once into its block.
 *
 *   struct document | items[] | JSON with the live items | JSON of the tombstones | other texts
 *
 * A text is a slice of the ready JSON when it appears there without escapes, otherwise it is copied to the
 * end. */
#include "model/document/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/document/stamp.h"
#include "edge/json/json.h"

/* --- the items of the new snapshot -------------------------------------------------------------- */

/* Merges the items of a copy, whose JSON is ready, with fresh ones, which take precedence.  Iterated
 * twice. */
struct merge {
    const struct item *ready, *fresh; /* next of each */
    size_t ready_left, fresh_left;
    int64_t horizon; /* tombstones up to here are dropped */
};

/* The next item in order, NULL at the end; `is_ready_r`: the item is from the copy. */
static const struct item *merge_next(struct merge *merge, bool *is_ready_r)
{
    while (merge->ready_left || merge->fresh_left) {
        const struct item *ready = merge->ready, *fresh = merge->fresh;
        int order = !merge->fresh_left   ? -1
                    : !merge->ready_left ? 1
                                         : item_compare(ready->iclass, ready->key, fresh->iclass, fresh->key);
        if (order <= 0) {
            merge->ready++;
            merge->ready_left--;
        }
        if (order >= 0) {
            merge->fresh++;
            merge->fresh_left--;
        }
        const struct item *item = order < 0 ? ready : fresh;
        if (item_is_tombstone(item) && item->version <= merge->horizon)
            continue;
        *is_ready_r = order < 0;
        return item;
    }
    return NULL;
}

static bool is_sorted(const struct item *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (item_compare(items[i - 1].iclass, items[i - 1].key, items[i].iclass, items[i].key) >= 0)
            return false;
    return true;
}

/* --- first walk: sizes --------------------------------------------------------------------------- */

struct sizes {
    size_t items;
    size_t json, tombstones, texts; /* bytes of the three regions after the items */
};

static size_t number_size(int64_t number)
{
    size_t size = number < 0 ? 2 : 1;
    while (number /= 10)
        size++;
    return size;
}

/* Measures a text as a JSON string; it needs a separate copy when it is escaped there. */
static size_t measure_text(struct sizes *sizes, struct bytes text)
{
    size_t size = json_string_size(text);
    if (size != text.size + 2)
        sizes->texts += text.size;
    return size;
}

static bool is_slice(struct bytes text, struct bytes of)
{
    return (uintptr_t)text.data >= (uintptr_t)of.data &&
           (uintptr_t)text.data + text.size <= (uintptr_t)of.data + of.size;
}

static size_t measure_ready(struct sizes *sizes, const struct item *item)
{
    const struct bytes texts[] = {item->iclass, item->key, item->content};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (!is_slice(texts[i], item->json))
            sizes->texts += texts[i].size;
    return item->json.size;
}

static size_t measure_fresh(struct sizes *sizes, const struct item *item)
{
    size_t size = strlen("{'c':,'v':}") + measure_text(sizes, item->iclass) + number_size(item->version);
    if (item->key.size)
        size += strlen(",'k':") + measure_text(sizes, item->key);
    if (!item_is_tombstone(item))
        size += strlen(",'j':") + (item->raw ? measure_text(sizes, item->content) : item->content.size);
    return size;
}

int64_t document_item_cost(const struct item *item)
{
    struct sizes unused = {0};
    size_t json = item->json.data ? item->json.size : measure_fresh(&unused, item);
    if (!item->json.data) /* size of the JSON to be written */
        json += STAMP_DIGITS - number_size(item->version);
    return (int64_t)(json + strlen(",") + sizeof *item);
}

int64_t document_cost(const struct document *document)
{
    size_t live = document->item_count - document->tombstone_count;
    if (!document_exists(document) || !live)
        return 0;
    size_t json = document->json.size - document->json_header - strlen(",'items':[]}") + strlen(",");
    return (int64_t)(json + live * sizeof *document->items);
}

static size_t measure_header(struct sizes *sizes, const struct header *header)
{
    size_t size = strlen("{'c':,'id':,'v':,'ct':,'dt':,'items':[]}") + measure_text(sizes, header->class) +
                  measure_text(sizes, header->id);
    const bool exists = header->ctime != 0;
    return size + number_size(exists ? header->version : 0) + number_size(header->ctime) +
           number_size(header->dtime);
}

static struct sizes document_measure(const struct header *header, struct merge merge)
{
    struct sizes sizes = {0};
    sizes.json = measure_header(&sizes, header);
    size_t live = 0;
    const struct item *item;
    for (bool is_ready; (item = merge_next(&merge, &is_ready)); sizes.items++) {
        size_t size = is_ready ? measure_ready(&sizes, item) : measure_fresh(&sizes, item);
        if (item_is_tombstone(item))
            sizes.tombstones += size;
        else
            sizes.json += size + (live++ ? 1 : 0);
    }
    return sizes;
}

/* --- second walk: writing ------------------------------------------------------------------------ */

/* A builder over a region of the block.  The region is as large as measured; the builder has unlimited
 * capacity, so that it never moves the text, even if it reserves more room than it then uses. */
static struct builder region(char *data)
{
    return (struct builder){.data = data, .capacity = SIZE_MAX};
}

struct writer {
    struct builder json, tombstones, texts;
};

static struct bytes write_copy(struct writer *writer, struct bytes text)
{
    struct bytes copy = {writer->texts.data + writer->texts.size, text.size};
    builder_add_bytes(&writer->texts, text);
    return copy;
}

/* Writes a text as a JSON string and returns a slice of it, or a copy when it is escaped. */
static struct bytes write_text(struct writer *writer, struct builder *out, struct bytes text)
{
    size_t start = out->size;
    json_add_string(out, text);
    if (out->size - start == text.size + 2)
        return (struct bytes){out->data + start + 1, text.size};
    return write_copy(writer, text);
}

static void write_header(struct writer *writer, struct document *document, const struct header *header)
{
    struct builder *out = &writer->json;
    document->header = *header;
    builder_add_text(out, "{\"c\":");
    document->header.class = write_text(writer, out, header->class);
    builder_add_text(out, ",\"id\":");
    document->header.id = write_text(writer, out, header->id);
    builder_add_text(out, ",\"v\":");
    builder_add_i64(out, header->ctime ? header->version : 0);
    builder_add_text(out, ",\"ct\":");
    builder_add_i64(out, header->ctime);
    builder_add_text(out, ",\"dt\":");
    builder_add_i64(out, header->dtime);
    document->json_header = out->size;
}

static void write_fresh(struct writer *writer, struct builder *out, const struct item *item,
                        struct item *item_r)
{
    *item_r = *item;
    builder_add_text(out, "{\"c\":");
    item_r->iclass = write_text(writer, out, item->iclass);
    item_r->key = BYTES("");
    if (item->key.size) {
        builder_add_text(out, ",\"k\":");
        item_r->key = write_text(writer, out, item->key);
    }
    builder_add_text(out, ",\"v\":");
    builder_add_i64(out, item->version);
    if (item_is_tombstone(item)) {
        item_r->content = NO_BYTES;
        item_r->vop = 0;
        item_r->raw = false;
    } else if (item->raw) {
        builder_add_text(out, ",\"s\":");
        item_r->content = write_text(writer, out, item->content);
    } else {
        builder_add_text(out, ",\"j\":");
        item_r->content = (struct bytes){out->data + out->size, item->content.size};
        builder_add_bytes(out, item->content);
    }
    builder_add_text(out, "}");
}

/* Returns the same text in the new block. */
static struct bytes write_moved(struct writer *writer, struct bytes text, struct bytes from, const char *to)
{
    if (!text.data)
        return NO_BYTES;
    if (is_slice(text, from))
        return (struct bytes){to + (text.data - from.data), text.size};
    return write_copy(writer, text);
}

static void write_ready(struct writer *writer, struct builder *out, const struct item *item,
                        struct item *item_r)
{
    const char *to = out->data + out->size;
    builder_add_bytes(out, item->json);
    *item_r = *item;
    item_r->iclass = write_moved(writer, item->iclass, item->json, to);
    item_r->key = item->key.size ? write_moved(writer, item->key, item->json, to) : BYTES("");
    item_r->content = write_moved(writer, item->content, item->json, to);
}

static void write_items(struct writer *writer, struct document *document, struct merge merge)
{
    uint32_t live = 0;
    const struct item *item;
    for (bool is_ready; (item = merge_next(&merge, &is_ready)); document->item_count++) {
        bool is_tombstone = item_is_tombstone(item);
        struct builder *out = is_tombstone ? &writer->tombstones : &writer->json;
        if (!is_tombstone && live++)
            builder_add_text(out, ",");
        size_t start = out->size;
        struct item *made = &document->items[document->item_count];
        (is_ready ? write_ready : write_fresh)(writer, out, item, made);
        made->json = (struct bytes){out->data + start, out->size - start};
        if (!is_tombstone) {
            document->header.v1 += (int64_t)(made->key.size + made->content.size);
            continue;
        }
        if (!document->tombstone_count++ || item->version < document->oldest_tombstone)
            document->oldest_tombstone = item->version;
        if (item->version > document->newest_tombstone)
            document->newest_tombstone = item->version;
    }
}

static struct document *build(const struct header *header, struct merge merge)
{
    struct sizes sizes = document_measure(header, merge);
    assert(sizes.items <= UINT32_MAX);
    size_t base_bytes = sizeof(struct document) + sizes.items * sizeof(struct item);
    size_t block_bytes = base_bytes + sizes.json + sizes.tombstones + sizes.texts;
    struct document *document = malloc(block_bytes);
    if (!document)
        log_fatal("out of memory document bytes=%zu", block_bytes);
    *document = (struct document){.references = 1, .block_bytes = block_bytes, .until = DOCUMENT_FOREVER};
    char *json = (char *)document + base_bytes;
    struct writer writer = {.json = region(json),
                            .tombstones = region(json + sizes.json),
                            .texts = region(json + sizes.json + sizes.tombstones)};
    write_header(&writer, document, header);
    document->header.v1 = 0;
    builder_add_text(&writer.json, ",\"items\":[");
    write_items(&writer, document, merge);
    builder_add_text(&writer.json, "]}");
    assert(document->item_count == sizes.items && writer.json.size == sizes.json &&
           writer.tombstones.size == sizes.tombstones && writer.texts.size == sizes.texts);
    document->json = builder_bytes(&writer.json);
    return document;
}

/* --- public -------------------------------------------------------------------------------------- */

struct document *document_build(const struct header *header, const struct item *items, size_t item_count)
{
    assert(header->ctime != 0 || item_count == 0);
    assert(is_sorted(items, item_count));
    return build(header, (struct merge){.fresh = items, .fresh_left = item_count, .horizon = INT64_MIN});
}

struct document *document_merge(const struct document *copy, const struct header *header,
                                const struct item *newer, size_t newer_count)
{
    assert(document_exists(copy) && header->ctime == copy->header.ctime);
    assert(header->version >= copy->header.version);
    assert(is_sorted(newer, newer_count));
    return build(header, (struct merge){.ready = copy->items,
                                        .ready_left = copy->item_count,
                                        .fresh = newer,
                                        .fresh_left = newer_count,
                                        .horizon = header->dtime});
}

struct document *document_end(const struct document *document)
{
    const struct header header = {
        .class = document->header.class, .id = document->header.id, .version = document->header.version};
    struct document *ended = document_build(&header, NULL, 0);
    ended->has_ended = true;
    return ended;
}

struct document *document_hold(struct document *document)
{
    assert(document->references > 0 && document->references < UINT32_MAX);
    document->references++;
    return document;
}

void document_release(struct document *document)
{
    if (!document)
        return;
    assert(document->references > 0);
    if (--document->references == 0)
        free(document);
}

const struct item *document_find_item(const struct document *document, struct bytes iclass, struct bytes key)
{
    size_t low = 0, high = document->item_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct item *item = &document->items[middle];
        int order = item_compare(item->iclass, item->key, iclass, key);
        if (order == 0)
            return item;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- document pack --- */

/* Special values of an offset: 0 for NULL, 1 for an empty text outside the block; no text of the block can be
 * there, because the struct is. */
enum { NONE = 0, EMPTY = 1 };

static void loosen(struct bytes *text, const struct document *document)
{
    uintptr_t base = (uintptr_t)document, at = (uintptr_t)text->data, distance;
    if (!text->data)
        distance = NONE;
    else if (text->size == 0)
        distance = EMPTY;
    else
        distance = at - base;
    assert(distance <= EMPTY ||
           (at >= base && distance >= sizeof *document && distance + text->size <= document->block_bytes));
    memcpy(&text->data, &distance, sizeof distance);
}

static bool fasten(struct bytes *text, const struct document *document)
{
    uintptr_t distance;
    memcpy(&distance, &text->data, sizeof distance);
    if (distance <= EMPTY) {
        text->data = distance == EMPTY ? "" : NULL;
        return text->size == 0;
    }
    if (distance > document->block_bytes || text->size > document->block_bytes - distance)
        return false;
    text->data = (const char *)document + distance;
    return true;
}

void document_pack(const struct document *document, void *into)
{
    struct document *packed = into;
    memcpy(packed, document, document->block_bytes);
    packed->references = 1;
    loosen(&packed->header.class, document);
    loosen(&packed->header.id, document);
    loosen(&packed->json, document);
    for (struct item *item = packed->items; item < packed->items + document->item_count; item++) {
        loosen(&item->iclass, document);
        loosen(&item->key, document);
        loosen(&item->content, document);
        loosen(&item->json, document);
    }
}

static bool fasten_all(struct document *document)
{
    bool is_whole = fasten(&document->header.class, document) && fasten(&document->header.id, document) &&
                    fasten(&document->json, document) && document->json_header <= document->json.size;
    for (struct item *item = document->items; is_whole && item < document->items + document->item_count;
         item++)
        is_whole = fasten(&item->iclass, document) && fasten(&item->key, document) &&
                   fasten(&item->content, document) && fasten(&item->json, document);
    return is_whole;
}

struct document *document_unpack(const void *packed, size_t size)
{
    const struct document *from = packed;
    if (size < sizeof *from || from->block_bytes < sizeof *from || from->block_bytes > size ||
        from->item_count > (from->block_bytes - sizeof *from) / sizeof *from->items)
        return NULL;
    struct document *document = malloc(from->block_bytes);
    if (!document)
        log_fatal("out of memory document bytes=%zu", from->block_bytes);
    memcpy(document, packed, from->block_bytes);
    document->references = 1;
    if (!fasten_all(document)) {
        free(document);
        return NULL;
    }
    return document;
}
