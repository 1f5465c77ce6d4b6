/* schema_read: reads a declaration from its JSON text.  The first error ends the reading and is reported with
 * its path; referenced names are resolved when the items of their class are known. */
#include "model/schema/schema.h"

#include <stdlib.h>

#include "model/document/item.h"
#include "model/content/content.h"
#include "model/document/mutation.h"
#include "model/schema/schema_paths.h"
#include "model/schema/schema_reader.h"
#include "model/schema/schema_searches.h"
#include "edge/json/json.h"

/* Lists of structs that begin with their name are sorted by it. */
static int schema_read_compare_names(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* --- items and fields ---------------------------------------------------------------------------- */

/* PostgreSQL's system columns: no table or view can have another column of that name. */
static bool is_system_column(struct bytes name)
{
    static const char *const names[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (bytes_equal(name, bytes_of(names[i])))
            return true;
    return false;
}

static bool schema_read_read_field(struct schema_reader *reader, struct schema_node node,
                                   struct schema_field *field)
{
    field->name = node.value->name;
    if (!schema_is_field_name(field->name))
        return schema_reader_refuse(
            reader, node.path,
            "A name of a field is a letter, then up to 25 letters, digits and '_'; class, id, iclass, "
            "key, version, vop, content and raw are taken.");
    if (is_system_column(field->name))
        return schema_reader_refuse(
            reader, node.path,
            "Another name is expected: ctid, xmin, xmax, cmin, cmax and tableoid are columns that "
            "PostgreSQL gives to every table.");
    if (node.value->kind == JSON_OBJECT && (json_member(node.value, "type") || json_member(node.value, "at")))
        return schema_paths_read(reader, node, field);
    if (node.value->kind == JSON_OBJECT && !node.value->is_shallow)
        return schema_texts_read(reader, node, field);
    if (node.value->kind != JSON_STRING || !schema_type_of(node.value->value, &field->type, &field->is_list))
        return schema_reader_refuse(reader, node.path, SCHEMA_TYPE_EXPECTED);
    return true;
}

static bool read_fields(struct schema_reader *reader, struct schema_node item_node, struct schema_item *item)
{
    const struct json *member = json_member(item_node.value, "fields");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, item_node, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_FIELDS_MOST, "An object of names and types is expected."))
        return false;
    if (item->is_raw && member->count)
        return schema_reader_refuse(reader, node.path, "Items that are raw text have no fields.");
    struct schema_field *fields = ARENA_ARRAY(reader->arena, struct schema_field, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!schema_read_read_field(reader, schema_reader_member(reader, node, one),
                                    &fields[item->field_count++]))
            return false;
    qsort(fields, item->field_count, sizeof *fields, schema_read_compare_names);
    item->fields = fields;
    return true;
}

static bool read_target(struct schema_reader *reader, struct schema_node node, struct schema_copies *copies)
{
    if (node.value->kind != JSON_STRING || !item_is_class_name(node.value->value))
        return schema_reader_refuse(reader, node.path, "The name of a class of documents is expected.");
    for (size_t i = 0; i < copies->count; i++)
        if (bytes_equal(copies->classes[i], node.value->value))
            return schema_reader_refuse(reader, node.path, "Each class is named once.");
    copies->classes[copies->count++] = node.value->value;
    return true;
}

/* Whether the target classes can take the copies is checked when all classes are known. */
static bool read_copies(struct schema_reader *reader, struct schema_node item_node, struct schema_item *item)
{
    static const char *const members[] = {"to", "separator", NULL};
    const struct json *member = json_member(item_node.value, "copies");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, item_node, member);
    if (!schema_reader_is_object(reader, node, "An object with to and separator is expected.") ||
        !schema_reader_has_only(reader, node, members))
        return false;
    struct schema_copies *copies = ARENA_NEW(reader->arena, struct schema_copies);
    const struct json *to = json_member(node.value, "to");
    if (!to || to->kind != JSON_ARRAY || to->is_shallow || !to->count || to->count > SCHEMA_COPIES_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "The member to is expected: a list of 1 to 16 classes of documents.");
    for (const struct json *one = to->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s.to[%zu]", node.path, copies->count), one};
        if (!read_target(reader, at, copies))
            return false;
    }
    const struct json *separator = json_member(node.value, "separator");
    copies->separator = separator ? separator->value : BYTES(".");
    if (separator && (separator->kind != JSON_STRING || !separator->value.size ||
                      separator->value.size > SCHEMA_SEPARATOR_MOST))
        return schema_reader_refuse(reader, schema_reader_member(reader, node, separator).path,
                                    "A string of 1 to 8 bytes is expected.");
    item->copies = copies;
    return true;
}

