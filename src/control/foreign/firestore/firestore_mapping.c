/* firestore_mapping: a class gets the documents of one collection, so that no two have the same id. */
#include "control/foreign/firestore/firestore_mapping.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/builder.h"
#include "base/coding/base64.h"
#include "base/settings.h"
#include "control/foreign/firestore/firestore_key.h"
#include "control/foreign/firestore/firestore_wire.h"
#include "control/foreign/foreign_mapping.h"
#include "control/message.h"
#include "edge/json/json.h"
#include "model/document/item.h"

/* The fields of a document of an export as JSON.
 *
 * An entity has properties: a map is an entity inside a property, a list is several properties of one name.
 */

/* What becomes of NaN and infinities, which JSON does not have: the document is wrong, or they become null,
 * or the texts "NaN", "Infinity" and "-Infinity", as in the JSON of Firestore. */
enum firestore_not_finite { FIRESTORE_REFUSE, FIRESTORE_NULL, FIRESTORE_TEXT };

enum { KEY = 13, PROPERTY = 14, RAW_PROPERTY = 15, PROPERTIES_MOST = 1000000, SHOWN = 60 };
enum { MEANING_TIME = 7, MEANING_POINT = 9, MEANING_BLOB = 14, MEANING_TEXT, MEANING_BYTES };
enum { MEANING_MAP = 19, MEANING_EMPTY_LIST = 24 };
enum {
    VALUE_NONE,
    VALUE_INTEGER,
    VALUE_BOOLEAN,
    VALUE_TEXT,
    VALUE_DOUBLE,
    VALUE_POINT,
    VALUE_REFERENCE = 12
};

static const char wrong_entity[] = "expected an entity of Datastore, as exports of Firestore have";

struct property {
    struct bytes name, value;
    uint64_t meaning;
    size_t place; /* among the properties of the entity */
    bool is_multiple, is_raw;
};

struct firestore_writer {
    struct arena *arena;
    const struct settings *settings;
    enum firestore_not_finite not_finite;
    struct builder *json;
};

