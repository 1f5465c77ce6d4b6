/* rules_case: reads a case, and decides it by the functions that the server uses. */
#include "model/rules/rules_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"

/* --- rules documents --- */

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

/* --- reading --- */

static bool rules_case_refuse(struct rules_documents *documents, const char *where, const char *member,
                              const char *expected)
{
    return rules_documents_refuse(documents, arena_printf(documents->arena, "%s.%s", where, member),
                                  expected);
}

static bool rules_case_read_roles(struct rules_documents *documents, const char *where,
                                  const struct json *list, struct rules_caller *caller)
{
    struct bytes roles[RULES_ROLES_MOST];
    size_t count = 0;
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count > RULES_ROLES_MOST)
        return rules_case_refuse(documents, where, "caller.roles",
                                 "A list of at most 32 names of roles is expected.");
    for (const struct json *one = list->first; one; one = one->next) {
        if (one->kind != JSON_STRING || !rules_is_role(one->value))
            return rules_case_refuse(documents, where, "caller.roles",
                                     "A list of at most 32 names of roles is expected.");
        roles[count++] = one->value;
    }
    rules_caller_set_roles(documents->arena, caller, roles, count);
    return true;
}

/* Absent: nobody has signed in. */
static bool read_caller(struct rules_documents *documents, const char *where, const struct json *value,
                        struct rules_caller *caller)
{
    *caller = (struct rules_caller){.account = NO_BYTES};
    if (!value)
        return true;
    if (!rules_documents_check_members(documents, arena_printf(documents->arena, "%s.caller", where), value,
                                       "account roles"))
        return false;
    const struct json *account = json_member(value, "account"), *roles = json_member(value, "roles");
    if (account && (account->kind != JSON_STRING || !account->value.size))
        return rules_case_refuse(documents, where, "caller.account",
                                 "The id of an account is expected; without one, leave it out.");
    if (account)
        caller->account = account->value;
    return !roles || rules_case_read_roles(documents, where, roles, caller);
}

static bool read_document(struct rules_documents *documents, const char *where, const char *member,
                          const struct json *value, const struct document **document_r)
{
    struct bytes class, id;
    if (value->kind != JSON_STRING) {
        const char *at = arena_printf(documents->arena, "%s.%s", where, member);
        *document_r = rules_documents_read(documents, at, value);
        return *document_r != NULL;
    }
    if (!rules_documents_is_name(value->value, &class, &id))
        return rules_case_refuse(documents, where, member,
                                 "A document is expected, or the name of one: \"Class/id\".");
    *document_r = rules_documents_find(documents, class, id);
    return *document_r ||
           rules_case_refuse(documents, where, member, "A document of this name is expected in documents.");
}

static bool read_deed(struct rules_documents *documents, const char *where, const struct json *value,
                      struct rules_case *case_r)
{
    const struct json *may = json_member(value, "may"), *item = json_member(value, "item");
    if (!may || may->kind != JSON_STRING || !rules_deed_find(may->value, &case_r->deed))
        return rules_case_refuse(documents, where, "may",
                                 "One of read, list, create, update, delete, see and write is expected.");
    bool needs_item = case_r->deed == RULES_DEED_SEE || case_r->deed == RULES_DEED_WRITE;
    if (needs_item != (item != NULL))
        return rules_case_refuse(documents, where, "item",
                                 "The class of items is expected with see and write, and only there.");
    if (item && (item->kind != JSON_STRING || !item_is_class_name(item->value)))
        return rules_case_refuse(documents, where, "item", "The name of a class of items is expected.");
    case_r->item = item ? item->value : NO_BYTES;
    return true;
}