/* A JSON Schema; its place within is added to the path as a JSON pointer. */
static bool schema_read_read_content(struct schema_reader *reader, struct schema_node item_node,
                                     struct schema_item *item)
{
    const struct json *member = json_member(item_node.value, "content");
    struct content_problem problem;
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, item_node, member);
    item->content_text = member->text;
    return content_compile(reader->arena, member, item->is_raw, &item->content, &problem) ||
           schema_reader_refuse(reader, arena_printf(reader->arena, "%s%s", node.path, problem.place),
                                problem.expected);
}

static bool schema_read_read_item(struct schema_reader *reader, struct schema_node node,
                                  struct schema_item *item)
{
    static const char *const members[] = {"singleton", "raw",    "clear",   "fields",
                                          "indexes",   "copies", "content", NULL};
    item->name = node.value->name;
    if (!item_is_class_name(item->name))
        return schema_reader_refuse(
            reader, node.path,
            "A name of a class of items is a capital letter, then up to 15 letters and digits.");
    if (item_is_reserved(item->name))
        return schema_reader_refuse(reader, node.path, ITEM_RESERVED);
    return schema_reader_is_object(
               reader, node,
               "An object with singleton, raw, clear, fields, indexes, copies and content is expected.") &&
           schema_reader_has_only(reader, node, members) &&
           schema_reader_flag(reader, node, "singleton", &item->is_singleton) &&
           schema_reader_flag(reader, node, "raw", &item->is_raw) &&
           schema_reader_flag(reader, node, "clear", &item->is_clear) && read_fields(reader, node, item) &&
           schema_indexes_read(reader, node, item) && read_copies(reader, node, item) &&
           schema_read_read_content(reader, node, item);
}

static bool read_items(struct schema_reader *reader, struct schema_node class_node,
                       struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "items");
    if (!member)
        return schema_reader_refuse(reader, class_node.path,
                                    "The member items is expected: the classes of its items.");
    struct schema_node node = schema_reader_member(reader, class_node, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_ITEMS_MOST, "An object of names and items is expected."))
        return false;
    struct schema_item *items = ARENA_ARRAY(reader->arena, struct schema_item, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!schema_read_read_item(reader, schema_reader_member(reader, node, one),
                                   &items[class->item_count++]))
            return false;
    qsort(items, class->item_count, sizeof *items, schema_read_compare_names);
    class->items = items;
    return true;
}

/* --- properties, collections, unique properties -------------------------------------------------- */

/* "Item.member", where the item is a JSON singleton of the class. */
static bool read_property(struct schema_reader *reader, struct schema_node node,
                          const struct schema_class *class, struct schema_property *property)
{
    struct bytes text = node.value->value;
    const char *dot = node.value->kind == JSON_STRING ? memchr(text.data, '.', text.size) : NULL;
    if (!dot)
        return schema_reader_refuse(reader, node.path, "A property is expected: \"Item.member\".");
    struct bytes item = {text.data, (size_t)(dot - text.data)};
    property->member = (struct bytes){dot + 1, text.size - item.size - 1};
    property->item = schema_find_item(class, item);
    if (!property->item || !property->item->is_singleton || property->item->is_raw)
        return schema_reader_refuse(
            reader, node.path,
            "A property is a member of an item that is declared here, a singleton and JSON.");
    if (!schema_is_field_name(property->member))
        return schema_reader_refuse(
            reader, node.path,
            "The member of a property is a letter, then up to 25 letters, digits and '_'.");
    const struct schema_field *field = schema_find_field(property->item, property->member);
    if (field && field->path)
        return schema_reader_refuse(
            reader, node.path,
            "A member of the content itself is expected: this name is that of a field at another place.");
    if (field && (field->is_list || field->type == FIELD_HASH || field->text) &&
        bytes_equal(node.value->name, BYTES("maxLife")))
        return schema_reader_refuse(reader, node.path, "A property that is one number is expected.");
    return true;
}

