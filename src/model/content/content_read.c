/* content_read: first the kinds of values that keywords have, then a reader for each keyword, then their
 * table. */
#include "model/content/content_read.h"

#include <stdlib.h>

#include "model/content/content_keyword_table.h"
#include "model/content/content_place.h"

/* Define content_read_WORD, the reader of a keyword whose value goes into a member of a group of rules; the
 * list is one of subschemas. */
#define CONTENT_VALUE(word, take, group, member)                                                             \
    static bool content_read_##word(struct content_compiling *compiling, struct content_node *node,          \
                                    const struct json *value)                                                \
    {                                                                                                        \
        return take(compiling, node, value, &content_take_##group(compiling, node)->member);                 \
    }
#define CONTENT_LIST(word, in_place, group, member)                                                          \
    static bool content_read_##word(struct content_compiling *compiling, struct content_node *node,          \
                                    const struct json *value)                                                \
    {                                                                                                        \
        return content_take_list(compiling, node, value, in_place,                                           \
                                 &content_take_##group(compiling, node)->member);                            \
    }

static const int64_t size_most = INT64_C(1000000000000);

#define GROUP(compiling, place, ...)                                                                         \
    ((place) ? (place)                                                                                       \
             : ((place) = ARENA_NEW((compiling)->arena, __typeof__(*(place))),                               \
                *(place) = (__typeof__(*(place))){__VA_ARGS__}, (place)))

/* The group of rules of a node, created when needed. */
static struct content_number_rules *content_take_number_rules(struct content_compiling *compiling,
                                                              struct content_node *node)
{
    return GROUP(compiling, node->number, .multiple = NULL);
}

static struct content_string_rules *content_take_string_rules(struct content_compiling *compiling,
                                                              struct content_node *node)
{
    return GROUP(compiling, node->string, .least = 0, .most = NO_LIMIT);
}

static struct content_array_rules *content_take_array_rules(struct content_compiling *compiling,
                                                            struct content_node *node)
{
    return GROUP(compiling, node->array, .least = 0, .most = NO_LIMIT, .least_contained = 1,
                 .most_contained = NO_LIMIT);
}

static struct content_object_rules *content_take_object_rules(struct content_compiling *compiling,
                                                              struct content_node *node)
{
    return GROUP(compiling, node->object, .least = 0, .most = NO_LIMIT);
}

static struct content_logic *content_take_logic(struct content_compiling *compiling,
                                                struct content_node *node)
{
    return GROUP(compiling, node->logic, .reference = NULL);
}

/* Reports that the keyword with this value is wrong, and returns false. */
static bool content_take_refuse(struct content_compiling *compiling, const struct content_node *node,
                                const struct json *value, const char *expected)
{
    return content_place_refuse(compiling, node,
                                arena_copy(compiling->arena, value->name.data, value->name.size), expected);
}

/* Each returns false when it has refused the value. */
static bool content_take_size(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value, int64_t *size_r)
{
    if (value->kind == JSON_NUMBER) {
        struct content_number number = content_number_read(value->value);
        struct content_divisor divisor = {0};
        if (!number.count) {
            *size_r = 0;
            return true;
        }
        if (content_number_is_integer(&number) && number.magnitude <= 13 &&
            content_number_to_divisor(&number, &divisor)) {
            int64_t size = (int64_t)divisor.digits;
            while (divisor.exponent-- > 0)
                size *= 10;
            *size_r = size;
            if (size <= size_most)
                return true;
        }
    }
    return content_take_refuse(compiling, node, value, "An integer from 0 to 1000000000000 is expected.");
}

static bool content_take_flag(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value, bool *flag_r)
{
    *flag_r = value->kind == JSON_TRUE;
    return *flag_r || value->kind == JSON_FALSE ||
           content_take_refuse(compiling, node, value, "true or false is expected.");
}

/* `keyword` is reported, `list` is checked. */
static bool content_take_names(struct content_compiling *compiling, struct content_node *node,
                               const struct json *keyword, const struct json *list)
{
    const struct json *twin;
    bool is_list = list->kind == JSON_ARRAY;
    for (const struct json *one = is_list ? list->first : NULL; one; one = one->next)
        is_list = is_list && one->kind == JSON_STRING;
    if (!is_list || content_value_find_twin(compiling->arena, list, &compiling->budget, &twin))
        return content_take_refuse(compiling, node, keyword, "A list of names is expected, each once.");
    return true;
}

static bool content_take_string(struct content_compiling *compiling, struct content_node *node,
                                const struct json *value)
{
    return value->kind == JSON_STRING || content_take_refuse(compiling, node, value, "A string is expected.");
}

/* A subschema as the keyword's value. */
/* A subschema as the keyword's value; in place: it applies to the same value as the node. */
static bool content_take_schema(struct content_compiling *compiling, struct content_node *node,
                                const struct json *value, const struct content_node **schema_r)
{
    const char *keyword = arena_copy(compiling->arena, value->name.data, value->name.size);
    *schema_r = compiling->compile(compiling, value, node, keyword, NO_BYTES);
    return *schema_r != NULL;
}

static void content_take_add(struct content_compiling *compiling, struct content_nodes *nodes,
                             const struct content_node *node)
{
    ARENA_GROW(compiling->arena, nodes->list, nodes->count, nodes->capacity);
    nodes->list[nodes->count++] = node;
}

static bool content_take_in_place(struct content_compiling *compiling, struct content_node *node,
                                  const struct json *value, const struct content_node **schema_r)
{
    if (!content_take_schema(compiling, node, value, schema_r))
        return false;
    content_take_add(compiling, &node->in_place, *schema_r);
    return true;
}

/* A list of subschemas; `in_place`: they apply to the same value. */
/* A list of them. */
static bool content_take_list(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value, bool in_place, struct content_nodes *nodes)
{
    const char *keyword = arena_copy(compiling->arena, value->name.data, value->name.size);
    if (value->kind != JSON_ARRAY || !value->count)
        return content_take_refuse(compiling, node, value, "A list of one or more schemas is expected.");
    for (const struct json *one = value->first; one; one = one->next) {
        const char *number = arena_printf(compiling->arena, "%zu", nodes->count);
        const struct content_node *schema =
            compiling->compile(compiling, one, node, keyword, bytes_of(number));
        if (!schema)
            return false;
        content_take_add(compiling, nodes, schema);
        if (in_place)
            content_take_add(compiling, &node->in_place, schema);
    }
    return true;
}

static bool content_take_object(struct content_compiling *compiling, struct content_node *node,
                                const struct json *value, const char *expected)
{
    return value->kind == JSON_OBJECT || content_take_refuse(compiling, node, value, expected);
}

/* NULL: refused, at this keyword (NULL: at the subschema itself). */
static const struct pattern *content_take_pattern(struct content_compiling *compiling,
                                                  const struct content_node *node, const char *keyword,
                                                  struct bytes text)
{
    struct pattern_problem problem;
    const struct pattern *pattern;
    if (pattern_compile(compiling->arena, text, &pattern, &problem))
        return pattern;
    (void)content_place_refuse(
        compiling, node, keyword,
        arena_printf(compiling->arena, "A regular expression that is supported is expected: %s at byte %zu.",
                     problem.what, problem.offset));
    return NULL;
}

/* --- arrays -------------------------------------------------------------------------------------- */

static bool content_read_items(struct content_compiling *compiling, struct content_node *node,
                               const struct json *value)
{
    if (value->kind == JSON_ARRAY)
        return content_take_refuse(
            compiling, node, value,
            "One schema is expected: schemas for the first elements stand in prefixItems.");
    return content_take_schema(compiling, node, value, &content_take_array_rules(compiling, node)->items);
}

/* clang-format off */
CONTENT_LIST(prefix, false, array_rules, prefix)
CONTENT_VALUE(contains, content_take_schema, array_rules, contains)
CONTENT_VALUE(unevaluated_items, content_take_schema, array_rules, unevaluated)
CONTENT_VALUE(least_items, content_take_size, array_rules, least)
CONTENT_VALUE(most_items, content_take_size, array_rules, most)
CONTENT_VALUE(least_contained, content_take_size, array_rules, least_contained)
CONTENT_VALUE(most_contained, content_take_size, array_rules, most_contained)
CONTENT_VALUE(unique, content_take_flag, array_rules, is_unique)
/* clang-format on */

/* --- objects ------------------------------------------------------------------------------------- */

static struct content_name *content_read_add_name(struct content_compiling *compiling,
                                                  struct content_node *node, struct bytes name)
{
    struct content_object_rules *rules = content_take_object_rules(compiling, node);
    ARENA_GROW(compiling->arena, rules->names, rules->name_count, rules->name_capacity);
    struct content_name *entry = &rules->names[rules->name_count++];
    *entry = (struct content_name){.name = name};
    return entry;
}

static bool content_read_properties(struct content_compiling *compiling, struct content_node *node,
                                    const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and schemas is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        const struct content_node *schema = compiling->compile(compiling, one, node, "properties", one->name);
        if (!schema)
            return false;
        content_read_add_name(compiling, node, one->name)->schema = schema;
    }
    return true;
}

