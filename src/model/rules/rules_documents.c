/* rules_documents: builds snapshots from items in any order. */
#include "model/rules/rules_documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"

#define BIRTH INT64_C(200101000000000)

bool rules_documents_refuse(struct rules_documents *documents, const char *place, const char *problem)
{
    documents->place = place;
    documents->problem = problem;
    return false;
}

bool rules_documents_check_members(struct rules_documents *documents, const char *where,
                                   const struct json *object, const char *known)
{
    if (object->kind != JSON_OBJECT || object->is_shallow)
        return rules_documents_refuse(documents, where, "An object is expected.");
    for (const struct json *member = object->first; member; member = member->next) {
        if (names_have(known, member->name))
            continue;
        struct builder words = {0};
        names_explain(known, "member", member->name, &words);
        rules_documents_refuse(documents, where,
                               arena_printf(documents->arena, "%.*s", (int)words.size, words.data));
        builder_free(&words);
        return false;
    }
    return true;
}

/* --- documents --- */

static void rules_documents_release(void *document)
{
    document_release(document);
}

static int rules_documents_compare(const void *a, const void *b)
{
    const struct item *one = a, *other = b;
    return item_compare(one->iclass, one->key, other->iclass, other->key);
}

const struct document *rules_documents_build(struct rules_documents *documents, const char *where,
                                             struct bytes class, struct bytes id, struct item *items,
                                             size_t count)
{
    const struct header header = {.class = class, .id = id, .version = BIRTH, .ctime = BIRTH, .dtime = BIRTH};
    qsort(items, count, sizeof *items, rules_documents_compare);
    for (size_t i = 1; i < count; i++)
        if (rules_documents_compare(&items[i - 1], &items[i]) == 0) {
            rules_documents_refuse(documents, where,
                                   arena_printf(documents->arena, "The item %.*s stands here twice.",
                                                (int)items[i].iclass.size, items[i].iclass.data));
            return NULL;
        }
    struct document *document = document_build(&header, items, count);
    arena_defer(documents->arena, rules_documents_release, document);
    return document;
}

const struct document *rules_documents_none(struct rules_documents *documents, struct bytes class,
                                            struct bytes id)
{
    const struct header header = {.class = class, .id = id};
    struct document *document = document_build(&header, NULL, 0);
    arena_defer(documents->arena, rules_documents_release, document);
    return document;
}

static bool rules_documents_read_item(struct rules_documents *documents, const char *where,
                                      const struct json *value, struct item *item)
{
    if (!rules_documents_check_members(documents, where, value, "c k j s"))
        return false;
    const struct json *class = json_member(value, "c"), *key = json_member(value, "k"),
                      *content = json_member(value, "j"), *text = json_member(value, "s");
    if (!class || class->kind != JSON_STRING || !item_is_class_name(class->value))
        return rules_documents_refuse(documents, where,
                                      "The member c is expected: the name of a class of items.");
    if (key && (key->kind != JSON_STRING || !key->value.size || key->value.size > 255))
        return rules_documents_refuse(documents, where, "The member k is a text of 1 to 255 bytes.");
    if (!content == !text || (text && text->kind != JSON_STRING))
        return rules_documents_refuse(documents, where,
                                      "One of j (a JSON value) and s (a text) is expected.");
    *item = (struct item){.iclass = class->value,
                          .key = key ? key->value : BYTES(""),
                          .version = BIRTH,
                          .vop = BIRTH,
                          .raw = text != NULL,
                          .content = text ? text->value : content->text};
    return true;
}

static bool rules_documents_read_name(struct rules_documents *documents, const char *where,
                                      const struct json *value, struct bytes *class_r, struct bytes *id_r)
{
    const struct json *class = json_member(value, "c"), *id = json_member(value, "id");
    if (!class || class->kind != JSON_STRING || !item_is_class_name(class->value))
        return rules_documents_refuse(documents, where,
                                      "The member c is expected: the name of a class of documents.");
    if (!id || id->kind != JSON_STRING || !id->value.size || id->value.size > 255)
        return rules_documents_refuse(documents, where,
                                      "The member id is expected: a text of 1 to 255 bytes.");
    *class_r = class->value;
    *id_r = id->value;
    return true;
}

const struct document *rules_documents_read(struct rules_documents *documents, const char *where,
                                            const struct json *value)
{
    struct bytes class, id;
    if (!rules_documents_check_members(documents, where, value, "c id items") ||
        !rules_documents_read_name(documents, where, value, &class, &id))
        return NULL;
    const struct json *list = json_member(value, "items");
    if (list && (list->kind != JSON_ARRAY || list->is_shallow || list->count > RULES_DOCUMENTS_ITEMS_MOST)) {
        rules_documents_refuse(documents, arena_printf(documents->arena, "%s.items", where),
                               arena_printf(documents->arena, "A list of at most %d items is expected.",
                                            RULES_DOCUMENTS_ITEMS_MOST));
        return NULL;
    }
    struct item *items = ARENA_ARRAY(documents->arena, struct item, list ? list->count : 0);
    size_t count = 0;
    for (const struct json *one = list ? list->first : NULL; one; one = one->next, count++) {
        const char *at = arena_printf(documents->arena, "%s.items[%zu]", where, count);
        if (!rules_documents_read_item(documents, at, one, &items[count]))
            return NULL;
    }
    return rules_documents_build(documents, where, class, id, items, count);
}

/* --- the list --- */

void rules_documents_add(struct rules_documents *documents, const struct document *document)
{
    ARENA_GROW(documents->arena, documents->list, documents->count, documents->capacity);
    documents->list[documents->count++] = document;
}

const struct document *rules_documents_find(const struct rules_documents *documents, struct bytes class,
                                            struct bytes id)
{
    for (size_t i = 0; i < documents->count; i++) {
        const struct header *header = &documents->list[i]->header;
        if (bytes_equal(header->class, class) && bytes_equal(header->id, id))
            return documents->list[i];
    }
    return NULL;
}

enum fault rules_documents_load(void *documents, struct bytes class, struct bytes id,
                                const struct document **document_r)
{
    *document_r = rules_documents_find(documents, class, id);
    if (!*document_r)
        *document_r = rules_documents_none(documents, class, id);
    return FAULT_NONE;
}

struct draft *rules_documents_change(struct arena *arena, const struct document *before,
                                     const struct document *after)
{
    struct draft *draft = draft_open(arena, (struct document *)before);
    if (!after) {
        draft_delete(draft);
        return draft;
    }
    draft_create(draft);
    for (const struct item *item = before->items; item < before->items + before->item_count; item++)
        if (!document_find_item(after, item->iclass, item->key))
            draft_remove_item(draft, item->iclass, item->key);
    for (const struct item *item = after->items; item < after->items + after->item_count; item++)
        draft_set_item(draft, item->iclass, item->key, item->raw, item->content);
    return draft;
}

bool rules_documents_is_name(struct bytes text, struct bytes *class_r, struct bytes *id_r)
{
    const char *slash = text.size ? memchr(text.data, '/', text.size) : NULL;
    if (!slash)
        return false;
    *class_r = (struct bytes){text.data, (size_t)(slash - text.data)};
    *id_r = (struct bytes){slash + 1, text.size - class_r->size - 1};
    return item_is_class_name(*class_r) && id_r->size && id_r->size <= 255;
}
