/* content_read_parts: keywords about elements and members, and those that combine subschemas. */
#include "model/content/content_read.h"

#include <stdlib.h>

#include "model/content/content_place.h"
#include "model/content/content_take.h"

/* --- arrays -------------------------------------------------------------------------------------- */

bool content_read_prefix(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    return content_take_list(compiling, node, value, false,
                             &content_take_array_rules(compiling, node)->prefix);
}

bool content_read_items(struct content_compiling *compiling, struct content_node *node,
                        const struct json *value)
{
    if (value->kind == JSON_ARRAY)
        return content_take_refuse(
            compiling, node, value,
            "One schema is expected: schemas for the first elements stand in prefixItems.");
    return content_take_schema(compiling, node, value, &content_take_array_rules(compiling, node)->items);
}

bool content_read_contains(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value)
{
    return content_take_schema(compiling, node, value, &content_take_array_rules(compiling, node)->contains);
}

bool content_read_unevaluated_items(struct content_compiling *compiling, struct content_node *node,
                                    const struct json *value)
{
    return content_take_schema(compiling, node, value,
                               &content_take_array_rules(compiling, node)->unevaluated);
}

bool content_read_least_items(struct content_compiling *compiling, struct content_node *node,
                              const struct json *value)
{
    return content_take_size(compiling, node, value, &content_take_array_rules(compiling, node)->least);
}

bool content_read_most_items(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value)
{
    return content_take_size(compiling, node, value, &content_take_array_rules(compiling, node)->most);
}

bool content_read_least_contained(struct content_compiling *compiling, struct content_node *node,
                                  const struct json *value)
{
    return content_take_size(compiling, node, value,
                             &content_take_array_rules(compiling, node)->least_contained);
}

bool content_read_most_contained(struct content_compiling *compiling, struct content_node *node,
                                 const struct json *value)
{
    return content_take_size(compiling, node, value,
                             &content_take_array_rules(compiling, node)->most_contained);
}

bool content_read_unique(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value)
{
    return content_take_flag(compiling, node, value, &content_take_array_rules(compiling, node)->is_unique);
}

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

bool content_read_additional(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value)
{
    return content_take_schema(compiling, node, value,
                               &content_take_object_rules(compiling, node)->additional);
}

bool content_read_property_names(struct content_compiling *compiling, struct content_node *node,
                                 const struct json *value)
{
    return content_take_schema(compiling, node, value,
                               &content_take_object_rules(compiling, node)->property_names);
}

bool content_read_unevaluated_properties(struct content_compiling *compiling, struct content_node *node,
                                         const struct json *value)
{
    return content_take_schema(compiling, node, value,
                               &content_take_object_rules(compiling, node)->unevaluated);
}

bool content_read_least_properties(struct content_compiling *compiling, struct content_node *node,
                                   const struct json *value)
{
    return content_take_size(compiling, node, value, &content_take_object_rules(compiling, node)->least);
}

bool content_read_most_properties(struct content_compiling *compiling, struct content_node *node,
                                  const struct json *value)
{
    return content_take_size(compiling, node, value, &content_take_object_rules(compiling, node)->most);
}

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

bool content_read_all(struct content_compiling *compiling, struct content_node *node,
                      const struct json *value)
{
    return content_take_list(compiling, node, value, true, &content_take_logic(compiling, node)->all);
}

bool content_read_any(struct content_compiling *compiling, struct content_node *node,
                      const struct json *value)
{
    return content_take_list(compiling, node, value, true, &content_take_logic(compiling, node)->any);
}

bool content_read_one(struct content_compiling *compiling, struct content_node *node,
                      const struct json *value)
{
    return content_take_list(compiling, node, value, true, &content_take_logic(compiling, node)->one);
}

bool content_read_not(struct content_compiling *compiling, struct content_node *node,
                      const struct json *value)
{
    return content_take_in_place(compiling, node, value, &content_take_logic(compiling, node)->not );
}

bool content_read_if(struct content_compiling *compiling, struct content_node *node, const struct json *value)
{
    return content_take_in_place(compiling, node, value, &content_take_logic(compiling, node)->condition);
}

bool content_read_then(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value)
{
    return content_take_in_place(compiling, node, value, &content_take_logic(compiling, node)->then);
}

bool content_read_else(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value)
{
    return content_take_in_place(compiling, node, value, &content_take_logic(compiling, node)->otherwise);
}

bool content_read_reference(struct content_compiling *compiling, struct content_node *node,
                            const struct json *value)
{
    content_take_logic(compiling, node)->reference = value;
    return content_take_string(compiling, node, value);
}
