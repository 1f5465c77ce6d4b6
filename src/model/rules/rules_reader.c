/* rules_reader: paths, problems and names. */
#include "model/rules/rules_reader.h"

#include "base/names.h"
#include "model/document/item.h"

enum {
    SHOWN_MOST = 64, /* bytes of a name in a path */
    MEMBER_MOST = 64
};

bool rules_reader_refuse(struct rules_reader *reader, struct rules_node node, const char *expected)
{
    struct builder pointer = {0};
    if (reader->root && node.value)
        (void)json_add_pointer(&pointer, reader->root, node.value);
    *reader->problem = (struct rules_problem){
        node.path, arena_copy(reader->arena, pointer.size ? pointer.data : "", pointer.size), expected};
    builder_free(&pointer);
    return false;
}

struct rules_node rules_reader_member(struct rules_reader *reader, struct rules_node object,
                                      const struct json *member)
{
    size_t size = member->name.size < SHOWN_MOST ? member->name.size : SHOWN_MOST;
    while (size && size < member->name.size && ((unsigned char)member->name.data[size] & 0xc0) == 0x80)
        size--;
    return (struct rules_node){arena_printf(reader->arena, "%s%s%.*s", object.path, *object.path ? "." : "",
                                            (int)size, member->name.data),
                               member};
}

struct rules_node rules_reader_element(struct rules_reader *reader, struct rules_node array, size_t number,
                                       const struct json *element)
{
    return (struct rules_node){arena_printf(reader->arena, "%s[%zu]", array.path, number), element};
}

bool rules_reader_refuse_name(struct rules_reader *reader, struct rules_node node, const char *known,
                              const char *kind, struct bytes name)
{
    struct builder words = {0};
    names_explain(known, kind, name, &words);
    rules_reader_refuse(reader, node, arena_copy(reader->arena, words.data, words.size));
    builder_free(&words);
    return false;
}

bool rules_reader_is_object(struct rules_reader *reader, struct rules_node node, size_t most,
                            const char *expected)
{
    if (node.value->kind != JSON_OBJECT || node.value->is_shallow)
        return rules_reader_refuse(reader, node, expected);
    return node.value->count <= most ||
           rules_reader_refuse(reader, node,
                               arena_printf(reader->arena, "At most %zu members are expected.", most));
}

bool rules_reader_is_object_of(struct rules_reader *reader, struct rules_node node, const char *known,
                               const char *expected)
{
    if (!rules_reader_is_object(reader, node, SIZE_MAX, expected))
        return false;
    for (const struct json *member = node.value->first; member; member = member->next)
        if (!names_have(known, member->name))
            return rules_reader_refuse_name(reader, rules_reader_member(reader, node, member), known,
                                            "member", member->name);
    return true;
}

static bool rules_reader_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool rules_reader_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool rules_reader_is_name(struct bytes name, size_t most, const char *signs)
{
    for (size_t i = 0; i < name.size; i++)
        if (!rules_reader_is_letter(name.data[i]) && !rules_reader_is_digit(name.data[i]) &&
            !strchr(signs, name.data[i]))
            return false;
    return name.size && name.size <= most && !memchr(name.data, '\0', name.size);
}

bool rules_reader_is_item_class(struct rules_reader *reader, struct rules_node node, struct bytes name)
{
    if (!item_is_class_name(name))
        return rules_reader_refuse(
            reader, node,
            "A name of a class of items is a capital letter, then up to 15 letters and digits.");
    return !item_is_reserved(name) || rules_reader_refuse(reader, node, ITEM_RESERVED);
}

bool rules_reader_read_place(struct rules_reader *reader, struct rules_node node, struct rules_place *place_r)
{
    struct bytes text = node.value->kind == JSON_STRING ? node.value->value : NO_BYTES;
    const char *dot = text.size ? memchr(text.data, '.', text.size) : NULL;
    if (!dot)
        return rules_reader_refuse(reader, node, "A member of a singleton is expected: \"Item.member\".");
    place_r->item = (struct bytes){text.data, (size_t)(dot - text.data)};
    place_r->member = (struct bytes){dot + 1, text.size - place_r->item.size - 1};
    if (!rules_reader_is_item_class(reader, node, place_r->item))
        return false;
    return (rules_reader_is_name(place_r->member, MEMBER_MOST, "_-") &&
            !rules_reader_is_digit(*place_r->member.data)) ||
           rules_reader_refuse(
               reader, node,
               "The member after the point is a letter, _ or -, then up to 63 letters, digits, "
               "_ and -.");
}
