/* schema_read: reads a declaration from its JSON text.  The first error ends the reading and is reported with
 * its path; referenced names are resolved when the items of their class are known. */
#include "model/schema.h"

#include <stdlib.h>

#include "model/item.h"
#include "model/mutation.h"
#include "edge/json.h"

struct reading {
    struct arena *arena;
    struct schema_problem *problem;
};

/* A value and its path. */
struct place {
    const char *path;
    const struct json *value;
};

static bool refuse(struct reading *reading, const char *path, const char *expected)
{
    *reading->problem = (struct schema_problem){path, expected};
    return false;
}

static struct place member_of(struct reading *reading, struct place object, const struct json *member)
{
    const char *path =
        arena_printf(reading->arena, "%s%s%.*s", object.path, *object.path ? "." : "",
                     (int)(member->name.size < 64 ? member->name.size : 64), member->name.data);
    return (struct place){path, member};
}

static bool is_object(struct reading *reading, struct place place, const char *expected)
{
    return (place.value->kind == JSON_OBJECT && !place.value->is_shallow) ||
           refuse(reading, place.path, expected);
}

/* Is it an object with a limited number of members? */
static bool is_list_of(struct reading *reading, struct place place, size_t most, const char *expected)
{
    return is_object(reading, place, expected) &&
           (place.value->count <= most ||
            refuse(reading, place.path,
                   arena_printf(reading->arena, "At most %zu members are expected.", most)));
}

/* Has the object only these members (NULL ends the list)? */
static bool has_only(struct reading *reading, struct place place, const char *const *names)
{
    for (const struct json *member = place.value->first; member; member = member->next) {
        size_t i = 0;
        while (names[i] && !bytes_equal(member->name, bytes_of(names[i])))
            i++;
        if (names[i])
            continue;
        struct builder words = {0};
        for (i = 0; names[i]; i++)
            builder_printf(&words, "%s%s", !i ? "" : names[i + 1] ? ", " : " and ", names[i]);
        const char *expected = arena_printf(reading->arena, "The members here are %.*s.", (int)words.size,
                                            words.size ? words.data : "");
        builder_free(&words);
        return refuse(reading, member_of(reading, place, member).path, expected);
    }
    return true;
}

static bool read_flag(struct reading *reading, struct place object, const char *name, bool *flag_r)
{
    const struct json *member = json_member(object.value, name);
    *flag_r = member && member->kind == JSON_TRUE;
    return !member || member->kind == JSON_TRUE || member->kind == JSON_FALSE ||
           refuse(reading, member_of(reading, object, member).path, "true or false is expected.");
}

static bool read_number(struct reading *reading, struct place object, const char *name, int64_t least,
                        int64_t most, int64_t standard, int64_t *number_r)
{
    const struct json *member = json_member(object.value, name);
    *number_r = standard;
    return !member || (json_is_i64(member, number_r) && *number_r >= least && *number_r <= most) ||
           refuse(reading, member_of(reading, object, member).path,
                  arena_printf(reading->arena, "An integer from %lld to %lld is expected.", (long long)least,
                               (long long)most));
}

/* Lists of structs that begin with their name are sorted by it. */
static int compare_names(const void *a, const void *b)
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

static bool read_field(struct reading *reading, struct place place, struct schema_field *field)
{
    field->name = place.value->name;
    if (!schema_is_field_name(field->name))
        return refuse(
            reading, place.path,
            "A name of a field is a letter, then up to 25 letters, digits and '_'; class, id, iclass, "
            "key, version, vop, content and raw are taken.");
    if (is_system_column(field->name))
        return refuse(reading, place.path,
                      "Another name is expected: ctid, xmin, xmax, cmin, cmax and tableoid are columns that "
                      "PostgreSQL gives to every table.");
    if (place.value->kind != JSON_STRING ||
        !schema_type_of(place.value->value, &field->type, &field->is_list))
        return refuse(reading, place.path,
                      "A type is expected: string, long, int, double, string[], long[], int[] or double[].");
    return true;
}

static bool read_fields(struct reading *reading, struct place item_place, struct schema_item *item)
{
    const struct json *member = json_member(item_place.value, "fields");
    if (!member)
        return true;
    struct place place = member_of(reading, item_place, member);
    if (!is_list_of(reading, place, SCHEMA_FIELDS_MOST, "An object of names and types is expected."))
        return false;
    if (item->is_raw && member->count)
        return refuse(reading, place.path, "Items that are raw text have no fields.");
    struct schema_field *fields = ARENA_ARRAY(reading->arena, struct schema_field, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_field(reading, member_of(reading, place, one), &fields[item->field_count++]))
            return false;
    qsort(fields, item->field_count, sizeof *fields, compare_names);
    item->fields = fields;
    return true;
}

