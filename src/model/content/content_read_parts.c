/* content_read_parts: keywords about elements and members, and those that combine subschemas. */
#include "model/content/content_read.h"

#include <stdlib.h>

#include "model/content/content_place.h"
#include "model/content/content_take.h"

/* --- arrays -------------------------------------------------------------------------------------- */

bool content_read_items(struct content_compiling *compiling, struct content_node *node,
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

static struct content_name *content_read_parts_add_name(struct content_compiling *compiling,
                                                        struct content_node *node, struct bytes name)
{
    struct content_object_rules *rules = content_take_object_rules(compiling, node);
    ARENA_GROW(compiling->arena, rules->names, rules->name_count, rules->name_capacity);
    struct content_name *entry = &rules->names[rules->name_count++];
    *entry = (struct content_name){.name = name};
    return entry;
}

bool content_read_properties(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and schemas is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        const struct content_node *schema = compiling->compile(compiling, one, node, "properties", one->name);
        if (!schema)
            return false;
        content_read_parts_add_name(compiling, node, one->name)->schema = schema;
    }
    return true;
}

bool content_read_dependent_schemas(struct content_compiling *compiling, struct content_node *node,
                                    const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and schemas is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        const struct content_node *schema =
            compiling->compile(compiling, one, node, "dependentSchemas", one->name);
        if (!schema)
            return false;
        content_read_parts_add_name(compiling, node, one->name)->dependent = schema;
        content_take_add(compiling, &node->in_place, schema);
    }
    return true;
}

bool content_read_dependent_required(struct content_compiling *compiling, struct content_node *node,
                                     const struct json *value)
{
    if (!content_take_object(compiling, node, value, "An object of names and lists of names is expected."))
        return false;
    for (const struct json *one = value->first; one; one = one->next) {
        if (!content_take_names(compiling, node, value, one))
            return false;
        content_read_parts_add_name(compiling, node, one->name)->needed = one;
    }
    return true;
}

bool content_read_required(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value)
{
    if (!content_take_names(compiling, node, value, value))
        return false;
    for (const struct json *one = value->first; one; one = one->next)
        content_read_parts_add_name(compiling, node, one->value)->is_required = true;
    return true;
}

bool content_read_pattern_properties(struct content_compiling *compiling, struct content_node *node,
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

static int content_read_parts_compare_names(const void *a, const void *b)
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
    qsort(rules->names, rules->name_count, sizeof *rules->names, content_read_parts_compare_names);
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

bool content_read_reference(struct content_compiling *compiling, struct content_node *node,
                            const struct json *value)
{
    content_take_logic(compiling, node)->reference = value;
    return content_take_string(compiling, node, value);
}
