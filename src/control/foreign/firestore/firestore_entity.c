/* firestore_entity: properties are gathered and ordered by their names, so that those of a list are together.
 */
#include "control/foreign/firestore/firestore_entity.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/coding/base64.h"
#include "control/foreign/firestore/firestore_key.h"
#include "control/foreign/firestore/firestore_wire.h"
#include "edge/json/json.h"

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

struct bytes firestore_entity_key(struct bytes entity)
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

const char *firestore_entity_write(struct arena *arena, const struct settings *settings,
                                   enum firestore_not_finite not_finite, struct bytes entity,
                                   struct builder *json)
{
    struct firestore_writer writer = {arena, settings, not_finite, json};
    return write_entity(&writer, entity, 1);
}