static bool read_target(struct reading *reading, struct place place, struct schema_copies *copies)
{
    if (place.value->kind != JSON_STRING || !item_is_class_name(place.value->value))
        return refuse(reading, place.path, "The name of a class of documents is expected.");
    for (size_t i = 0; i < copies->count; i++)
        if (bytes_equal(copies->classes[i], place.value->value))
            return refuse(reading, place.path, "Each class is named once.");
    copies->classes[copies->count++] = place.value->value;
    return true;
}

/* Whether the target classes can take the copies is checked when all classes are known. */
static bool read_copies(struct reading *reading, struct place item_place, struct schema_item *item)
{
    static const char *const members[] = {"to", "separator", NULL};
    const struct json *member = json_member(item_place.value, "copies");
    if (!member)
        return true;
    struct place place = member_of(reading, item_place, member);
    if (!is_object(reading, place, "An object with to and separator is expected.") ||
        !has_only(reading, place, members))
        return false;
    struct schema_copies *copies = ARENA_NEW(reading->arena, struct schema_copies);
    const struct json *to = json_member(place.value, "to");
    if (!to || to->kind != JSON_ARRAY || to->is_shallow || !to->count || to->count > SCHEMA_COPIES_MOST)
        return refuse(reading, place.path,
                      "The member to is expected: a list of 1 to 16 classes of documents.");
    for (const struct json *one = to->first; one; one = one->next) {
        struct place at = {arena_printf(reading->arena, "%s.to[%zu]", place.path, copies->count), one};
        if (!read_target(reading, at, copies))
            return false;
    }
    const struct json *separator = json_member(place.value, "separator");
    copies->separator = separator ? separator->value : BYTES(".");
    if (separator && (separator->kind != JSON_STRING || !separator->value.size ||
                      separator->value.size > SCHEMA_SEPARATOR_MOST))
        return refuse(reading, member_of(reading, place, separator).path,
                      "A string of 1 to 8 bytes is expected.");
    item->copies = copies;
    return true;
}

static bool read_item(struct reading *reading, struct place place, struct schema_item *item)
{
    static const char *const members[] = {"singleton", "raw", "fields", "copies", NULL};
    item->name = place.value->name;
    if (!item_is_class_name(item->name))
        return refuse(reading, place.path,
                      "A name of a class of items is a capital letter, then up to 15 letters and digits.");
    if (item_is_reserved(item->name))
        return refuse(reading, place.path, ITEM_RESERVED);
    return is_object(reading, place, "An object with singleton, raw, fields and copies is expected.") &&
           has_only(reading, place, members) && read_flag(reading, place, "singleton", &item->is_singleton) &&
           read_flag(reading, place, "raw", &item->is_raw) && read_fields(reading, place, item) &&
           read_copies(reading, place, item);
}

static bool read_items(struct reading *reading, struct place class_place, struct schema_class *class)
{
    const struct json *member = json_member(class_place.value, "items");
    if (!member)
        return refuse(reading, class_place.path, "The member items is expected: the classes of its items.");
    struct place place = member_of(reading, class_place, member);
    if (!is_list_of(reading, place, SCHEMA_ITEMS_MOST, "An object of names and items is expected."))
        return false;
    struct schema_item *items = ARENA_ARRAY(reading->arena, struct schema_item, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_item(reading, member_of(reading, place, one), &items[class->item_count++]))
            return false;
    qsort(items, class->item_count, sizeof *items, compare_names);
    class->items = items;
    return true;
}

/* --- properties, collections, unique properties -------------------------------------------------- */

/* "Item.member", where the item is a JSON singleton of the class. */
static bool read_property(struct reading *reading, struct place place, const struct schema_class *class,
                          struct schema_property *property)
{
    struct bytes text = place.value->value;
    const char *dot = place.value->kind == JSON_STRING ? memchr(text.data, '.', text.size) : NULL;
    if (!dot)
        return refuse(reading, place.path, "A property is expected: \"Item.member\".");
    struct bytes item = {text.data, (size_t)(dot - text.data)};
    property->member = (struct bytes){dot + 1, text.size - item.size - 1};
    property->item = schema_find_item(class, item);
    if (!property->item || !property->item->is_singleton || property->item->is_raw)
        return refuse(reading, place.path,
                      "A property is a member of an item that is declared here, a singleton and JSON.");
    if (!schema_is_field_name(property->member))
        return refuse(reading, place.path,
                      "The member of a property is a letter, then up to 25 letters, digits and '_'.");
    const struct schema_field *field = schema_find_field(property->item, property->member);
    if (field && field->is_list && bytes_equal(place.value->name, BYTES("maxLife")))
        return refuse(reading, place.path, "A property that is one number is expected.");
    return true;
}

