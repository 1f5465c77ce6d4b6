/* firestore_mapping: a class gets the documents of one collection, so that no two have the same id. */
#include "control/foreign/firestore/firestore_mapping.h"

#include "control/foreign/firestore/firestore_entity.h"
#include "control/foreign/firestore/firestore_key.h"
#include "control/foreign/foreign_mapping.h"
#include "control/message.h"
#include "model/document/item.h"

enum { SHOWN = 60, REFUSED_MOST = 100 };

/* A collection without a class. */
struct refused_collection {
    struct bytes name;
    const char *problem;
    int64_t documents;
};

struct firestore_mapping {
    struct arena *arena; /* of the mapping */
    const struct settings *settings;
    struct bytes class;      /* of a collection that `classes` has not; NO_BYTES: none */
    struct bytes collection; /* the one that got it; NO_BYTES: none yet */
    const struct json *classes;
    struct bytes item_class, item_key;
    enum firestore_not_finite not_finite;
    struct refused_collection refused[REFUSED_MOST];
    size_t refused_count;
    int64_t other_documents; /* of further ones */
};

/* --- reading --- */

static const char *firestore_mapping_read_classes(const struct firestore_mapping *mapping)
{
    const struct json *classes = mapping->classes;
    if (classes && classes->kind != JSON_OBJECT)
        return "expected an object as \"classes\"";
    for (const struct json *class = classes ? classes->first : NULL; class; class = class->next) {
        if (class->kind == JSON_NULL)
            continue;
        if (class->kind != JSON_STRING || !item_is_class_name(class->value))
            return "expected as each of the \"classes\" null, or a capital, then up to 15 letters and digits";
        for (const struct json *other = classes->first; other != class; other = other->next)
            if (other->kind == JSON_STRING && bytes_equal(other->value, class->value))
                return "expected another class for each collection: two documents could have the same id";
    }
    return NULL;
}

static const char *read_not_finite(struct firestore_mapping *mapping, const struct json *member)
{
    static const char *const words[] = {
        [FIRESTORE_REFUSE] = "refuse", [FIRESTORE_NULL] = "null", [FIRESTORE_TEXT] = "text"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!member || (member->kind == JSON_STRING && bytes_equal(member->value, bytes_of(words[i])))) {
            mapping->not_finite = (enum firestore_not_finite)i;
            return NULL;
        }
    return "expected as \"not_finite\" \"refuse\", \"null\" or \"text\"";
}

static const char *firestore_mapping_read_text(struct firestore_mapping *mapping, struct bytes text)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 2000};
    struct json_problem problem;
    struct json *root;
    struct bytes item = BYTES("Main");
    if (json_read(mapping->arena, text, &limits, &root, &problem) != FAULT_NONE)
        return arena_printf(mapping->arena, "%s, at byte %zu", problem.what, problem.offset + 1);
    if (root->kind != JSON_OBJECT)
        return "expected an object";
    const char *unknown = foreign_mapping_unknown(mapping->arena, root, "class item classes not_finite");
    if (unknown)
        return unknown;
    mapping->classes = json_member(root, "classes");
    if (!foreign_mapping_text(json_member(root, "class"), &mapping->class) ||
        !foreign_mapping_text(json_member(root, "item"), &item))
        return "expected texts as \"class\" and \"item\"";
    if (!foreign_mapping_item(item, mapping->settings, &mapping->item_class, &mapping->item_key))
        return "expected as \"item\" a class of items, or class/key";
    const char *wrong = read_not_finite(mapping, json_member(root, "not_finite"));
    return wrong ? wrong : firestore_mapping_read_classes(mapping);
}

static bool has_class(const struct firestore_mapping *mapping, struct bytes name)
{
    const struct json *class = mapping->classes ? mapping->classes->first : NULL;
    while (class && !(class->kind == JSON_STRING && bytes_equal(class->value, name)))
        class = class->next;
    return class != NULL;
}

struct firestore_mapping *firestore_mapping_read(struct arena *arena, const struct settings *settings,
                                                 struct bytes text, const char *class, const char **problem_r)
{
    struct firestore_mapping *mapping = ARENA_NEW(arena, struct firestore_mapping);
    *mapping = (struct firestore_mapping){
        .arena = arena, .settings = settings, .item_class = BYTES("Main"), .item_key = BYTES("")};
    *problem_r = text.data ? firestore_mapping_read_text(mapping, text) : NULL;
    if (class)
        mapping->class = bytes_of(class);
    if (!*problem_r && (mapping->class.data ? !item_is_class_name(mapping->class) : !mapping->classes))
        *problem_r = "expected as the class of documents a capital, then up to 15 letters and digits";
    if (!*problem_r && mapping->class.data && has_class(mapping, mapping->class))
        *problem_r =
            "expected as the class one that \"classes\" does not have: two documents could have the same id";
    return *problem_r ? NULL : mapping;
}

/* --- documents --- */

static int shown(struct bytes text)
{
    return (int)(text.size < SHOWN ? text.size : SHOWN);
}

