/* json_pointer: finds the position of a value in a tree by search, so that readers need not keep a path. */
#include "edge/json/json.h"

void json_add_pointer_name(struct builder *builder, struct bytes name)
{
    builder_add_text(builder, "/");
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '~')
            builder_add_text(builder, "~0");
        else if (name.data[i] == '/')
            builder_add_text(builder, "~1");
        else
            builder_add(builder, &name.data[i], 1);
    }
}

/* Recursion is as deep as the tree, which json_limits bound. */
bool json_add_pointer(struct builder *builder, const struct json *root, const struct json *value)
{
    if (root == value)
        return true;
    size_t number = 0, start = builder->size;
    for (const struct json *child = root->first; child; child = child->next, number++) {
        if (child != value && !child->first)
            continue;
        if (root->kind == JSON_OBJECT)
            json_add_pointer_name(builder, child->name);
        else
            builder_printf(builder, "/%zu", number);
        if (json_add_pointer(builder, child, value))
            return true;
        builder->size = start;
    }
    return false;
}
