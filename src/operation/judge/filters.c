/* filters: each decision has an arena of its own; what is shown is built from the items that are left. */
#include "operation/judge/filters.h"

#include <stdlib.h>

#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "operation/signed_text.h"

struct filter_entry {
    const struct filter *filter;
    struct filter_entry *next;
};
static struct filter_entry *first;

struct filters {
    const struct filter *const *items;
    size_t count;
};

bool filters_add(const struct filter *filter)
{
    for (const struct filter_entry *entry = first; entry; entry = entry->next)
        if (bytes_equal(entry->filter->class, filter->class))
            return false;
    struct filter_entry *entry = memory_zeroed(1, sizeof *entry, "adding a filter");
    *entry = (struct filter_entry){filter, first};
    first = entry;
    return true;
}

const struct filters *filters_find(struct arena *arena, struct bytes ns)
{
    size_t count = 0;
    for (const struct filter_entry *entry = first; entry; entry = entry->next)
        count++;
    if (!count)
        return NULL;
    const struct filter **items = ARENA_ARRAY(arena, const struct filter *, count);
    const char *code = arena_copy(arena, ns.data, ns.size);
    count = 0;
    for (const struct filter_entry *entry = first; entry; entry = entry->next)
        if (entry->filter->applies(entry->filter, code))
            items[count++] = entry->filter;
    if (!count)
        return NULL;
    struct filters *filters = ARENA_NEW(arena, struct filters);
    *filters = (struct filters){items, count};
    return filters;
}

static const struct filter *find_filters(const struct filters *filters, struct bytes class)
{
    for (size_t i = 0; filters && i < filters->count; i++)
        if (bytes_equal(filters->items[i]->class, class))
            return filters->items[i];
    return NULL;
}

bool filters_cover(const struct filters *filters, struct bytes class)
{
    return find_filters(filters, class) != NULL;
}

void filters_add_versions(const struct filters *filters, struct builder *text)
{
    for (size_t i = 0; filters && i < filters->count; i++) {
        signed_text_add_part(text, filters->items[i]->class);
        signed_text_add_part(text, filters->items[i]->version);
    }
}

/* --- a decision --- */

/* What is left of a document. */
struct left {
    struct item *items;
    size_t count;
    struct view_class *classes;
    size_t class_count;
    struct builder names; /* of all that decides what is shown */
};

static void select_item(const struct filter *filter, struct filter_run *run, enum filter_sight sight,
                        const struct item *item, struct left *left)
{
    struct bytes content = NO_BYTES;
    if (item_is_tombstone(item)) { /* of an item that may never have been shown */
        if (sight == FILTER_REWRITES)
            left->items[left->count++] = *item;
        return;
    }
    enum filter_verdict verdict = filter->judge(run, item, &content);
    if (verdict == FILTER_EXCLUDES)
        return;
    struct item *shown = &left->items[left->count++];
    *shown = *item;
    if (verdict == FILTER_REPLACES)
        shown->content = content;
    if (sight == FILTER_SELECTS) {
        signed_text_add_part(&left->names, item->iclass);
        signed_text_add_part(&left->names, item->key);
    }
}

static void select_items(const struct filter *filter, struct filter_run *run, struct arena *arena,
                         const struct document *document, struct left *left)
{
    enum filter_sight sight = FILTER_HIDES;
    for (uint32_t i = 0; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        if (!i || !bytes_equal(item->iclass, document->items[i - 1].iclass)) {
            sight = filter->see(run, item->iclass);
            left->classes[left->class_count++] = (struct view_class){
                .name = {arena_copy(arena, item->iclass.data, item->iclass.size), item->iclass.size},
                .is_hidden = sight == FILTER_HIDES,
                .is_plain = sight == FILTER_SHOWS};
        }
        if (sight == FILTER_SHOWS)
            left->items[left->count++] = *item;
        else if (sight != FILTER_HIDES)
            select_item(filter, run, sight, item, left);
    }
}

static void filters_release(void *document)
{
    document_release(document);
}

enum { NAME_SIZE = 16 };

static void show_filters(struct arena *arena, const struct document **document, struct view *view,
                         const struct left *left)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct document *shown = document_build(&(*document)->header, left->items, left->count);
    shown->until = (*document)->until;
    arena_defer(arena, filters_release, shown);
    arena_count(arena, shown->block_bytes);
    *document = shown;
    crypto_sha256_hex(builder_bytes(&left->names), digest);
    view->filtered = arena_copy(arena, digest, NAME_SIZE);
    view->classes = left->classes;
    view->class_count = left->class_count;
}

bool filters_show(const struct filters *filters, const struct filter_question *question, struct arena *arena,
                  const struct document **document, struct view *view)
{
    const struct filter *filter = find_filters(filters, (*document)->header.class);
    if (!filter)
        return true;
    struct bytes name;
    struct arena *own = arena_create("filter");
    struct filter_run *run = filter->begin(filter, question, own, *document, &name);
    struct left left = {.items = ARENA_ROOM(own, struct item, (*document)->item_count + 1), .classes = NULL};
    if (name.size) {
        left.classes = ARENA_ROOM(arena, struct view_class, (*document)->item_count + 1);
        signed_text_add_part(&left.names, filter->version);
        signed_text_add_part(&left.names, bytes_of(rules_view_name(&view->rules, arena)));
        signed_text_add_part(&left.names, name);
        select_items(filter, run, arena, *document, &left);
    }
    bool is_shown = filter->end(run) && name.data;
    if (is_shown && name.size)
        show_filters(arena, document, view, &left);
    builder_free(&left.names);
    arena_destroy(own);
    return is_shown;
}

bool filters_hide(const struct filters *filters, const struct filter_question *question,
                  const struct document *document, struct bytes item_class)
{
    const struct filter *filter = find_filters(filters, document->header.class);
    if (!filter)
        return false;
    struct bytes name;
    struct arena *own = arena_create("filter");
    struct filter_run *run = filter->begin(filter, question, own, document, &name);
    bool is_hidden = !name.data || (name.size && filter->see(run, item_class) == FILTER_HIDES);
    is_hidden |= !filter->end(run);
    arena_destroy(own);
    return is_hidden;
}
