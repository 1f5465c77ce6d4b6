/* content_compile: reads a schema's tree into nodes; content_read.c reads each keyword. */
#include "model/content/content_compiling.h"

#include "base/coding/percent.h"
#include "base/names.h"
#include "model/content/content_place.h"
#include "model/content/content_read.h"

/* --- content references: resolves $ref, and refuses cycles that never leave the value --- */

/* The child that a piece of a pointer names; NULL: there is none. */
static const struct json *find_child(const struct json *value, struct bytes piece)
{
    int64_t number;
    if (value->kind == JSON_OBJECT) {
        for (const struct json *child = value->first; child; child = child->next)
            if (bytes_equal(child->name, piece))
                return child;
    } else if (value->kind == JSON_ARRAY && bytes_to_i64(piece, &number) && number >= 0) {
        const struct json *child = value->first;
        while (child && number--)
            child = child->next;
        return child;
    }
    return NULL;
}

/* Replaces ~1 by / and ~0 by ~; false: another escape. */
static bool unescape(struct arena *arena, struct bytes *piece)
{
    char *text = arena_alloc(arena, piece->size + 1);
    size_t size = 0;
    for (size_t i = 0; i < piece->size; i++) {
        char c = piece->data[i];
        if (c == '~') {
            if (++i == piece->size || (piece->data[i] != '0' && piece->data[i] != '1'))
                return false;
            c = piece->data[i] == '0' ? '~' : '/';
        }
        text[size++] = c;
    }
    *piece = (struct bytes){text, size};
    return true;
}

/* The value at a JSON pointer; NULL: there is none. */
static const struct json *content_references_follow(struct arena *arena, const struct json *root,
                                                    struct bytes pointer)
{
    const struct json *value = root;
    if (!pointer.size)
        return root;
    (void)bytes_cut(&pointer, '/');
    while (value && pointer.data) {
        bool is_last = !memchr(pointer.data, '/', pointer.size);
        struct bytes piece = bytes_cut(&pointer, '/');
        if (!unescape(arena, &piece))
            return NULL;
        value = find_child(value, piece);
        if (is_last)
            break;
    }
    return value;
}

static const struct content_node *find_target(struct content_compiling *compiling, struct bytes fragment)
{
    bool is_pointer = !fragment.size || fragment.data[0] == '/';
    const struct json *source =
        is_pointer ? content_references_follow(compiling->arena, compiling->root, fragment) : NULL;
    for (size_t i = 0; i < compiling->count; i++) {
        const struct content_node *node = compiling->nodes[i];
        if (is_pointer ? node->source == source : node->anchor.data && bytes_equal(node->anchor, fragment))
            return node;
    }
    return NULL;
}

static bool resolve(struct content_compiling *compiling, struct content_node *node)
{
    struct content_logic *logic = node->logic;
    struct bytes reference = logic->reference->value, fragment;
    const char *what;
    if (!reference.size || reference.data[0] != '#')
        return content_place_refuse(
            compiling, node, "$ref",
            "A reference into this schema is expected: \"#/$defs/name\" or \"#anchor\".");
    reference = (struct bytes){reference.data + 1, reference.size - 1};
    if (percent_decode(compiling->arena, reference, false, &fragment, &what))
        return content_place_refuse(compiling, node, "$ref", "A reference with valid escapes is expected.");
    logic->target = find_target(compiling, fragment);
    if (!logic->target)
        return content_place_refuse(compiling, node, "$ref",
                                    "A reference to a subschema or an anchor of this schema is expected.");
    struct content_nodes *places = &node->in_place;
    ARENA_GROW(compiling->arena, places->list, places->count, places->capacity);
    places->list[places->count++] = logic->target;
    return true;
}

/* Goes through what is applied to one value; the way back to an open node is a cycle. */
static bool search_cycle(struct content_compiling *compiling, struct content_node *node)
{
    if (node->mark == MARK_OPEN)
        return content_place_refuse(
            compiling, node, NULL,
            "A subschema that does not apply to the same value without end is expected: "
            "references lead back to it.");
    if (node->mark == MARK_DONE)
        return true;
    node->mark = MARK_OPEN;
    for (size_t i = 0; i < node->in_place.count; i++)
        if (!search_cycle(compiling, (struct content_node *)node->in_place.list[i]))
            return false;
    node->mark = MARK_DONE;
    return true;
}

static bool has_own_anchors(struct content_compiling *compiling)
{
    for (size_t i = 0; i < compiling->count; i++)
        for (size_t k = 0; k < i && compiling->nodes[i]->anchor.data; k++)
            if (compiling->nodes[k]->anchor.data &&
                bytes_equal(compiling->nodes[k]->anchor, compiling->nodes[i]->anchor))
                return content_place_refuse(compiling, compiling->nodes[i], "$anchor",
                                            "An anchor that no other subschema has is expected.");
    return true;
}

/* Resolves all $ref and refuses cycles that never leave the value. */
static bool content_references_resolve(struct content_compiling *compiling)
{
    if (!has_own_anchors(compiling))
        return false;
    for (size_t i = 0; i < compiling->count; i++) {
        struct content_node *node = compiling->nodes[i];
        if (node->logic && node->logic->reference && !resolve(compiling, node))
            return false;
    }
    for (size_t i = 0; i < compiling->count; i++)
        if (!search_cycle(compiling, compiling->nodes[i]))
            return false;
    return true;
}

/* --- content compile --- */

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
    names_explain(content_read_names(compiling->is_raw), "keyword", name, &words);
    const char *expected = builder_take(&words, compiling->arena).data;
    return content_place_refuse(compiling, node, keyword, expected);
}

static bool read_keywords(struct content_compiling *compiling, struct content_node *node)
{
    for (const struct json *member = node->source->first; member; member = member->next) {
        content_keyword *read = content_read_find(member->name, compiling->is_raw);
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