static bool content_read_dependent_schemas(struct content_compiling *compiling, struct content_node *node,
                                           const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and schemas is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        const struct content_node *schema =
            compiling->compile(compiling, one, node, "dependentSchemas", one->name);
        if (!schema)
            return false;
        content_read_add_name(compiling, node, one->name)->dependent = schema;
        content_take_add(compiling, &node->in_place, schema);
    }
    return true;
}

static bool content_read_dependent_required(struct content_compiling *compiling, struct content_node *node,
                                            const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and lists of names is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        if (!content_take_names(compiling, node, value, one))
            return false;
        content_read_add_name(compiling, node, one->name)->needed = one;
    }
    return true;
}

static bool content_read_required(struct content_compiling *compiling, struct content_node *node,
                                  const struct json *value)
{
    if (!content_take_names(compiling, node, value, value))
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        content_read_add_name(compiling, node, one->value)->is_required = true;
    return true;
}

static bool content_read_pattern_properties(struct content_compiling *compiling, struct content_node *node,
                                            const struct json *value)
{
    struct content_object_rules *rules = content_take_object_rules(compiling, node);
    if (!content_take_object(compiling, node, value,
                             "An object of regular expressions and schemas is expected."))
        return false;
    rules->matching = ARENA_ARRAY(compiling->arena, struct content_matching, value->count + 1);
    for (const struct json *one = value->first; one; one = one->next) {
        const struct content_node *schema =
            compiling->compile(compiling, one, node, "patternProperties", one->name);
        const struct pattern *pattern =
            schema ? content_take_pattern(compiling, schema, NULL, one->name) : NULL;
        if (!pattern)
            return false;
        rules->matching[rules->matching_count++] = (struct content_matching){pattern, one->name, schema};
    }
    return true;
}