/* Before and after: a document that is created is given as either. */
static bool rules_case_read_documents(struct rules_documents *documents, const char *where,
                                      const struct json *value, struct rules_case *case_r)
{
    const struct json *before = json_member(value, "document"), *after = json_member(value, "after");
    bool is_create = case_r->deed == RULES_DEED_CREATE;
    bool may_have_after = is_create || case_r->deed == RULES_DEED_UPDATE || case_r->deed == RULES_DEED_WRITE;
    if (after && !may_have_after)
        return rules_case_refuse(documents, where, "after",
                                 "It is expected with create, update and write alone.");
    if (!before && !(is_create && after))
        return rules_case_refuse(documents, where, "document",
                                 "A document is expected, or the name of one: \"Class/id\".");
    if ((before && !read_document(documents, where, "document", before, &case_r->before)) ||
        (after && !read_document(documents, where, "after", after, &case_r->after)))
        return false;
    if (is_create) {
        case_r->after = case_r->after ? case_r->after : case_r->before;
        const struct header *header = &case_r->after->header;
        case_r->before = rules_documents_none(documents, header->class, header->id);
    } else if (after && (!bytes_equal(case_r->before->header.class, case_r->after->header.class) ||
                         !bytes_equal(case_r->before->header.id, case_r->after->header.id))) {
        return rules_case_refuse(documents, where, "after",
                                 "The same document as in document is expected: its class and id.");
    }
    return true;
}

bool rules_case_read(struct rules_documents *documents, const char *where, const struct json *value,
                     struct rules_case *case_r)
{
    *case_r = (struct rules_case){.where = where};
    if (!rules_documents_check_members(documents, where, value,
                                       "name caller may document after item expected"))
        return false;
    const struct json *name = json_member(value, "name"), *expected = json_member(value, "expected");
    if (name && name->kind != JSON_STRING)
        return rules_case_refuse(documents, where, "name", "A text is expected.");
    if (!expected || (expected->kind != JSON_TRUE && expected->kind != JSON_FALSE))
        return rules_case_refuse(documents, where, "expected", "true or false is expected.");
    case_r->name = name ? name->value : NO_BYTES;
    case_r->expected = expected->kind == JSON_TRUE;
    return read_deed(documents, where, value, case_r) &&
           read_caller(documents, where, json_member(value, "caller"), &case_r->caller) &&
           rules_case_read_documents(documents, where, value, case_r);
}

/* --- deciding --- */

struct rules_answer rules_case_decide(struct arena *arena, const struct rules *rules,
                                      const struct rules_case *one,
                                      enum fault (*load)(void *context, struct bytes class, struct bytes id,
                                                         const struct document **document_r),
                                      void *context)
{
    struct rules_question question = {
        .rules = rules, .caller = &one->caller, .load = load, .context = context, .arena = arena};
    struct rules_answer answer = {0};
    const struct document *after = one->deed == RULES_DEED_DELETE ? NULL
                                   : one->after                   ? one->after
                                                                  : one->before;
    const struct draft *draft = rules_documents_change(arena, one->before, after);
    answer.may = rules_deed_may(&question, one->deed, draft, one->item, &answer.view);
    answer.rule = question.rule;
    answer.fault = question.fault;
    return answer;
}

/* --- rules deed --- */

static const char *const deeds[] = {
    [RULES_DEED_READ] = "read",     [RULES_DEED_LIST] = "list",     [RULES_DEED_CREATE] = "create",
    [RULES_DEED_UPDATE] = "update", [RULES_DEED_DELETE] = "delete", [RULES_DEED_SEE] = "see",
    [RULES_DEED_WRITE] = "write"};

bool rules_deed_find(struct bytes word, enum rules_deed *deed_r)
{
    for (size_t i = 0; i < COUNT_OF(deeds); i++)
        if (bytes_equal(word, bytes_of(deeds[i]))) {
            *deed_r = (enum rules_deed)i;
            return true;
        }
    return false;
}

const char *rules_deed_word(enum rules_deed deed)
{
    return deeds[deed];
}

bool rules_deed_may(struct rules_question *question, enum rules_deed deed, const struct draft *draft,
                    struct bytes item_class, struct rules_view *view_r)
{
    const struct document *before = draft_base(draft);
    switch (deed) {
    case RULES_DEED_READ:
        return rules_may_read(question, before, view_r);
    case RULES_DEED_LIST:
        return rules_may_list(question, before, view_r);
    case RULES_DEED_SEE:
        return rules_may_see(question, before, item_class);
    case RULES_DEED_WRITE:
        return rules_may_write(question, draft, item_class);
    case RULES_DEED_CREATE:
    case RULES_DEED_UPDATE:
    case RULES_DEED_DELETE:
        break;
    }
    return draft_is_changed(draft) ? rules_may_change(question, draft)
                                   : rules_may_write(question, draft, NO_BYTES);
}
