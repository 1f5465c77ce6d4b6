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
    rules_reader_refuse(reader, node, builder_take(&words, reader->arena).data);
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

/* --- rules read condition --- */

enum { CONDITION_DEPTH = 16 };

#define TESTS "all any not eq ne lt le gt ge in exists unchanged"
#define AN_OPERAND                                                                                           \
    "A text, number, true, false, null, or one of {\"before\":\"Item.member\"}, "                            \
    "{\"after\":\"Item.member\"} and {\"caller\":\"account\"} is expected."
#define A_LIST                                                                                               \
    "A list of operands, {\"caller\":\"roles\"}, {\"before\":\"Item.member\"} or "                           \
    "{\"after\":\"Item.member\"} is expected."

static bool count_node(struct rules_reader *reader, struct rules_node node)
{
    return ++reader->condition_nodes <= RULES_CONDITION_NODES_MOST ||
           rules_reader_refuse(reader, node,
                               arena_printf(reader->arena,
                                            "A condition of at most %d parts and operands is expected.",
                                            RULES_CONDITION_NODES_MOST));
}

/* An object with one member, whose name is one of `known`. */
static bool is_single(struct rules_reader *reader, struct rules_node node, const char *known,
                      const char *kind, const char *expected)
{
    const struct json *value = node.value;
    if (value->kind != JSON_OBJECT || value->is_shallow || value->count != 1)
        return rules_reader_refuse(reader, node, expected);
    return names_have(known, value->first->name) ||
           rules_reader_refuse_name(reader, rules_reader_member(reader, node, value->first), known, kind,
                                    value->first->name);
}

static bool read_caller(struct rules_reader *reader, struct rules_node node, bool is_list,
                        struct rules_operand *operand)
{
    bool is_text = node.value->kind == JSON_STRING;
    operand->source = is_list ? RULES_OF_ROLES : RULES_OF_ACCOUNT;
    if (is_text && bytes_equal(node.value->value, is_list ? BYTES("roles") : BYTES("account")))
        return true;
    return rules_reader_refuse(reader, node,
                               is_list ? "\"roles\" is expected: the list of the caller's roles."
                                       : "\"account\" is expected; \"roles\" may be the list of in alone.");
}

/* {"before":…}, {"after":…} or {"caller":…}. */
static bool read_reference(struct rules_reader *reader, struct rules_node node, bool is_list,
                           struct rules_operand *operand)
{
    if (!is_single(reader, node, "before after caller", "operand", is_list ? A_LIST : AN_OPERAND))
        return false;
    struct rules_node inner = rules_reader_member(reader, node, node.value->first);
    if (bytes_equal(inner.value->name, BYTES("caller")))
        return read_caller(reader, inner, is_list, operand);
    operand->source = bytes_equal(inner.value->name, BYTES("before")) ? RULES_OF_BEFORE : RULES_OF_AFTER;
    return rules_reader_read_place(reader, inner, &operand->place);
}

static bool read_operand(struct rules_reader *reader, struct rules_node node, struct rules_operand *operand)
{
    if (!count_node(reader, node))
        return false;
    if (node.value->kind == JSON_OBJECT)
        return read_reference(reader, node, false, operand);
    *operand = (struct rules_operand){.source = RULES_OF_LITERAL, .literal = node.value};
    return node.value->kind != JSON_ARRAY || rules_reader_refuse(reader, node, AN_OPERAND);
}

static bool rules_read_condition_read_list(struct rules_reader *reader, struct rules_node node,
                                           struct rules_operand *list)
{
    if (!count_node(reader, node))
        return false;
    if (node.value->kind == JSON_OBJECT)
        return read_reference(reader, node, true, list);
    if (node.value->kind != JSON_ARRAY || node.value->is_shallow || !node.value->count)
        return rules_reader_refuse(reader, node, A_LIST);
    struct rules_operand *elements = ARENA_ARRAY(reader->arena, struct rules_operand, node.value->count);
    *list = (struct rules_operand){.source = RULES_OF_LIST, .elements = elements};
    for (const struct json *one = node.value->first; one; one = one->next, list->count++)
        if (!read_operand(reader, rules_reader_element(reader, node, list->count, one),
                          &elements[list->count]))
            return false;
    return true;
}