static bool read_keys(struct reading *reading, struct place object, const struct schema_class *class,
                      struct schema_property *keys, size_t *count_r)
{
    const struct json *member = json_member(object.value, "key");
    *count_r = 0;
    if (!member)
        return refuse(reading, object.path, "The member key is expected: a list of properties.");
    struct place place = member_of(reading, object, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || !member->count ||
        member->count > SCHEMA_KEYS_MOST)
        return refuse(reading, place.path, "A list of 1 to 4 properties \"Item.member\" is expected.");
    for (const struct json *one = member->first; one; one = one->next) {
        struct place at = {arena_printf(reading->arena, "%s[%zu]", place.path, *count_r), one};
        if (!read_property(reading, at, class, &keys[*count_r]))
            return false;
        ++*count_r;
    }
    return true;
}

/* Names of collections and unique properties occur in definitions and lock keys. */
static bool is_property_name(struct reading *reading, struct place place)
{
    return schema_is_field_name(place.value->name) ||
           refuse(reading, place.path, "A name is a letter, then up to 25 letters, digits and '_'.");
}

static bool read_collection(struct reading *reading, struct place place, const struct schema_class *class,
                            struct schema_collection *collection)
{
    static const char *const members[] = {"key", "list", "mutable", NULL};
    collection->name = place.value->name;
    if (!is_property_name(reading, place) ||
        !is_object(reading, place, "An object with key, list and mutable is expected.") ||
        !has_only(reading, place, members) || !read_flag(reading, place, "list", &collection->is_list) ||
        !read_flag(reading, place, "mutable", &collection->is_mutable) ||
        !read_keys(reading, place, class, collection->keys, &collection->key_count))
        return false;
    if (collection->is_list && collection->key_count > 1)
        return refuse(reading, place.path, "A collection by the elements of a list has one key.");
    for (size_t i = 0; i < collection->key_count; i++) {
        const struct schema_field *field =
            schema_find_field(collection->keys[i].item, collection->keys[i].member);
        if (field && field->is_list != collection->is_list)
            return refuse(reading, place.path,
                          collection->is_list ? "With list, the key must be a list."
                                              : "A key that is a list needs \"list\": true.");
    }
    return true;
}

static bool read_collections(struct reading *reading, struct place class_place, struct schema_class *class)
{
    const struct json *member = json_member(class_place.value, "collections");
    if (!member)
        return true;
    struct place place = member_of(reading, class_place, member);
    if (!is_list_of(reading, place, SCHEMA_ITEMS_MOST, "An object of names and collections is expected."))
        return false;
    struct schema_collection *list = ARENA_ARRAY(reading->arena, struct schema_collection, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_collection(reading, member_of(reading, place, one), class,
                             &list[class->collection_count++]))
            return false;
    qsort(list, class->collection_count, sizeof *list, compare_names);
    class->collections = list;
    return true;
}

static bool read_unique(struct reading *reading, struct place place, const struct schema_class *class,
                        struct schema_unique *unique)
{
    static const char *const members[] = {"key", "global", NULL};
    unique->name = place.value->name;
    if (!is_property_name(reading, place) ||
        !is_object(reading, place, "An object with key and global is expected.") ||
        !has_only(reading, place, members) || !read_flag(reading, place, "global", &unique->is_global))
        return false;
    return read_keys(reading, place, class, unique->keys, &unique->key_count);
}

static bool read_uniques(struct reading *reading, struct place class_place, struct schema_class *class)
{
    const struct json *member = json_member(class_place.value, "unique");
    if (!member)
        return true;
    struct place place = member_of(reading, class_place, member);
    if (!is_list_of(reading, place, SCHEMA_ITEMS_MOST,
                    "An object of names and unique properties is expected."))
        return false;
    struct schema_unique *list = ARENA_ARRAY(reading->arena, struct schema_unique, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_unique(reading, member_of(reading, place, one), class, &list[class->unique_count++]))
            return false;
    qsort(list, class->unique_count, sizeof *list, compare_names);
    class->uniques = list;
    return true;
}

static bool read_max_life(struct reading *reading, struct place class_place, struct schema_class *class)
{
    const struct json *member = json_member(class_place.value, "maxLife");
    return !member ||
           read_property(reading, member_of(reading, class_place, member), class, &class->max_life);
}

