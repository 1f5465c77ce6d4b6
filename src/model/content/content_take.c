/* content_take: the kinds of values that keywords have. */
#include "model/content/content_take.h"

#include "model/content/content_place.h"

static const int64_t size_most = INT64_C(1000000000000);

#define GROUP(compiling, place, ...)                                                                         \
    ((place) ? (place)                                                                                       \
             : ((place) = ARENA_NEW((compiling)->arena, __typeof__(*(place))),                               \
                *(place) = (__typeof__(*(place))){__VA_ARGS__}, (place)))

struct content_number_rules *content_take_number_rules(struct content_compiling *compiling,
                                                       struct content_node *node)
{
    return GROUP(compiling, node->number, .multiple = NULL);
}

struct content_string_rules *content_take_string_rules(struct content_compiling *compiling,
                                                       struct content_node *node)
{
    return GROUP(compiling, node->string, .least = 0, .most = NO_LIMIT);
}

struct content_array_rules *content_take_array_rules(struct content_compiling *compiling,
                                                     struct content_node *node)
{
    return GROUP(compiling, node->array, .least = 0, .most = NO_LIMIT, .least_contained = 1,
                 .most_contained = NO_LIMIT);
}

struct content_object_rules *content_take_object_rules(struct content_compiling *compiling,
                                                       struct content_node *node)
{
    return GROUP(compiling, node->object, .least = 0, .most = NO_LIMIT);
}

struct content_logic *content_take_logic(struct content_compiling *compiling, struct content_node *node)
{
    return GROUP(compiling, node->logic, .reference = NULL);
}

bool content_take_refuse(struct content_compiling *compiling, const struct content_node *node,
                         const struct json *value, const char *expected)
{
    return content_place_refuse(compiling, node,
                                arena_copy(compiling->arena, value->name.data, value->name.size), expected);
}

bool content_take_size(struct content_compiling *compiling, struct content_node *node,
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

bool content_take_flag(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, bool *flag_r)
{
    *flag_r = value->kind == JSON_TRUE;
    return *flag_r || value->kind == JSON_FALSE ||
           content_take_refuse(compiling, node, value, "true or false is expected.");
}

bool content_take_names(struct content_compiling *compiling, struct content_node *node,
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

bool content_take_string(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    return value->kind == JSON_STRING || content_take_refuse(compiling, node, value, "A string is expected.");
}

/* A subschema as the keyword's value. */
bool content_take_schema(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value, const struct content_node **schema_r)
{
    const char *keyword = arena_copy(compiling->arena, value->name.data, value->name.size);
    *schema_r = compiling->compile(compiling, value, node, keyword, NO_BYTES);
    return *schema_r != NULL;
}

void content_take_add(struct content_compiling *compiling, struct content_nodes *nodes,
                      const struct content_node *node)
{
    ARENA_GROW(compiling->arena, nodes->list, nodes->count, nodes->capacity);
    nodes->list[nodes->count++] = node;
}

bool content_take_in_place(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value, const struct content_node **schema_r)
{
    if (!content_take_schema(compiling, node, value, schema_r))
        return false;
    content_take_add(compiling, &node->in_place, *schema_r);
    return true;
}

/* A list of subschemas; `in_place`: they apply to the same value. */
bool content_take_list(struct content_compiling *compiling, struct content_node *node,
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

bool content_take_object(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value, const char *expected)
{
    return value->kind == JSON_OBJECT || content_take_refuse(compiling, node, value, expected);
}

const struct pattern *content_take_pattern(struct content_compiling *compiling,
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
