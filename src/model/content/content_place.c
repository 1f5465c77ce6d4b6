/* content_place: where a subschema stands, and refusals that name it. */
#include "model/content/content_place.h"

/* Appends the JSON pointer of the subschema. */
static void content_place_add(struct builder *text, const struct content_node *node)
{
    if (!node->outer)
        return;
    content_place_add(text, node->outer);
    json_add_pointer_name(text, bytes_of(node->keyword));
    if (node->name.data)
        json_add_pointer_name(text, node->name);
}

const char *content_place_of_rule(struct arena *arena, const struct content_node *node, const char *keyword)
{
    struct builder text = {0};
    content_place_add(&text, node);
    if (keyword)
        json_add_pointer_name(&text, bytes_of(keyword));
    const char *place = arena_copy(arena, text.size ? text.data : "", text.size);
    builder_free(&text);
    return place;
}

bool content_place_refuse(struct content_compiling *compiling, const struct content_node *node,
                          const char *keyword, const char *expected)
{
    const char *place = content_place_of_rule(compiling->arena, node, keyword);
    *compiling->problem = (struct content_problem){.place = place, .expected = expected};
    return false;
}