/* --- mutations ----------------------------------------------------------------------------------- */

static bool is_member_name(struct reading *reading, const char *path, struct bytes name)
{
    return (name.size && name.size <= 255) ||
           refuse(reading, path, "The name of a member has 1 to 255 bytes.");
}

static bool add_renames(struct reading *reading, struct place place, struct schema_mutation *mutation)
{
    if (!is_list_of(reading, place, SCHEMA_ITEMS_MOST, "An object of old and new names is expected."))
        return false;
    for (const struct json *one = place.value->first; one; one = one->next) {
        struct place at = member_of(reading, place, one);
        if (one->kind != JSON_STRING)
            return refuse(reading, at.path, "The new name of the member is expected.");
        if (!is_member_name(reading, at.path, one->name) || !is_member_name(reading, at.path, one->value))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_RENAME, one->name, one->value};
    }
    return true;
}

static bool add_defaults(struct reading *reading, struct place place, struct schema_mutation *mutation)
{
    if (!is_list_of(reading, place, SCHEMA_ITEMS_MOST, "An object of members and their values is expected."))
        return false;
    for (const struct json *one = place.value->first; one; one = one->next) {
        if (!is_member_name(reading, member_of(reading, place, one).path, one->name))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_DEFAULT, one->name, one->text};
    }
    return true;
}

static bool add_drops(struct reading *reading, struct place place, struct schema_mutation *mutation)
{
    if (place.value->kind != JSON_ARRAY || place.value->is_shallow || place.value->count > SCHEMA_ITEMS_MOST)
        return refuse(reading, place.path, "A list of up to 64 names of members is expected.");
    for (const struct json *one = place.value->first; one; one = one->next) {
        if (one->kind != JSON_STRING)
            return refuse(reading, place.path, "A list of up to 64 names of members is expected.");
        if (!is_member_name(reading, place.path, one->value))
            return false;
        mutation->changes[mutation->change_count++] =
            (struct schema_change){CHANGE_DROP, one->value, NO_BYTES};
    }
    return true;
}

static bool read_mutation(struct reading *reading, struct place place, const struct schema_class *class,
                          struct schema_mutation *mutation)
{
    static const char *const members[] = {"to", "item", "rename", "default", "drop", NULL};
    if (!is_object(reading, place, "An object with to, item, rename, default and drop is expected.") ||
        !has_only(reading, place, members) ||
        !read_number(reading, place, "to", 2, class->release, 0, &mutation->to))
        return false;
    const struct json *item = json_member(place.value, "item");
    mutation->item = item && item->kind == JSON_STRING ? schema_find_item(class, item->value) : NULL;
    if (!mutation->to)
        return refuse(reading, place.path,
                      "The member to is expected: the release that contents are taken to, from 2 on.");
    if (!mutation->item || mutation->item->is_raw)
        return refuse(reading, place.path, "The member item is expected: a declared class of JSON items.");
    mutation->changes = ARENA_ARRAY(reading->arena, struct schema_change, 3 * SCHEMA_ITEMS_MOST);
    const struct json *rename = json_member(place.value, "rename");
    const struct json *standard = json_member(place.value, "default");
    const struct json *drop = json_member(place.value, "drop");
    return (!rename || add_renames(reading, member_of(reading, place, rename), mutation)) &&
           (!standard || add_defaults(reading, member_of(reading, place, standard), mutation)) &&
           (!drop || add_drops(reading, member_of(reading, place, drop), mutation));
}

static int compare_mutations(const void *a, const void *b)
{
    const struct schema_mutation *one = a, *other = b;
    if (one->to != other->to)
        return one->to < other->to ? -1 : 1;
    return bytes_compare(one->item->name, other->item->name);
}

static bool read_mutations(struct reading *reading, struct place class_place, struct schema_class *class)
{
    const struct json *member = json_member(class_place.value, "mutations");
    if (!member)
        return true;
    struct place place = member_of(reading, class_place, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || member->count > SCHEMA_CLASSES_MOST)
        return refuse(reading, place.path, "A list of up to 256 mutations is expected.");
    struct schema_mutation *list = ARENA_ARRAY(reading->arena, struct schema_mutation, member->count);
    for (const struct json *one = member->first; one; one = one->next) {
        struct place at = {arena_printf(reading->arena, "%s[%zu]", place.path, class->mutation_count), one};
        if (!read_mutation(reading, at, class, &list[class->mutation_count++]))
            return false;
    }
    qsort(list, class->mutation_count, sizeof *list, compare_mutations);
    for (size_t i = 1; i < class->mutation_count; i++)
        if (compare_mutations(&list[i - 1], &list[i]) == 0)
            return refuse(reading, place.path, "One mutation for each item and release is expected.");
    struct bytes again = mutation_find_return(reading->arena, list, class->mutation_count);
    if (again.size)
        return refuse(
            reading, place.path,
            arena_printf(reading->arena,
                         "A name that a rule renames or drops is expected not to come back by a later "
                         "one: \"%.*s\" does.",
                         (int)again.size, again.data));
    class->mutations = list;
    return true;
}