/* clang-format off */
CONTENT_VALUE(additional, content_take_schema, object_rules, additional)
CONTENT_VALUE(property_names, content_take_schema, object_rules, property_names)
CONTENT_VALUE(unevaluated_properties, content_take_schema, object_rules, unevaluated)
CONTENT_VALUE(least_properties, content_take_size, object_rules, least)
CONTENT_VALUE(most_properties, content_take_size, object_rules, most)
/* clang-format on */

static int content_read_compare_names(const void *a, const void *b)
{
    const struct content_name *one = a, *other = b;
    return bytes_compare(one->name, other->name);
}

void content_read_join_names(struct content_node *node)
{
    struct content_object_rules *rules = node->object;
    size_t kept = 0;
    if (!rules || !rules->name_count)
        return;
    qsort(rules->names, rules->name_count, sizeof *rules->names, content_read_compare_names);
    for (size_t i = 0; i < rules->name_count; i++) {
        struct content_name *entry = &rules->names[i];
        if (!kept || !bytes_equal(rules->names[kept - 1].name, entry->name)) {
            rules->names[kept++] = *entry;
            continue;
        }
        struct content_name *joined = &rules->names[kept - 1];
        joined->schema = joined->schema ? joined->schema : entry->schema;
        joined->dependent = joined->dependent ? joined->dependent : entry->dependent;
        joined->needed = joined->needed ? joined->needed : entry->needed;
        joined->is_required |= entry->is_required;
    }
    rules->name_count = kept;
    for (size_t i = 0; i < kept; i++)
        rules->required_count += rules->names[i].is_required;
}