static bool schema_read_read_keys(struct schema_reader *reader, struct schema_node object,
                                  const struct schema_class *class, struct schema_property *keys,
                                  size_t *count_r)
{
    const struct json *member = json_member(object.value, "key");
    *count_r = 0;
    if (!member)
        return schema_reader_refuse(reader, object.path, "The member key is expected: a list of properties.");
    struct schema_node node = schema_reader_member(reader, object, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || !member->count ||
        member->count > SCHEMA_KEYS_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "A list of 1 to 4 properties \"Item.member\" is expected.");
    for (const struct json *one = member->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, *count_r), one};
        if (!read_property(reader, at, class, &keys[*count_r]))
            return false;
        ++*count_r;
    }
    return true;
}

/* Names of collections and unique properties occur in definitions and lock keys. */
static bool is_property_name(struct schema_reader *reader, struct schema_node node)
{
    return schema_is_field_name(node.value->name) ||
           schema_reader_refuse(reader, node.path,
                                "A name is a letter, then up to 25 letters, digits and '_'.");
}

/* "keys":"Item": the keys of its items, which are JSON and no singletons. */
static bool read_item_keys(struct schema_reader *reader, struct schema_node object,
                           const struct schema_class *class, struct schema_collection *collection)
{
    const struct json *member = json_member(object.value, "keys");
    struct schema_node node = schema_reader_member(reader, object, member);
    const struct schema_item *item =
        member->kind == JSON_STRING ? schema_find_item(class, member->value) : NULL;
    if (json_member(object.value, "key") || json_member(object.value, "list"))
        return schema_reader_refuse(reader, node.path, "Beside keys neither key nor list is expected.");
    if (!item || item->is_singleton || item->is_raw)
        return schema_reader_refuse(reader, node.path,
                                    "An item that is declared here is expected: JSON, and no singleton.");
    collection->keys[0] = (struct schema_property){item, BYTES("")};
    collection->key_count = 1;
    collection->is_list = true;
    return true;
}

static bool read_collection(struct schema_reader *reader, struct schema_node node,
                            const struct schema_class *class, struct schema_collection *collection)
{
    static const char *const members[] = {"key", "keys", "list", "mutable", NULL};
    collection->name = node.value->name;
    if (!is_property_name(reader, node) ||
        !schema_reader_is_object(reader, node, "An object with key or keys, list and mutable is expected.") ||
        !schema_reader_has_only(reader, node, members) ||
        !schema_reader_flag(reader, node, "list", &collection->is_list) ||
        !schema_reader_flag(reader, node, "mutable", &collection->is_mutable))
        return false;
    if (json_member(node.value, "keys"))
        return read_item_keys(reader, node, class, collection);
    if (!schema_read_read_keys(reader, node, class, collection->keys, &collection->key_count))
        return false;
    if (collection->is_list && collection->key_count > 1)
        return schema_reader_refuse(reader, node.path, "A collection by the elements of a list has one key.");
    for (size_t i = 0; i < collection->key_count; i++) {
        const struct schema_field *field =
            schema_find_field(collection->keys[i].item, collection->keys[i].member);
        if (field && field->is_list != collection->is_list)
            return schema_reader_refuse(reader, node.path,
                                        collection->is_list ? "With list, the key must be a list."
                                                            : "A key that is a list needs \"list\": true.");
    }
    return true;
}

