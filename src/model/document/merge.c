/* merge: one level of objects at a time, so that only what the patch names becomes a tree. */
#include "model/document/merge.h"

#include "base/builder.h"
#include "edge/json/json.h"

enum { CONTENT_DEPTH_MOST = 256, NODES_MOST = 1000000 };

static enum fault read_level(struct arena *arena, struct bytes text, struct json **root_r)
{
    static const struct json_limits limits = {
        .depth = CONTENT_DEPTH_MOST, .tree_depth = 1, .nodes = NODES_MOST};
    struct json_problem problem;
    enum fault fault = json_read(arena, text, &limits, root_r, &problem);
    return fault ? FAULT_ALIMIT : FAULT_NONE;
}

static const struct json *find_member(const struct json *object, struct bytes name)
{
    for (const struct json *one = object ? object->first : NULL; one; one = one->next)
        if (bytes_equal(one->name, name))
            return one;
    return NULL;
}

static bool merge_is_within(struct arena *arena, struct bytes patch, int depth)
{
    struct json *root;
    if (read_level(arena, patch, &root))
        return false;
    if (root->kind != JSON_OBJECT)
        return depth > 1;
    if (depth > MERGE_DEPTH_MOST || root->count > MERGE_MEMBERS_MOST)
        return false;
    for (const struct json *one = root->first; one; one = one->next)
        if (one->kind == JSON_OBJECT && !merge_is_within(arena, one->text, depth + 1))
            return false;
    return true;
}

bool merge_is_patch(struct arena *arena, struct bytes patch)
{
    return merge_is_within(arena, patch, 1);
}

static enum fault merge_value(struct arena *arena, struct bytes content, struct bytes patch, int depth,
                              struct bytes *merged_r);

static void add_member(struct builder *text, struct bytes name, struct bytes value)
{
    builder_add_bytes(text, bytes_of(text->size > 1 ? "," : ""));
    json_add_string(text, name);
    builder_add_text(text, ":");
    builder_add_bytes(text, value);
}

/* The members of the content, with what the patch makes of them. */
static enum fault merge_present(struct arena *arena, const struct json *content, const struct json *patch,
                                int depth, struct builder *text, bool *is_changed)
{
    for (const struct json *one = content->first; one; one = one->next) {
        const struct json *named = find_member(patch, one->name);
        struct bytes value = one->text;
        enum fault fault = FAULT_NONE;
        if (named && named->kind != JSON_NULL)
            fault = merge_value(arena, one->text, named->text, depth, &value);
        if (fault)
            return fault;
        *is_changed |= named && (named->kind == JSON_NULL || !bytes_equal(value, one->text));
        if (!named || named->kind != JSON_NULL)
            add_member(text, one->name, value);
    }
    return FAULT_NONE;
}

/* Those that only the patch has.  Of an object that is new the nulls are left out, as of all others. */
static enum fault merge_new(struct arena *arena, const struct json *content, const struct json *patch,
                            int depth, struct builder *text, bool *is_changed)
{
    for (const struct json *one = patch->first; one; one = one->next) {
        struct bytes value;
        if (one->kind == JSON_NULL || find_member(content, one->name))
            continue;
        enum fault fault = merge_value(arena, BYTES("null"), one->text, depth, &value);
        if (fault)
            return fault;
        add_member(text, one->name, value);
        *is_changed = true;
    }
    return FAULT_NONE;
}

static enum fault merge_value(struct arena *arena, struct bytes content, struct bytes patch, int depth,
                              struct bytes *merged_r)
{
    static const struct json nothing = {.kind = JSON_OBJECT};
    struct json *present, *wanted;
    struct builder text = {0};
    *merged_r = patch;
    enum fault fault = read_level(arena, patch, &wanted);
    if (fault || wanted->kind != JSON_OBJECT)
        return fault;
    if (depth > MERGE_DEPTH_MOST || wanted->count > MERGE_MEMBERS_MOST)
        return FAULT_ALIMIT;
    fault = read_level(arena, content, &present);
    if (fault)
        return fault;
    bool is_changed = present->kind != JSON_OBJECT;
    const struct json *base = is_changed ? &nothing : present;
    builder_add_text(&text, "{");
    fault = FAULT_FIRST(merge_present(arena, base, wanted, depth + 1, &text, &is_changed),
                        merge_new(arena, base, wanted, depth + 1, &text, &is_changed));
    builder_add_text(&text, "}");
    *merged_r = is_changed ? arena_keep(arena, builder_bytes(&text)) : content;
    builder_free(&text);
    return fault;
}

enum fault merge_apply(struct arena *arena, struct bytes content, struct bytes patch, struct bytes *merged_r)
{
    return merge_value(arena, content, patch, 1, merged_r);
}