/* --- logic --------------------------------------------------------------------------------------- */

/* clang-format off */
CONTENT_LIST(all, true, logic, all)
CONTENT_LIST(any, true, logic, any)
CONTENT_LIST(one, true, logic, one)
CONTENT_VALUE(not, content_take_in_place, logic, not)
CONTENT_VALUE(if, content_take_in_place, logic, condition)
CONTENT_VALUE(then, content_take_in_place, logic, then)
CONTENT_VALUE(else, content_take_in_place, logic, otherwise)
/* clang-format on */

static bool content_read_reference(struct content_compiling *compiling, struct content_node *node,
                                   const struct json *value)
{
    content_take_logic(compiling, node)->reference = value;
    return content_take_string(compiling, node, value);
}

/* Keywords about one value: types, choices, numbers, strings; and annotations. */

/* --- any value ----------------------------------------------------------------------------------- */

static unsigned type_of(struct bytes name)
{
    static const char *const names[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (bytes_equal(name, bytes_of(names[i])))
            return 1u << i;
    return 0;
}

static bool content_read_type(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_enum(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value)
{
    if (value->kind != JSON_ARRAY || !value->count)
        return content_take_refuse(compiling, node, value, "A list of one or more values is expected.");
    node->choice = read_choice(compiling, "enum", value, value->first, value->count);
    return true;
}

static bool content_read_const(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_multiple(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_pattern(struct content_compiling *compiling, struct content_node *node,
                                 const struct json *value)
{
    struct content_string_rules *rules = content_take_string_rules(compiling, node);
    if (!content_take_string(compiling, node, value))
        return false;
    rules->pattern_text = value->value;
    rules->pattern = content_take_pattern(compiling, node, "pattern", value->value);
    return rules->pattern != NULL;
}

static bool content_read_format(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_definitions(struct content_compiling *compiling, struct content_node *node,
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
static bool content_read_anchor(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_dialect(struct content_compiling *compiling, struct content_node *node,
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

static bool content_read_identifier(struct content_compiling *compiling, struct content_node *node,
                                    const struct json *value)
{
    if (node->outer)
        return content_take_refuse(compiling, node, value,
                                   "$id is expected at the root alone; $anchor names a subschema.");
    return content_take_string(compiling, node, value);
}

static bool content_read_text(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value)
{
    return content_take_string(compiling, node, value);
}

static bool content_read_marker(struct content_compiling *compiling, struct content_node *node,
                                const struct json *value)
{
    return content_take_flag(compiling, node, value, &(bool){false});
}

static bool content_read_examples(struct content_compiling *compiling, struct content_node *node,
                                  const struct json *value)
{
    return value->kind == JSON_ARRAY ||
           content_take_refuse(compiling, node, value, "A list of values is expected.");
}

static bool content_read_anything(struct content_compiling *compiling UNUSED,
                                  struct content_node *node UNUSED, const struct json *value UNUSED)
{
    return true;
}

/* --- the table ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    content_keyword *read;
    bool is_of_text;
} keywords[] = {
#define KEYWORD(name, word, is_of_text) {name, content_read_##word, is_of_text},
    CONTENT_KEYWORDS(KEYWORD)
#undef KEYWORD
};

content_keyword *content_read_find(struct bytes name, bool is_raw)
{
    for (size_t i = 0; i < COUNT_OF(keywords); i++)
        if ((!is_raw || keywords[i].is_of_text) && bytes_equal(name, bytes_of(keywords[i].name)))
            return keywords[i].read;
    return NULL;
}

const char *content_read_names(bool is_raw)
{
#define KEYWORD(name, word, is_of_text) " " name
    static const char all[] = CONTENT_KEYWORDS(KEYWORD);
#undef KEYWORD
    return is_raw ? "minLength maxLength pattern format title description $comment" : all + 1;
}
