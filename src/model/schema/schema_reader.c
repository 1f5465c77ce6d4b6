/* schema_reader: the first error is recorded with its path. */
#include "model/schema/schema_reader.h"

#include <stdlib.h>

#include "base/builder.h"
#include "edge/json/json.h"
#include "model/schema/schema.h"

bool schema_reader_refuse(struct schema_reader *reader, const char *path, const char *expected)
{
    *reader->problem = (struct schema_problem){path, expected};
    return false;
}

struct schema_node schema_reader_member(struct schema_reader *reader, struct schema_node object,
                                        const struct json *member)
{
    const char *path =
        arena_printf(reader->arena, "%s%s%.*s", object.path, *object.path ? "." : "",
                     (int)(member->name.size < 64 ? member->name.size : 64), member->name.data);
    return (struct schema_node){path, member};
}

bool schema_reader_is_object(struct schema_reader *reader, struct schema_node node, const char *expected)
{
    return (node.value->kind == JSON_OBJECT && !node.value->is_shallow) ||
           schema_reader_refuse(reader, node.path, expected);
}

bool schema_reader_is_list(struct schema_reader *reader, struct schema_node node, size_t most,
                           const char *expected)
{
    return schema_reader_is_object(reader, node, expected) &&
           (node.value->count <= most ||
            schema_reader_refuse(reader, node.path,
                                 arena_printf(reader->arena, "At most %zu members are expected.", most)));
}

bool schema_reader_has_only(struct schema_reader *reader, struct schema_node node, const char *const *names)
{
    for (const struct json *member = node.value->first; member; member = member->next) {
        size_t i = 0;
        while (names[i] && !bytes_equal(member->name, bytes_of(names[i])))
            i++;
        if (names[i])
            continue;
        struct builder words = {0};
        for (i = 0; names[i]; i++)
            builder_printf(&words, "%s%s", !i ? "" : names[i + 1] ? ", " : " and ", names[i]);
        const char *expected = arena_printf(reader->arena, "The members here are %.*s.", (int)words.size,
                                            words.size ? words.data : "");
        builder_free(&words);
        return schema_reader_refuse(reader, schema_reader_member(reader, node, member).path, expected);
    }
    return true;
}

bool schema_reader_flag(struct schema_reader *reader, struct schema_node object, const char *name,
                        bool *flag_r)
{
    const struct json *member = json_member(object.value, name);
    *flag_r = member && member->kind == JSON_TRUE;
    return !member || member->kind == JSON_TRUE || member->kind == JSON_FALSE ||
           schema_reader_refuse(reader, schema_reader_member(reader, object, member).path,
                                "true or false is expected.");
}

bool schema_reader_number(struct schema_reader *reader, struct schema_node object, const char *name,
                          int64_t least, int64_t most, int64_t standard, int64_t *number_r)
{
    const struct json *member = json_member(object.value, name);
    *number_r = standard;
    return !member || (json_is_i64(member, number_r) && *number_r >= least && *number_r <= most) ||
           schema_reader_refuse(reader, schema_reader_member(reader, object, member).path,
                                arena_printf(reader->arena, "An integer from %lld to %lld is expected.",
                                             (long long)least, (long long)most));
}

/* --- schema indexes --- */

static bool schema_indexes_read_field(struct schema_reader *reader, struct schema_node node,
                                      const struct schema_item *item, struct schema_index *index)
{
    struct bytes name = node.value->kind == JSON_STRING ? node.value->value : NO_BYTES;
    bool is_descending = name.size && *name.data == '-';
    if (is_descending)
        name = (struct bytes){name.data + 1, name.size - 1};
    const struct schema_field *field = name.size ? schema_find_field(item, name) : NULL;
    if (!field || field->is_list || field->text)
        return schema_reader_refuse(
            reader, node.path,
            "A field of the item that is no list is expected, with a - before it if it descends.");
    for (size_t i = 0; i < index->count; i++)
        if (bytes_equal(index->fields[i].name, name))
            return schema_reader_refuse(reader, node.path, "Each field is named once.");
    index->fields[index->count++] = (struct schema_index_field){field->name, is_descending};
    return true;
}

/* ["~name"] */
static bool read_likeness(struct schema_reader *reader, struct schema_node node,
                          const struct schema_item *item, struct schema_index *index)
{
    const struct bytes text = node.value->first->value, name = {text.data + 1, text.size - 1};
    const struct schema_field *field = name.size ? schema_find_field(item, name) : NULL;
    if (!field || field->is_list || (field->type != FIELD_STRING && field->type != FIELD_FOLDED))
        return schema_reader_refuse(
            reader, node.path,
            "A field of type string or folded is expected after ~, which stands for likeness.");
    *index = (struct schema_index){.fields = {{field->name, false}}, .count = 1, .is_likeness = true};
    return true;
}

