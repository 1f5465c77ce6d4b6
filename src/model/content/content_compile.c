/* content_compile: reads a schema's tree into nodes; content_read_*.c read each keyword. */
#include "model/content/content_keyword.h"

#include "base/names.h"
#include "model/content/content_place.h"
#include "model/content/content_read.h"
#include "model/content/content_references.h"

static bool refuse_unknown(struct content_compiling *compiling, const struct content_node *node,
                           struct bytes name)
{
    static const char *const elsewhere[][2] = {
        {"$dynamicRef", "$ref is expected: dynamic references are not supported."},
        {"$dynamicAnchor", "$anchor is expected: dynamic references are not supported."},
        {"$recursiveRef", "$ref is expected: dynamic references are not supported."},
        {"definitions", "$defs is expected: definitions is of an older draft."},
        {"dependencies", "dependentRequired or dependentSchemas is expected: dependencies is of an older "
                         "draft."},
        {"additionalItems", "items, beside prefixItems, is expected: additionalItems is of an older draft."},
        {"nullable", "\"null\" among the types is expected: nullable is of OpenAPI."},
    };
    size_t shown = name.size < 64 ? name.size : 64;
    const char *keyword = arena_copy(compiling->arena, name.data, shown);
    for (size_t i = 0; i < COUNT_OF(elsewhere) && !compiling->is_raw; i++)
        if (bytes_equal(name, bytes_of(elsewhere[i][0])))
            return content_place_refuse(compiling, node, keyword, elsewhere[i][1]);
    struct builder words = {0};
    names_explain(content_keyword_names(compiling->is_raw), "keyword", name, &words);
    const char *expected = arena_copy(compiling->arena, words.data, words.size);
    builder_free(&words);
    return content_place_refuse(compiling, node, keyword, expected);
}

static bool read_keywords(struct content_compiling *compiling, struct content_node *node)
{
    for (const struct json *member = node->source->first; member; member = member->next) {
        content_keyword *read = content_keyword_find(member->name, compiling->is_raw);
        if (!read)
            return refuse_unknown(compiling, node, member->name);
        if (!read(compiling, node, member))
            return false;
    }
    content_read_join_names(node);
    return true;
}

static struct content_node *compile_node(struct content_compiling *compiling, const struct json *source,
                                         const struct content_node *outer, const char *keyword,
                                         struct bytes name)
{
    struct content_node *node = ARENA_NEW(compiling->arena, struct content_node);
    *node = (struct content_node){.outer = outer, .keyword = keyword, .name = name, .source = source};
    if (compiling->count == CONTENT_SUBSCHEMAS_MOST) {
        (void)content_place_refuse(
            compiling, node, NULL,
            arena_printf(compiling->arena, "At most %d subschemas are expected.", CONTENT_SUBSCHEMAS_MOST));
        return NULL;
    }
    ARENA_GROW(compiling->arena, compiling->nodes, compiling->count, compiling->capacity);
    compiling->nodes[compiling->count++] = node;
    if (source->kind == JSON_TRUE || source->kind == JSON_FALSE) {
        node->kind = source->kind == JSON_TRUE ? NODE_ANY : NODE_NONE;
        return node;
    }
    if (source->kind != JSON_OBJECT) {
        (void)content_place_refuse(compiling, node, NULL, "A schema is expected: an object, true or false.");
        return NULL;
    }
    if (source->is_shallow) {
        (void)content_place_refuse(compiling, node, NULL, "A schema that is nested less deep is expected.");
        return NULL;
    }
    return read_keywords(compiling, node) ? node : NULL;
}

bool content_compile(struct arena *arena, const struct json *text, bool is_raw,
                     const struct content_schema **schema_r, struct content_problem *problem_r)
{
    struct content_compiling compiling = {.arena = arena,
                                          .problem = problem_r,
                                          .root = text,
                                          .compile = compile_node,
                                          .is_raw = is_raw,
                                          .budget = {INT64_C(10000000)}};
    *schema_r = NULL;
    if (text->text.size > CONTENT_SCHEMA_BYTES_MOST) {
        const char *expected =
            arena_printf(arena, "A schema of at most %d bytes is expected.", CONTENT_SCHEMA_BYTES_MOST);
        *problem_r = (struct content_problem){"", expected};
        return false;
    }
    struct content_node *root = compile_node(&compiling, text, NULL, "", NO_BYTES);
    if (!root || !content_references_resolve(&compiling))
        return false;
    struct content_schema *schema = ARENA_NEW(arena, struct content_schema);
    *schema = (struct content_schema){.root = root, .is_raw = is_raw};
    *schema_r = schema;
    return true;
}
