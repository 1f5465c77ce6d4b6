/* schema_thumbnails: up to eight boxes, sorted by their names. */
#include "model/schema/schema_thumbnails.h"

#include <stdlib.h>

#include "edge/json/json.h"

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