static bool read_pair(struct rules_reader *reader, struct rules_node node, struct rules_condition *condition)
{
    const struct json *first = node.value->kind == JSON_ARRAY ? node.value->first : NULL;
    if (!first || node.value->count != 2)
        return rules_reader_refuse(reader, node, "A list of two operands is expected.");
    struct rules_node second = rules_reader_element(reader, node, 1, first->next);
    return read_operand(reader, rules_reader_element(reader, node, 0, first), &condition->operands[0]) &&
           (condition->test == RULES_IF_IN
                ? rules_read_condition_read_list(reader, second, &condition->operands[1])
                : read_operand(reader, second, &condition->operands[1]));
}

static bool read_exists(struct rules_reader *reader, struct rules_node node,
                        struct rules_condition *condition)
{
    if (node.value->kind != JSON_OBJECT)
        return rules_reader_refuse(reader, node, AN_OPERAND);
    return read_operand(reader, node, &condition->operands[0]);
}

static bool read_any_condition(struct rules_reader *reader, struct rules_node node, int depth,
                               struct rules_condition *condition);

/* Recursion is bounded by CONDITION_DEPTH. */
static bool read_parts(struct rules_reader *reader, struct rules_node node, int depth,
                       struct rules_condition *condition)
{
    bool is_not = condition->test == RULES_IF_NOT;
    if (!is_not && (node.value->kind != JSON_ARRAY || node.value->is_shallow || !node.value->count))
        return rules_reader_refuse(reader, node, "A list of conditions is expected.");
    condition->part_count = is_not ? 1 : node.value->count;
    struct rules_condition *parts = ARENA_ARRAY(reader->arena, struct rules_condition, condition->part_count);
    condition->parts = parts;
    if (is_not)
        return read_any_condition(reader, node, depth + 1, parts);
    size_t number = 0;
    for (const struct json *one = node.value->first; one; one = one->next, number++)
        if (!read_any_condition(reader, rules_reader_element(reader, node, number, one), depth + 1,
                                &parts[number]))
            return false;
    return true;
}

static enum rules_test test_of(struct bytes word)
{
    static const char *const words[] = {
        [RULES_IF_ALL] = "all", [RULES_IF_ANY] = "any", [RULES_IF_NOT] = "not",      [RULES_IF_EQ] = "eq",
        [RULES_IF_NE] = "ne",   [RULES_IF_LT] = "lt",   [RULES_IF_LE] = "le",        [RULES_IF_GT] = "gt",
        [RULES_IF_GE] = "ge",   [RULES_IF_IN] = "in",   [RULES_IF_EXISTS] = "exists"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (bytes_equal(word, bytes_of(words[i])))
            return (enum rules_test)i;
    return RULES_IF_UNCHANGED;
}

static bool read_any_condition(struct rules_reader *reader, struct rules_node node, int depth,
                               struct rules_condition *condition)
{
    if (!count_node(reader, node))
        return false;
    if (depth > CONDITION_DEPTH)
        return rules_reader_refuse(
            reader, node,
            arena_printf(reader->arena, "A condition of at most %d levels is expected.", CONDITION_DEPTH));
    if (!is_single(reader, node, TESTS, "condition",
                   "A condition is expected, an object with one member: one of " TESTS "."))
        return false;
    struct rules_node inner = rules_reader_member(reader, node, node.value->first);
    condition->test = test_of(inner.value->name);
    switch (condition->test) {
    case RULES_IF_ALL:
    case RULES_IF_ANY:
    case RULES_IF_NOT:
        return read_parts(reader, inner, depth, condition);
    case RULES_IF_EXISTS:
        return read_exists(reader, inner, condition);
    case RULES_IF_UNCHANGED:
        return rules_reader_read_place(reader, inner, &condition->operands[0].place);
    case RULES_IF_EQ:
    case RULES_IF_NE:
    case RULES_IF_LT:
    case RULES_IF_LE:
    case RULES_IF_GT:
    case RULES_IF_GE:
    case RULES_IF_IN:
        break;
    }
    return read_pair(reader, inner, condition);
}

bool rules_read_condition(struct rules_reader *reader, struct rules_node node,
                          const struct rules_condition **condition_r)
{
    struct rules_condition *condition = ARENA_NEW(reader->arena, struct rules_condition);
    *condition_r = condition;
    return read_any_condition(reader, node, 1, condition);
}
