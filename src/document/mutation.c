/* mutation: the members of an object as a list, changed rule by rule, and written again. */
#include "document/mutation.h"

#include <string.h>

#include "edge/json.h"

struct member {
    struct bytes name, text;
};

struct members {
    struct member *list;
    size_t count;
    bool is_changed;
};

static struct member *find_member(const struct members *members, struct bytes name)
{
    for (size_t i = 0; i < members->count; i++)
        if (bytes_equal(members->list[i].name, name))
            return &members->list[i];
    return NULL;
}

static void remove_member(struct members *members, struct member *member)
{
    size_t behind = (size_t)(members->list + members->count - member - 1);
    memmove(member, member + 1, behind * sizeof *member);
    members->count--;
    members->is_changed = true;
}

static void apply_change(struct members *members, const struct schema_change *change)
{
    struct member *member = find_member(members, change->member);
    switch (change->kind) {
    case CHANGE_RENAME:
        if (!member)
            return;
        if (find_member(members, change->value)) {
            remove_member(members, member); /* of two the newer one stays */
            return;
        }
        member->name = change->value;
        members->is_changed = true;
        return;
    case CHANGE_DEFAULT:
        if (member)
            return;
        members->list[members->count++] = (struct member){change->member, change->value};
        members->is_changed = true;
        return;
    case CHANGE_DROP:
    default:
        if (member)
            remove_member(members, member);
    }
}

static struct bytes write_members(struct arena *arena, const struct members *members)
{
    struct builder text = {0};
    builder_add_text(&text, "{");
    for (size_t i = 0; i < members->count; i++) {
        if (i)
            builder_add_text(&text, ",");
        json_add_string(&text, members->list[i].name);
        builder_add_text(&text, ":");
        builder_add_bytes(&text, members->list[i].text);
    }
    builder_add_text(&text, "}");
    struct bytes result = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return result;
}

struct bytes mutation_apply(struct arena *arena, const struct schema_class *class, struct bytes item_class,
                            struct bytes content)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    size_t more = 0;
    for (size_t i = 0; i < class->mutation_count; i++)
        if (bytes_equal(class->mutations[i].item->name, item_class))
            more += class->mutations[i].change_count;
    if (!more || json_read(arena, content, &limits, &root, &problem) || root->kind != JSON_OBJECT)
        return content;
    struct members members = {.list = ARENA_ARRAY(arena, struct member, root->count + more)};
    for (const struct json *one = root->first; one; one = one->next)
        members.list[members.count++] = (struct member){one->name, one->text};
    for (size_t i = 0; i < class->mutation_count; i++) {
        const struct schema_mutation *mutation = &class->mutations[i];
        if (!bytes_equal(mutation->item->name, item_class))
            continue;
        for (size_t c = 0; c < mutation->change_count; c++)
            apply_change(&members, &mutation->changes[c]);
    }
    return members.is_changed ? write_members(arena, &members) : content;
}