/* Finds the key of an entity; NO_BYTES: it has none, or these bytes are no entity. */
static struct bytes firestore_entity_key(struct bytes entity)
{
    struct firestore_field field;
    struct bytes key = NO_BYTES;
    enum firestore_wire_event event;
    while ((event = firestore_wire_next(&entity, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, KEY, FIRESTORE_BYTES))
            key = field.text;
    return event == FIRESTORE_WIRE_END ? key : NO_BYTES;
}

/* --- values --- */

static const char *add_not_finite(struct firestore_writer *writer, double number)
{
    const char *text = isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    if (writer->not_finite == FIRESTORE_REFUSE)
        return "a number that JSON does not have: NaN or infinity (see not_finite of a mapping)";
    builder_add_bytes(writer->json, bytes_of(writer->not_finite == FIRESTORE_NULL ? "null" : text));
    return NULL;
}

static const char *add_double(struct firestore_writer *writer, uint64_t bits)
{
    char text[40];
    double number;
    memcpy(&number, &bits, sizeof number);
    if (!isfinite(number))
        return add_not_finite(writer, number);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    builder_add_bytes(writer->json, bytes_of(text));
    return NULL;
}

/* Microseconds since 1970. */
static const char *add_time(struct firestore_writer *writer, int64_t time)
{
    int64_t part = time % 1000000;
    time_t seconds = (time_t)(time / 1000000 - (part < 0));
    struct tm parts;
    part += part < 0 ? 1000000 : 0;
    if (!gmtime_r(&seconds, &parts) || parts.tm_year < 1 - 1900 || parts.tm_year > 9999 - 1900)
        return "a time that is not of the years 1 to 9999";
    builder_printf(writer->json, "\"%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1,
                   parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
    if (part)
        builder_printf(writer->json, ".%06d", (int)part);
    builder_add_text(writer->json, "Z\"");
    return NULL;
}

static const char *add_point(struct firestore_writer *writer, struct bytes group, int depth)
{
    struct firestore_field field, x = {0}, y = {0};
    enum firestore_wire_event event;
    if (depth > (int)writer->settings->limit_depth)
        return "nested deeper than limit_depth";
    while ((event = firestore_wire_next(&group, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, 6, FIRESTORE_FIXED64))
            x = field;
        else if (firestore_wire_is(&field, 7, FIRESTORE_FIXED64))
            y = field;
    if (event != FIRESTORE_WIRE_END || !x.number || !y.number)
        return "expected a point with both its numbers";
    builder_add_text(writer->json, "{\"latitude\":");
    const char *problem = add_double(writer, x.value);
    builder_add_text(writer->json, ",\"longitude\":");
    problem = problem ? problem : add_double(writer, y.value);
    builder_add_text(writer->json, "}");
    return problem;
}

static const char *add_reference(struct firestore_writer *writer, struct bytes group)
{
    struct builder path = {0};
    const char *problem = firestore_key_add_reference(group, &path);
    if (!problem)
        json_add_string(writer->json, builder_bytes(&path));
    builder_free(&path);
    return problem;
}

static const char *write_entity(struct firestore_writer *writer, struct bytes entity, int depth);

static const char *firestore_entity_add_text(struct firestore_writer *writer, const struct property *property,
                                             struct bytes text, int depth)
{
    if (property->meaning == MEANING_MAP)
        return write_entity(writer, text, depth);
    if (property->meaning == MEANING_BLOB || property->meaning == MEANING_BYTES) {
        builder_add_text(writer->json, "\"");
        base64_add_standard(writer->json, text);
        builder_add_text(writer->json, "\"");
        return NULL;
    }
    if (!firestore_key_is_text(text))
        return "a text that is not UTF-8, or has a NUL";
    json_add_string(writer->json, text);
    return NULL;
}

/* May a value of this kind have this meaning? */
static bool is_meant(uint32_t kind, uint64_t meaning)
{
    switch (kind) {
    case VALUE_NONE:
    case VALUE_BOOLEAN:
    case VALUE_DOUBLE:
    case VALUE_REFERENCE:
        return !meaning;
    case VALUE_INTEGER:
        return !meaning || meaning == MEANING_TIME;
    case VALUE_POINT:
        return !meaning || meaning == MEANING_POINT;
    case VALUE_TEXT:
        return !meaning || meaning == MEANING_BLOB || meaning == MEANING_TEXT || meaning == MEANING_BYTES ||
               meaning == MEANING_MAP;
    default:
        return false;
    }
}

static bool is_kind(const struct firestore_field *field)
{
    return firestore_wire_is(field, VALUE_INTEGER, FIRESTORE_VARINT) ||
           firestore_wire_is(field, VALUE_BOOLEAN, FIRESTORE_VARINT) ||
           firestore_wire_is(field, VALUE_TEXT, FIRESTORE_BYTES) ||
           firestore_wire_is(field, VALUE_DOUBLE, FIRESTORE_FIXED64) ||
           firestore_wire_is(field, VALUE_POINT, FIRESTORE_GROUP) ||
           firestore_wire_is(field, VALUE_REFERENCE, FIRESTORE_GROUP);
}

static const char *firestore_entity_add_value(struct firestore_writer *writer,
                                              const struct property *property, int depth)
{
    struct firestore_field field = {0}, next;
    struct bytes message = property->value;
    enum firestore_wire_event event;
    while ((event = firestore_wire_next(&message, &next)) == FIRESTORE_WIRE_FIELD) {
        if (!is_kind(&next))
            return arena_printf(writer->arena, "a value of an unknown type, %u", next.number);
        if (field.number)
            return "more than one value";
        field = next;
    }
    if (event != FIRESTORE_WIRE_END)
        return "expected a value";
    if (!is_meant(field.number, property->meaning))
        return arena_printf(writer->arena, "a value of type %u with an unknown meaning, %" PRIu64,
                            field.number, property->meaning);
    switch (field.number) {
    case VALUE_INTEGER:
        if (property->meaning == MEANING_TIME)
            return add_time(writer, (int64_t)field.value);
        builder_add_i64(writer->json, (int64_t)field.value);
        return NULL;
    case VALUE_BOOLEAN:
        builder_add_bytes(writer->json, field.value ? BYTES("true") : BYTES("false"));
        return NULL;
    case VALUE_TEXT:
        return firestore_entity_add_text(writer, property, field.text, depth);
    case VALUE_DOUBLE:
        return add_double(writer, field.value);
    case VALUE_POINT:
        return add_point(writer, field.text, depth);
    case VALUE_REFERENCE:
        return add_reference(writer, field.text);
    default:
        builder_add_text(writer->json, "null");
        return NULL;
    }
}

/* --- properties --- */

static const char *read_property(struct bytes message, struct property *property)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    while ((event = firestore_wire_next(&message, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, 1, FIRESTORE_VARINT))
            property->meaning = field.value;
        else if (field.number == 2 && field.text.size)
            return "a property in an unknown form: it has the URI of a meaning";
        else if (firestore_wire_is(&field, 3, FIRESTORE_BYTES))
            property->name = field.text;
        else if (firestore_wire_is(&field, 4, FIRESTORE_VARINT))
            property->is_multiple = field.value != 0;
        else if (firestore_wire_is(&field, 5, FIRESTORE_BYTES))
            property->value = field.text;
    if (event != FIRESTORE_WIRE_END || !property->name.data || !property->value.data)
        return "expected a property with a name and a value";
    return firestore_key_is_text(property->name) ? NULL
                                                 : "the name of a field that is not UTF-8, or has a NUL";
}

static bool is_property(const struct firestore_field *field)
{
    return firestore_wire_is(field, PROPERTY, FIRESTORE_BYTES) ||
           firestore_wire_is(field, RAW_PROPERTY, FIRESTORE_BYTES);
}

static int firestore_entity_compare(const void *a, const void *b)
{
    const struct property *left = a, *right = b;
    int order = bytes_compare(left->name, right->name);
    return order ? order : (left->place > right->place) - (left->place < right->place);
}

static const char *firestore_entity_read_all(struct firestore_writer *writer, struct bytes entity,
                                             struct property **list_r, size_t *count_r)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    struct bytes rest = entity;
    size_t count = 0;
    while ((event = firestore_wire_next(&rest, &field)) == FIRESTORE_WIRE_FIELD)
        count += is_property(&field);
    if (event != FIRESTORE_WIRE_END)
        return wrong_entity;
    if (count > PROPERTIES_MOST)
        return "more than 1000000 properties";
    struct property *list = ARENA_ARRAY(writer->arena, struct property, count + 1);
    for (*count_r = 0, *list_r = list; firestore_wire_next(&entity, &field) == FIRESTORE_WIRE_FIELD;) {
        if (!is_property(&field))
            continue;
        list[*count_r].place = *count_r;
        list[*count_r].is_raw = field.number == RAW_PROPERTY;
        const char *problem = read_property(field.text, &list[(*count_r)++]);
        if (problem)
            return problem;
    }
    qsort(list, count, sizeof *list, firestore_entity_compare);
    return NULL;
}

/* The properties of one name: a value, or a list. */
static const char *add_field(struct firestore_writer *writer, const struct property *first, size_t count,
                             int depth)
{
    bool is_empty = count == 1 && first->meaning == MEANING_EMPTY_LIST && !first->value.size;
    if (count == 1 && !first->is_multiple && !is_empty)
        return firestore_entity_add_value(writer, first, depth + 1);
    if (depth + 1 > (int)writer->settings->limit_depth)
        return "nested deeper than limit_depth";
    builder_add_text(writer->json, "[");
    for (size_t i = 0; i < count && !is_empty; i++) {
        if (!first[i].is_multiple)
            return "a field that is there twice";
        if (first[i].is_raw != first->is_raw)
            return "a list with values in two places, whose order is not known";
        if (i)
            builder_add_text(writer->json, ",");
        const char *problem = firestore_entity_add_value(writer, &first[i], depth + 2);
        if (problem)
            return arena_printf(writer->arena, "element %zu: %s", i, problem);
        if ((int64_t)writer->json->size > writer->settings->limit_content_bytes)
            return "an item of more than limit_content_bytes";
    }
    builder_add_text(writer->json, "]");
    return NULL;
}

static const char *write_entity(struct firestore_writer *writer, struct bytes entity, int depth)
{
    struct property *list;
    size_t count, next;
    if (depth > (int)writer->settings->limit_depth)
        return "nested deeper than limit_depth";
    const char *problem = firestore_entity_read_all(writer, entity, &list, &count);
    if (problem)
        return problem;
    builder_add_text(writer->json, "{");
    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && bytes_equal(list[next].name, list[i].name); next++)
            ;
        if (i)
            builder_add_text(writer->json, ",");
        json_add_string(writer->json, list[i].name);
        builder_add_text(writer->json, ":");
        problem = add_field(writer, &list[i], next - i, depth);
        if (!problem && (int64_t)writer->json->size > writer->settings->limit_content_bytes)
            problem = "an item of more than limit_content_bytes";
        if (problem)
            return arena_printf(writer->arena, "field \"%.*s\": %s",
                                (int)(list[i].name.size < SHOWN ? list[i].name.size : SHOWN),
                                list[i].name.data, problem);
    }
    builder_add_text(writer->json, "}");
    return NULL;
}

/* Appends the fields as an object, ordered by their names, within limit_depth and limit_content_bytes.  NULL,
 * or what is wrong and where, in the arena; then the text is of no use. */
static const char *firestore_entity_write(struct arena *arena, const struct settings *settings,
                                          enum firestore_not_finite not_finite, struct bytes entity,
                                          struct builder *json)
{
    struct firestore_writer writer = {arena, settings, not_finite, json};
    return write_entity(&writer, entity, 1);
}

enum { REFUSED_MOST = 100 };

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
