/* content_read_value: keywords about one value: types, choices, numbers, strings; and annotations. */
#include "model/content/content_read.h"

#include <stdlib.h>

#include "model/content/content_place.h"
#include "model/content/content_take.h"

/* --- any value ----------------------------------------------------------------------------------- */

static unsigned type_of(struct bytes name)
{
    static const char *const names[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (bytes_equal(name, bytes_of(names[i])))
            return 1u << i;
    return 0;
}

bool content_read_type(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value)
{
    const struct json *one = value->kind == JSON_ARRAY ? value->first : value;
    bool is_type = one != NULL;
    for (; one && is_type; one = value->kind == JSON_ARRAY ? one->next : NULL) {
        unsigned type = one->kind == JSON_STRING ? type_of(one->value) : 0;
        is_type = type && !(node->types & type);
        node->types |= type;
    }
    return is_type ||
           content_take_refuse(compiling, node, value,
                               "A type or a list of different types is expected: null, boolean, number, "
                               "integer, string, array or object.");
}

static int compare_options(const void *a, const void *b)
{
    const struct content_option *one = a, *other = b;
    return one->hash < other->hash ? -1 : one->hash > other->hash;
}

static struct content_choice *read_choice(struct content_compiling *compiling, const char *keyword,
                                          const struct json *source, const struct json *first, size_t count)
{
    struct content_choice *choice = ARENA_NEW(compiling->arena, struct content_choice);
    *choice = (struct content_choice){.keyword = keyword, .source = source};
    choice->options = ARENA_ROOM(compiling->arena, struct content_option, count + 1);
    for (const struct json *one = first; choice->count < count; one = one->next)
        choice->options[choice->count++] =
            (struct content_option){content_value_hash(one, &compiling->budget), one};
    qsort(choice->options, count, sizeof *choice->options, compare_options);
    return choice;
}

bool content_read_enum(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value)
{
    if (value->kind != JSON_ARRAY || !value->count)
        return content_take_refuse(compiling, node, value, "A list of one or more values is expected.");
    node->choice = read_choice(compiling, "enum", value, value->first, value->count);
    return true;
}

bool content_read_const(struct content_compiling *compiling, struct content_node *node,
                        const struct json *value)
{
    node->constant = read_choice(compiling, "const", value, value, 1);
    return true;
}

/* --- numbers ------------------------------------------------------------------------------------- */

static bool read_bound(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, struct content_bound *bound)
{
    if (value->kind != JSON_NUMBER)
        return content_take_refuse(compiling, node, value, "A number is expected.");
    *bound = (struct content_bound){value, content_number_read(value->value)};
    return true;
}

/* clang-format off */
CONTENT_VALUE(minimum, read_bound, number_rules, minimum)
CONTENT_VALUE(maximum, read_bound, number_rules, maximum)
CONTENT_VALUE(above, read_bound, number_rules, above)
CONTENT_VALUE(below, read_bound, number_rules, below)
/* clang-format on */

bool content_read_multiple(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value)
{
    struct content_number_rules *rules = content_take_number_rules(compiling, node);
    struct content_number number =
        value->kind == JSON_NUMBER ? content_number_read(value->value) : (struct content_number){0};
    if (!content_number_to_divisor(&number, &rules->divisor))
        return content_take_refuse(compiling, node, value,
                                   "A number above 0 of at most 18 digits is expected.");
    rules->multiple = value;
    return true;
}

/* --- strings ------------------------------------------------------------------------------------- */

/* clang-format off */
CONTENT_VALUE(least_length, content_take_size, string_rules, least)
CONTENT_VALUE(most_length, content_take_size, string_rules, most)
/* clang-format on */

bool content_read_pattern(struct content_compiling *compiling, struct content_node *node,
                          const struct json *value)
{
    struct content_string_rules *rules = content_take_string_rules(compiling, node);
    if (!content_take_string(compiling, node, value))
        return false;
    rules->pattern_text = value->value;
    rules->pattern = content_take_pattern(compiling, node, "pattern", value->value);
    return rules->pattern != NULL;
}

bool content_read_format(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    struct content_string_rules *rules = content_take_string_rules(compiling, node);
    rules->format = value->kind == JSON_STRING ? content_format_find(value->value) : NULL;
    rules->format_name = value->value;
    return rules->format ||
           content_take_refuse(
               compiling, node, value,
               "A format that is supported is expected: date-time, date, time, email, uri, uuid, ipv4 or "
               "ipv6.");
}

/* --- names of schemas, annotations --------------------------------------------------------------- */

bool content_read_definitions(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and schemas is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        if (!compiling->compile(compiling, one, node, "$defs", one->name))
            return false;
    return true;
}

/* A letter or "_", then letters, digits, "-", "_" and "." */
bool content_read_anchor(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    struct bytes name = value->value;
    bool is_name = value->kind == JSON_STRING && name.size;
    for (size_t i = 0; i < name.size && is_name; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        is_name = is_letter || (i && ((c >= '0' && c <= '9') || c == '-' || c == '.'));
    }
    node->anchor = name;
    return is_name || content_take_refuse(
                          compiling, node, value,
                          "A letter or \"_\", then letters, digits, \"-\", \"_\" and \".\" are expected.");
}

bool content_read_dialect(struct content_compiling *compiling, struct content_node *node,
                          const struct json *value)
{
    static const char dialect[] = "https://json-schema.org/draft/2020-12/schema";
    bool is_known = !node->outer && value->kind == JSON_STRING &&
                    (bytes_equal(value->value, bytes_of(dialect)) ||
                     bytes_equal(value->value, BYTES("https://json-schema.org/draft/2020-12/schema#")));
    return is_known ||
           content_take_refuse(compiling, node, value,
                               "\"https://json-schema.org/draft/2020-12/schema\" is expected, at the root.");
}

bool content_read_identifier(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value)
{
    if (node->outer)
        return content_take_refuse(compiling, node, value,
                                   "$id is expected at the root alone; $anchor names a subschema.");
    return content_take_string(compiling, node, value);
}

bool content_read_text(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value)
{
    return content_take_string(compiling, node, value);
}

bool content_read_marker(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    return content_take_flag(compiling, node, value, &(bool){false});
}

bool content_read_examples(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value)
{
    return value->kind == JSON_ARRAY ||
           content_take_refuse(compiling, node, value, "A list of values is expected.");
}

bool content_read_anything(struct content_compiling *compiling UNUSED, struct content_node *node UNUSED,
                           const struct json *value UNUSED)
{
    return true;
}
