/* document_pack: converts pointers to offsets and back. */
#include "model/document/document_pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

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