/* --- the whole ----------------------------------------------------------------------------------- */

static bool read_class(struct reading *reading, struct place place, struct schema_class *class)
{
    static const char *const members[] = {"release",    "open",    "items",     "collections", "unique",
                                          "zombieDays", "maxLife", "mutations", NULL};
    class->name = place.value->name;
    if (!item_is_class_name(class->name))
        return refuse(
            reading, place.path,
            "A name of a class of documents is a capital letter, then up to 15 letters and digits.");
    return is_object(reading, place, "An object that declares a class is expected.") &&
           has_only(reading, place, members) &&
           read_number(reading, place, "release", 1, SCHEMA_RELEASE_MOST, 1, &class->release) &&
           read_number(reading, place, "zombieDays", 8, SCHEMA_ZOMBIE_DAYS_MOST, 0, &class->zombie_days) &&
           read_flag(reading, place, "open", &class->is_open) && read_items(reading, place, class) &&
           read_collections(reading, place, class) && read_uniques(reading, place, class) &&
           read_max_life(reading, place, class) && read_mutations(reading, place, class);
}

/* Can documents of the target classes have the copies of an item? */
static bool judge_targets(struct reading *reading, struct schema *schema, const struct schema_class *class,
                          const struct schema_item *item)
{
    for (size_t i = 0; i < item->copies->count; i++) {
        const struct schema_class *target = schema_find_class(schema, item->copies->classes[i]);
        const char *refusal =
            target ? schema_refuse_copy(schema_find_item(target, item->name), target->is_open, item->is_raw)
                   : "A class that is declared here is expected.";
        if (refusal)
            return refuse(reading,
                          arena_printf(reading->arena, "classes.%.*s.items.%.*s.copies.to[%zu]",
                                       (int)class->name.size, class->name.data, (int)item->name.size,
                                       item->name.data, i),
                          refusal);
    }
    schema->has_copies = true;
    return true;
}

static void note_global(struct schema *schema)
{
    for (size_t c = 0; c < schema->class_count; c++)
        for (size_t i = 0; i < schema->classes[c].unique_count; i++)
            schema->has_global |= schema->classes[c].uniques[i].is_global;
}

static bool judge_copies(struct reading *reading, struct schema *schema)
{

    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        for (size_t i = 0; i < class->item_count; i++)
            if (class->items[i].copies && !judge_targets(reading, schema, class, &class->items[i]))
                return false;
    }
    return true;
}

static bool read_classes(struct reading *reading, struct place root, struct schema *schema)
{
    static const char *const members[] = {"classes", NULL};
    if (!is_object(reading, root, "An object with the member classes is expected.") ||
        !has_only(reading, root, members))
        return false;
    const struct json *member = json_member(root.value, "classes");
    if (!member)
        return refuse(reading, root.path, "The member classes is expected: an object of names and classes.");
    struct place place = member_of(reading, root, member);
    if (!is_list_of(reading, place, SCHEMA_CLASSES_MOST, "An object of names and classes is expected."))
        return false;
    struct schema_class *classes = ARENA_ARRAY(reading->arena, struct schema_class, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_class(reading, member_of(reading, place, one), &classes[schema->class_count++]))
            return false;
    qsort(classes, schema->class_count, sizeof *classes, compare_names);
    schema->classes = classes;
    note_global(schema);
    return judge_copies(reading, schema);
}

enum fault schema_read(struct arena *arena, struct bytes text, struct schema **schema_r,
                       struct schema_problem *problem_r)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 32, .nodes = 100000};
    struct reading reading = {.arena = arena, .problem = problem_r};
    struct schema *schema = ARENA_NEW(arena, struct schema);
    struct json *root;
    struct json_problem problem;
    *schema_r = NULL;
    if (json_read(arena, text, &limits, &root, &problem)) {
        refuse(&reading, "",
               arena_printf(arena, "JSON is expected: %s at byte %zu.", problem.what, problem.offset));
        return FAULT_AARG;
    }
    if (!read_classes(&reading, (struct place){"", root}, schema))
        return FAULT_AARG;
    *schema_r = schema;
    return FAULT_NONE;
}
