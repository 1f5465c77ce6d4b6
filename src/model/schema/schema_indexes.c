/* schema_indexes: up to 16 lists of two to four fields. */
#include "model/schema/schema_indexes.h"

#include "edge/json/json.h"
#include "model/schema/schema_index.h"

static bool schema_indexes_read_field(struct schema_reader *reader, struct schema_node node,
                                      const struct schema_item *item, struct schema_index *index)
{
    struct bytes name = node.value->kind == JSON_STRING ? node.value->value : NO_BYTES;
    bool is_descending = name.size && *name.data == '-';
    if (is_descending)
        name = (struct bytes){name.data + 1, name.size - 1};
    const struct schema_field *field = name.size ? schema_find_field(item, name) : NULL;
    if (!field || field->is_list)
        return schema_reader_refuse(
            reader, node.path,
            "A field of the item that is no list is expected, with a - before it if it descends.");
    for (size_t i = 0; i < index->count; i++)
        if (bytes_equal(index->fields[i].name, name))
            return schema_reader_refuse(reader, node.path, "Each field is named once.");
    index->fields[index->count++] = (struct schema_index_field){field->name, is_descending};
    return true;
}

static bool read_index(struct schema_reader *reader, struct schema_node node, const struct schema_item *item,
                       struct schema_index *index)
{
    const struct json *list = node.value;
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count < 2 ||
        list->count > SCHEMA_INDEX_FIELDS_MOST)
        return schema_reader_refuse(
            reader, node.path,
            "A list of 2 to 4 fields is expected; each field by itself has an index already.");
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