static bool read_collections(struct schema_reader *reader, struct schema_node class_node,
                             struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "collections");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, class_node, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_ITEMS_MOST,
                               "An object of names and collections is expected."))
        return false;
    struct schema_collection *list = ARENA_ARRAY(reader->arena, struct schema_collection, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_collection(reader, schema_reader_member(reader, node, one), class,
                             &list[class->collection_count++]))
            return false;
    qsort(list, class->collection_count, sizeof *list, schema_read_compare_names);
    class->collections = list;
    return true;
}

static bool read_unique(struct schema_reader *reader, struct schema_node node,
                        const struct schema_class *class, struct schema_unique *unique)
{
    static const char *const members[] = {"key", "global", NULL};
    unique->name = node.value->name;
    if (!is_property_name(reader, node) ||
        !schema_reader_is_object(reader, node, "An object with key and global is expected.") ||
        !schema_reader_has_only(reader, node, members) ||
        !schema_reader_flag(reader, node, "global", &unique->is_global))
        return false;
    return schema_read_read_keys(reader, node, class, unique->keys, &unique->key_count);
}

static bool read_uniques(struct schema_reader *reader, struct schema_node class_node,
                         struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "unique");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, class_node, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_ITEMS_MOST,
                               "An object of names and unique properties is expected."))
        return false;
    struct schema_unique *list = ARENA_ARRAY(reader->arena, struct schema_unique, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_unique(reader, schema_reader_member(reader, node, one), class,
                         &list[class->unique_count++]))
            return false;
    qsort(list, class->unique_count, sizeof *list, schema_read_compare_names);
    class->uniques = list;
    return true;
}

static bool read_max_life(struct schema_reader *reader, struct schema_node class_node,
                          struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "maxLife");
    return !member ||
           read_property(reader, schema_reader_member(reader, class_node, member), class, &class->max_life);
}

/* --- mutations ----------------------------------------------------------------------------------- */

static bool is_member_name(struct schema_reader *reader, const char *path, struct bytes name)
{
    return (name.size && name.size <= 255) ||
           schema_reader_refuse(reader, path, "The name of a member has 1 to 255 bytes.");
}

static bool add_renames(struct schema_reader *reader, struct schema_node node,
                        struct schema_mutation *mutation)
{
    if (!schema_reader_is_list(reader, node, SCHEMA_ITEMS_MOST,
                               "An object of old and new names is expected."))
        return false;
    for (const struct json *one = node.value->first; one; one = one->next) {
        struct schema_node at = schema_reader_member(reader, node, one);
        if (one->kind != JSON_STRING)
            return schema_reader_refuse(reader, at.path, "The new name of the member is expected.");
        if (!is_member_name(reader, at.path, one->name) || !is_member_name(reader, at.path, one->value))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_RENAME, one->name, one->value};
    }
    return true;
}

static bool add_defaults(struct schema_reader *reader, struct schema_node node,
                         struct schema_mutation *mutation)
{
    if (!schema_reader_is_list(reader, node, SCHEMA_ITEMS_MOST,
                               "An object of members and their values is expected."))
        return false;
    for (const struct json *one = node.value->first; one; one = one->next) {
        if (!is_member_name(reader, schema_reader_member(reader, node, one).path, one->name))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_DEFAULT, one->name, one->text};
    }
    return true;
}

static bool add_drops(struct schema_reader *reader, struct schema_node node, struct schema_mutation *mutation)
{
    if (node.value->kind != JSON_ARRAY || node.value->is_shallow || node.value->count > SCHEMA_ITEMS_MOST)
        return schema_reader_refuse(reader, node.path, "A list of up to 64 names of members is expected.");
    for (const struct json *one = node.value->first; one; one = one->next) {
        if (one->kind != JSON_STRING)
            return schema_reader_refuse(reader, node.path,
                                        "A list of up to 64 names of members is expected.");
        if (!is_member_name(reader, node.path, one->value))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_DROP, one->value, NO_BYTES};
    }
    return true;
}