/* In the arena of the mapping: why the collection has no class. */
static const char *firestore_mapping_explain(const struct firestore_mapping *mapping,
                                             const struct firestore_key *key)
{
    struct bytes name = key->collection, first = mapping->collection;
    if (key->is_nested || !mapping->class.data)
        return arena_printf(mapping->arena, "the mapping has no class for the %s \"%.*s\"",
                            key->is_nested ? "subcollection" : "collection", shown(name), name.data);
    return arena_printf(
        mapping->arena,
        "the class %.*s is that of the collection \"%.*s\": name one for \"%.*s\" in \"classes\" of "
        "a mapping",
        (int)mapping->class.size, mapping->class.data, shown(first), first.data, shown(name), name.data);
}

static void firestore_mapping_refuse(struct firestore_mapping *mapping, const struct firestore_key *key)
{
    struct bytes name = key->collection;
    for (size_t i = 0; i < mapping->refused_count; i++)
        if (bytes_equal(mapping->refused[i].name, name)) {
            mapping->refused[i].documents++;
            return;
        }
    if (mapping->refused_count < REFUSED_MOST)
        mapping->refused[mapping->refused_count++] =
            (struct refused_collection){{arena_copy(mapping->arena, name.data, name.size), name.size},
                                        firestore_mapping_explain(mapping, key),
                                        1};
    else
        mapping->other_documents++;
}

enum collection_use { COLLECTION_STORED, COLLECTION_LEFT_OUT, COLLECTION_REFUSED };

/* `class_r`: where its documents are stored. */
static enum collection_use firestore_mapping_find_class(struct firestore_mapping *mapping,
                                                        const struct firestore_key *key,
                                                        struct bytes *class_r)
{
    struct bytes collection = key->collection;
    for (const struct json *class = mapping->classes ? mapping->classes->first : NULL; class;
         class = class->next)
        if (bytes_equal(class->name, collection)) {
            *class_r = class->value;
            return class->kind == JSON_STRING ? COLLECTION_STORED : COLLECTION_LEFT_OUT;
        }
    if (key->is_nested || !mapping->class.data)
        return COLLECTION_REFUSED;
    if (!mapping->collection.data)
        mapping->collection =
            (struct bytes){arena_copy(mapping->arena, collection.data, collection.size), collection.size};
    *class_r = mapping->class;
    return bytes_equal(mapping->collection, collection) ? COLLECTION_STORED : COLLECTION_REFUSED;
}

static const char *write_document(const struct firestore_mapping *mapping, struct arena *arena,
                                  struct bytes entity, const struct archive_header *header,
                                  struct builder *lines)
{
    struct builder json = {0};
    struct foreign_size size = {0};
    const char *problem =
        firestore_entity_write(arena, mapping->settings, mapping->not_finite, entity, &json);
    if (!problem) {
        const struct archive_item item = {mapping->item_class, mapping->item_key,    header->version,
                                          header->version,     builder_bytes(&json), false};
        archive_line_begin(lines, header);
        archive_line_add_item(lines, &item, true);
        archive_line_end(lines, header);
        foreign_mapping_count(&size, &item);
        problem = foreign_mapping_over(arena, mapping->settings, &size);
    }
    builder_free(&json);
    return problem;
}

enum foreign_event firestore_mapping_write(struct firestore_mapping *mapping, struct arena *arena,
                                           struct bytes entity, int64_t number, struct builder *lines,
                                           const char **problem_r)
{
    struct archive_header header = {.version = number, .ctime = number, .dtime = number};
    struct firestore_key key = {0};
    size_t before = lines->size;
    enum collection_use use = COLLECTION_STORED;
    struct bytes reference = firestore_entity_key(entity);
    *problem_r = reference.data ? firestore_key_read(arena, reference, &key)
                                : "expected an entity of Datastore, as exports of Firestore have";
    if (!*problem_r)
        use = firestore_mapping_find_class(mapping, &key, &header.class);
    if (use == COLLECTION_REFUSED)
        firestore_mapping_refuse(mapping, &key);
    if (use != COLLECTION_STORED)
        return use == COLLECTION_REFUSED ? FOREIGN_WRONG : FOREIGN_LEFT_OUT;
    if (!*problem_r)
        *problem_r = foreign_mapping_wrong_id(arena, mapping->settings, key.id);
    header.id = key.id;
    if (!*problem_r)
        *problem_r = write_document(mapping, arena, entity, &header, lines);
    if (!*problem_r)
        return FOREIGN_DOCUMENT;
    lines->size = before;
    if (key.id.size)
        *problem_r = arena_printf(arena, "%.*s of %.*s: %s", shown(key.id), key.id.data,
                                  shown(key.collection), key.collection.data, *problem_r);
    return FOREIGN_WRONG;
}

void firestore_mapping_report(const struct firestore_mapping *mapping, const char *path)
{
    for (size_t i = 0; i < mapping->refused_count; i++)
        message_print("%s: %s (documents: %lld)", path, mapping->refused[i].problem,
                      (long long)mapping->refused[i].documents);
    if (mapping->other_documents)
        message_print("%s: %lld documents of further collections without a class", path,
                      (long long)mapping->other_documents);
}