static bool read_index(struct schema_reader *reader, struct schema_node node, const struct schema_item *item,
                       struct schema_index *index)
{
    const struct json *list = node.value;
    if (list->kind == JSON_ARRAY && !list->is_shallow && list->count == 1 &&
        list->first->kind == JSON_STRING && list->first->value.size && *list->first->value.data == '~')
        return read_likeness(reader, node, item, index);
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count < 2 ||
        list->count > SCHEMA_INDEX_FIELDS_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "A list of 2 to 4 fields is expected, or one field after ~; each field "
                                    "by itself has an index already.");
    for (const struct json *one = list->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, index->count), one};
        if (!schema_indexes_read_field(reader, at, item, index))
            return false;
    }
    return true;
}

bool schema_indexes_read(struct schema_reader *reader, struct schema_node item_node, struct schema_item *item)
{
    const struct json *member = json_member(item_node.value, "indexes");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, item_node, member);
    if (member->kind != JSON_ARRAY || member->is_shallow || member->count > SCHEMA_INDEXES_MOST)
        return schema_reader_refuse(reader, node.path, "A list of up to 16 indexes is expected.");
    struct schema_index *indexes = ARENA_ARRAY(reader->arena, struct schema_index, member->count);
    for (const struct json *one = member->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, item->index_count), one};
        struct schema_index *index = &indexes[item->index_count];
        if (!read_index(reader, at, item, index))
            return false;
        for (size_t i = 0; i < item->index_count; i++)
            if (schema_index_is_same(index, &indexes[i]))
                return schema_reader_refuse(
                    reader, at.path,
                    "Each index is declared once; one whose directions are all reversed is the same.");
        item->index_count++;
    }
    item->indexes = indexes;
    return true;
}

/* --- schema thumbnails --- */

/* It ends the key of an attachment, and stands in addresses. */
static bool schema_thumbnails_is_name(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.size && name.size <= SCHEMA_THUMBNAIL_NAME_MOST;
}

static bool read_thumbnail(struct schema_reader *reader, struct schema_node node,
                           struct schema_thumbnail *thumbnail)
{
    static const char *const members[] = {"width", "height", NULL};
    thumbnail->name = node.value->name;
    if (!schema_thumbnails_is_name(thumbnail->name))
        return schema_reader_refuse(reader, node.path,
                                    "A name of a thumbnail is a letter, then up to 15 letters and digits.");
    if (!schema_reader_is_object(reader, node, "An object with width and height is expected.") ||
        !schema_reader_has_only(reader, node, members) ||
        !schema_reader_number(reader, node, "width", SCHEMA_THUMBNAIL_SIDE_LEAST, SCHEMA_THUMBNAIL_SIDE_MOST,
                              0, &thumbnail->width) ||
        !schema_reader_number(reader, node, "height", SCHEMA_THUMBNAIL_SIDE_LEAST, SCHEMA_THUMBNAIL_SIDE_MOST,
                              0, &thumbnail->height))
        return false;
    return (thumbnail->width && thumbnail->height) ||
           schema_reader_refuse(reader, node.path, "The members width and height are expected.");
}

static int schema_thumbnails_compare_names(const void *a, const void *b)
{
    const struct schema_thumbnail *one = a, *other = b;
    return bytes_compare(one->name, other->name);
}

bool schema_thumbnails_read(struct schema_reader *reader, struct schema_node class_node,
                            struct schema_class *class)
{
    const struct json *member = json_member(class_node.value, "thumbnails");
    if (!member)
        return true;
    struct schema_node node = schema_reader_member(reader, class_node, member);
    if (!schema_reader_is_list(reader, node, SCHEMA_THUMBNAILS_MOST,
                               "An object of names and boxes is expected."))
        return false;
    struct schema_thumbnail *list = ARENA_ARRAY(reader->arena, struct schema_thumbnail, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!read_thumbnail(reader, schema_reader_member(reader, node, one), &list[class->thumbnail_count++]))
            return false;
    if (class->thumbnail_count)
        qsort(list, class->thumbnail_count, sizeof *list, schema_thumbnails_compare_names);
    class->thumbnails = list;
    return true;
}