static bool read_mutation(struct schema_reader *reader, struct schema_node node,
                          const struct schema_class *class, struct schema_mutation *mutation)
{
    static const char *const members[] = {"to", "item", "rename", "default", "drop", NULL};
    if (!schema_reader_is_object(reader, node,
                                 "An object with to, item, rename, default and drop is expected.") ||
        !schema_reader_has_only(reader, node, members) ||
        !schema_reader_number(reader, node, "to", 2, class->release, 0, &mutation->to))
        return false;
    const struct json *item = json_member(node.value, "item");
    mutation->item = item && item->kind == JSON_STRING ? schema_find_item(class, item->value) : NULL;
    if (!mutation->to)
        return schema_reader_refuse(
            reader, node.path,
            "The member to is expected: the release that contents are taken to, from 2 on.");
    if (!mutation->item || mutation->item->is_raw)
        return schema_reader_refuse(reader, node.path,
                                    "The member item is expected: a declared class of JSON items.");
    mutation->changes = ARENA_ARRAY(reader->arena, struct schema_change, 3 * SCHEMA_ITEMS_MOST);
    const struct json *rename = json_member(node.value, "rename");
    const struct json *standard = json_member(node.value, "default");
    const struct json *drop = json_member(node.value, "drop");
    return (!rename || add_renames(reader, schema_reader_member(reader, node, rename), mutation)) &&
           (!standard || add_defaults(reader, schema_reader_member(reader, node, standard), mutation)) &&
           (!drop || add_drops(reader, schema_reader_member(reader, node, drop), mutation));
}

static int compare_mutations(const void *a, const void *b)
{
    const struct schema_mutation *one = a, *other = b;
    if (one->to != other->to)
        return one->to < other->to ? -1 : 1;
    return bytes_compare(one->item->name, other->item->name);
}

static bool read_mutations(struct schema_reader *reader, struct schema_node class_node,
                           struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "mutations");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, class_node, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || member->count > SCHEMA_CLASSES_MOST)
        return schema_reader_refuse(reader, node.path, "A list of up to 256 mutations is expected.");
    struct schema_mutation *list = ARENA_ARRAY(reader->arena, struct schema_mutation, member->count);
    for (const struct json *one = member->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, class->mutation_count),
                                 one};
        if (!read_mutation(reader, at, class, &list[class->mutation_count++]))
            return false;
    }
    qsort(list, class->mutation_count, sizeof *list, compare_mutations);
    for (size_t i = 1; i < class->mutation_count; i++)
        if (compare_mutations(&list[i - 1], &list[i]) == 0)
            return schema_reader_refuse(reader, node.path,
                                        "One mutation for each item and release is expected.");
    struct bytes again = mutation_find_return(reader->arena, list, class->mutation_count);
    if (again.size)
        return schema_reader_refuse(
            reader, node.path,
            arena_printf(reader->arena,
                         "A name that a rule renames or drops is expected not to come back by a later "
                         "one: \"%.*s\" does.",
                         (int)again.size, again.data));
    class->mutations = list;
    return true;
}

/* --- the whole ----------------------------------------------------------------------------------- */

static bool read_class(struct schema_reader *reader, struct schema_node node, struct schema_class *class)
{
    static const char *const members[] = {"release",      "open",       "items",   "collections",
                                          "unique",       "zombieDays", "maxLife", "mutations",
                                          "encryptedIds", "thumbnails", NULL};
    class->name = node.value->name;
    if (!item_is_class_name(class->name))
        return schema_reader_refuse(
            reader, node.path,
            "A name of a class of documents is a capital letter, then up to 15 letters and digits.");
    return schema_reader_is_object(reader, node, "An object that declares a class is expected.") &&
           schema_reader_has_only(reader, node, members) &&
           schema_reader_number(reader, node, "release", 1, SCHEMA_RELEASE_MOST, 1, &class->release) &&
           schema_reader_number(reader, node, "zombieDays", 8, SCHEMA_ZOMBIE_DAYS_MOST, 0,
                                &class->zombie_days) &&
           schema_reader_flag(reader, node, "open", &class->is_open) &&
           schema_reader_flag(reader, node, "encryptedIds", &class->encrypts_ids) &&
           read_items(reader, node, class) && read_collections(reader, node, class) &&
           read_uniques(reader, node, class) && read_max_life(reader, node, class) &&
           read_mutations(reader, node, class) && schema_thumbnails_read(reader, node, class);
}

