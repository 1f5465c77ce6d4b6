/* openapi_content: copies the tree, member by member, except for what are values and not schemas. */
#include "operation/openapi/openapi_content.h"

#include "base/names.h"
#include "edge/json/json.h"

static const struct json_limits limits = {.depth = 256, .tree_depth = 256};

struct content_copy {
    const struct json *root;
    const char *place;
    struct builder *body;
};

/* Is its value no schema? */
static bool is_value(struct bytes name)
{
    return names_have("const enum default examples", name);
}

/* Is its value an object with a schema for each name? */
static bool has_names(struct bytes name)
{
    return names_have("properties patternProperties dependentSchemas $defs", name);
}

/* The schema with the anchor; NULL: none. */
static const struct json *find_anchor(const struct json *schema, struct bytes anchor, bool is_names)
{
    const struct json *own = is_names ? NULL : json_member(schema, "$anchor"), *found = NULL;
    if (own && own->kind == JSON_STRING && bytes_equal(own->value, anchor))
        return schema;
    for (const struct json *one = schema->first; one && !found; one = one->next)
        if (is_names || !is_value(one->name))
            found = find_anchor(one, anchor, !is_names && has_names(one->name));
    return found;
}

static void add_reference(const struct content_copy *copy, struct bytes reference)
{
    const struct bytes fragment = {reference.data + 1, reference.size - 1};
    const struct json *anchored =
        fragment.size && *fragment.data != '/' ? find_anchor(copy->root, fragment, false) : NULL;
    struct builder target = {0};
    builder_add_bytes(&target, bytes_of(copy->place));
    if (anchored)
        (void)json_add_pointer(&target, copy->root, anchored);
    else
        builder_add_bytes(&target, fragment);
    json_add_string(copy->body, builder_bytes(&target));
    builder_free(&target);
}

static void add_schema(const struct content_copy *copy, const struct json *schema, bool is_names);

static void openapi_content_add_member(const struct content_copy *copy, const struct json *member,
                                       bool is_names)
{
    json_add_string(copy->body, member->name);
    builder_add_text(copy->body, ":");
    if (!is_names && bytes_equal(member->name, BYTES("$ref")) && member->value.size)
        add_reference(copy, member->value);
    else if (!is_names && is_value(member->name))
        builder_add_bytes(copy->body, member->text);
    else
        add_schema(copy, member, !is_names && has_names(member->name));
}

/* `is_names`: an object whose members are schemas, with any names. */
static void add_schema(const struct content_copy *copy, const struct json *schema, bool is_names)
{
    const bool is_array = schema->kind == JSON_ARRAY;
    if (!is_array && schema->kind != JSON_OBJECT) {
        builder_add_bytes(copy->body, schema->text);
        return;
    }
    builder_add_bytes(copy->body, is_array ? BYTES("[") : BYTES("{"));
    for (const struct json *one = schema->first; one; one = one->next) {
        if (one != schema->first)
            builder_add_text(copy->body, ",");
        if (is_array)
            add_schema(copy, one, false);
        else
            openapi_content_add_member(copy, one, is_names);
    }
    builder_add_bytes(copy->body, is_array ? BYTES("]") : BYTES("}"));
}

void openapi_content_add(struct bytes schema, const char *place, struct builder *body)
{
    struct content_copy copy = {.place = place, .body = body};
    struct arena *arena = arena_create("content"); /* the tree of one schema at a time */
    struct json *root;
    struct json_problem problem;
    const bool is_read = json_read(arena, schema, &limits, &root, &problem) == FAULT_NONE;
    copy.root = root;
    if (is_read && bytes_equal(root->text, BYTES("false")))
        builder_add_text(body, ",\"not\":{}");
    for (const struct json *one = is_read ? root->first : NULL; one; one = one->next) {
        if (names_have("$id $schema", one->name)) /* only the root of a document may have them */
            continue;
        builder_add_text(body, ",");
        openapi_content_add_member(&copy, one, false);
    }
    arena_destroy(arena);
}
