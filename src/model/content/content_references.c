/* content_references: resolves $ref: "#", "#/$defs/name", any pointer to a subschema, "#anchor". */
#include "model/content/content_references.h"

#include "base/coding/percent.h"
#include "model/content/content_place.h"

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

bool content_references_resolve(struct content_compiling *compiling)
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