/* Can documents of the target classes have the copies of an item? */
static bool judge_targets(struct schema_reader *reader, struct schema *schema,
                          const struct schema_class *class, const struct schema_item *item)
{
    for (size_t i = 0; i < item->copies->count; i++) {
        const struct schema_class *target = schema_find_class(schema, item->copies->classes[i]);
        const struct schema_item *copy = schema_find_item(target, item->name);
        const char *refusal = target ? schema_refuse_copy(copy, target->is_open, item->is_raw)
                                     : "A class that is declared here is expected.";
        if (!refusal && copy && copy->content &&
            !(item->content && bytes_equal(copy->content_text, item->content_text)))
            refusal = "In that class the item has a content of its own; copies are not checked again, so the "
                      "same content is expected here.";
        if (refusal)
            return schema_reader_refuse(reader,
                                        arena_printf(reader->arena, "classes.%.*s.items.%.*s.copies.to[%zu]",
                                                     (int)class->name.size, class->name.data,
                                                     (int)item->name.size, item->name.data, i),
                                        refusal);
    }
    schema->has_copies = true;
    return true;
}

static void note_uses(struct schema *schema)
{
    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        schema->has_thumbnails |= class->thumbnail_count > 0;
        for (size_t i = 0; i < class->unique_count; i++)
            schema->has_global |= class->uniques[i].is_global;
        for (size_t i = 0; i < class->item_count; i++)
            schema->has_contents |= class->items[i].content != NULL;
    }
}

static bool judge_copies(struct schema_reader *reader, struct schema *schema)
{

    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        for (size_t i = 0; i < class->item_count; i++)
            if (class->items[i].copies && !judge_targets(reader, schema, class, &class->items[i]))
                return false;
    }
    return true;
}

static bool schema_read_read_classes(struct schema_reader *reader, struct schema_node root,
                                     struct schema *schema)
{
    static const char *const members[] = {"classes", "searches", NULL};
    if (!schema_reader_is_object(reader, root, "An object with the member classes is expected.") ||
        !schema_reader_has_only(reader, root, members))
        return false;
    const struct json *member = json_member(root.value, "classes");
    if (!member)
        return schema_reader_refuse(reader, root.path,
                                    "The member classes is expected: an object of names and classes.");
    struct schema_node node = schema_reader_member(reader, root, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_CLASSES_MOST,
                               "An object of names and classes is expected."))
        return false;
    struct schema_class *classes = ARENA_ARRAY(reader->arena, struct schema_class, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_class(reader, schema_reader_member(reader, node, one), &classes[schema->class_count++]))
            return false;
    qsort(classes, schema->class_count, sizeof *classes, schema_read_compare_names);
    schema->classes = classes;
    note_uses(schema);
    return schema_searches_read(reader, root, schema) && judge_copies(reader, schema);
}

enum fault schema_read(struct arena *arena, struct bytes text, struct schema **schema_r,
                       struct schema_problem *problem_r)
{
    static const struct json_limits limits = {
        .depth = SCHEMA_DEPTH_MOST, .tree_depth = SCHEMA_DEPTH_MOST, .nodes = 100000};
    struct schema_reader reader = {.arena = arena, .problem = problem_r};
    struct schema *schema = ARENA_NEW(arena, struct schema);
    struct json *root;
    struct json_problem problem;
    *schema_r = NULL;
    if (json_read(arena, text, &limits, &root, &problem)) {
        schema_reader_refuse(
            &reader, "",
            arena_printf(arena, "JSON is expected: %s at byte %zu.", problem.what, problem.offset));
        return FAULT_AARG;
    }
    if (!schema_read_read_classes(&reader, (struct schema_node){"", root}, schema))
        return FAULT_AARG;
    *schema_r = schema;
    return FAULT_NONE;
}
