/* schema_paths: stampd.export_at() and stampd.export_each() of the database follow paths in the same way. */
#include "model/schema/schema_paths.h"

#include "edge/json/json.h"

/* --- declarations -------------------------------------------------------------------------------- */

static bool read_name(struct schema_reader *reader, struct schema_node node, struct schema_path *path)
{
    if (node.value->kind != JSON_STRING || !node.value->value.size ||
        node.value->value.size > SCHEMA_MEMBER_NAME_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "The name of a member is expected, of 1 to 255 bytes.");
    path->members[path->count++] = node.value->value;
    return true;
}

bool schema_paths_read_list(struct schema_reader *reader, struct schema_node node, struct schema_path *path)
{
    const struct json *list = node.value;
    if (list->kind != JSON_ARRAY || list->is_shallow || !list->count || list->count > SCHEMA_PATH_MOST)
        return schema_reader_refuse(reader, node.path,
                                    "A list of 1 to 8 names is expected, from the content to the member.");
    for (const struct json *one = list->first; one; one = one->next) {
        struct schema_node at = {arena_printf(reader->arena, "%s[%zu]", node.path, path->count), one};
        if (!read_name(reader, at, path))
            return false;
    }
    return true;
}

/* A language, and what it is narrowed to, as PostgreSQL names its collations of ICU: "de", "de-AT",
 * "zh-Hant".
 */
static bool is_language(struct bytes text)
{
    bool is_letter = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (i && c >= '0' && c <= '9');
        if (!is_letter && (c != '-' || !i || text.data[i - 1] == '-'))
            return false;
    }
    return is_letter && text.size >= 2 && text.size <= SCHEMA_COLLATE_MOST;
}

static bool read_collate(struct schema_reader *reader, struct schema_node node, struct schema_field *field)
{
    const struct json *collate = json_member(node.value, "collate");
    if (!collate)
        return true;
    if (collate->kind != JSON_STRING || !is_language(collate->value))
        return schema_reader_refuse(reader, arena_printf(reader->arena, "%s.collate", node.path),
                                    "The tag of a language is expected, such as fr or de-AT.");
    if (field->type != FIELD_STRING || field->is_list)
        return schema_reader_refuse(
            reader, arena_printf(reader->arena, "%s.collate", node.path),
            "Only a field of type string that is no list has an order of a language.");
    field->collate = collate->value;
    return true;
}

bool schema_paths_read(struct schema_reader *reader, struct schema_node node, struct schema_field *field)
{
    static const char *const names[] = {"type", "at", "collate", NULL};
    const struct json *type = json_member(node.value, "type"), *list = json_member(node.value, "at");
    struct schema_path *path = ARENA_NEW(reader->arena, struct schema_path);
    if (!schema_reader_has_only(reader, node, names))
        return false;
    if (!type || type->kind != JSON_STRING || !schema_type_of(type->value, &field->type, &field->is_list))
        return schema_reader_refuse(reader, arena_printf(reader->arena, "%s.type", node.path),
                                    SCHEMA_TYPE_EXPECTED);
    if (!read_collate(reader, node, field))
        return false;
    if (!list && field->collate.data)
        return true;
    if (!list || list->kind != JSON_ARRAY || list->is_shallow || !list->count ||
        list->count > SCHEMA_PATH_MOST)
        return schema_reader_refuse(
            reader, node.path,
            "The member at is expected: a list of 1 to 8 names, from the content to the member.");
    if (!schema_paths_read_list(
            reader, (struct schema_node){arena_printf(reader->arena, "%s.at", node.path), list}, path))
        return false;
    bool is_plain = path->count == 1 && bytes_equal(path->members[0], field->name);
    field->path = is_plain ? NULL : path;
    return true;
}

bool schema_paths_are_same(const struct schema_path *one, const struct schema_path *other)
{
    if (!one || !other)
        return one == other;
    bool are_same = one->count == other->count;
    for (size_t i = 0; are_same && i < one->count; i++)
        are_same = bytes_equal(one->members[i], other->members[i]);
    return are_same;
}

/* --- contents ------------------------------------------------------------------------------------ */

struct followed {
    struct arena *arena;
    const struct json **list;
    size_t count, capacity;
};

static void add_followed(struct followed *followed, const struct json *value)
{
    ARENA_GROW(followed->arena, followed->list, followed->count, followed->capacity);
    followed->list[followed->count++] = value;
}

/* A value with its elements or members; NULL: it is no JSON.  Each level is read by itself, so that no tree
 * of a whole content is made. */
static const struct json *read_level(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    return json_read(arena, text, &limits, &root, &problem) ? NULL : root;
}

static void step_into(struct followed *next, const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    if (member)
        add_followed(next, member);
}

/* What `member` leads to from these values; sets has_list_r if one of them is a list that is passed. */
static struct followed follow_step(const struct followed *from, struct bytes member, bool passes,
                                   bool *has_list_r)
{
    struct followed next = {.arena = from->arena};
    const char *name = arena_copy(from->arena, member.data, member.size);
    for (size_t i = 0; i < from->count; i++) {
        const struct json *value = read_level(from->arena, from->list[i]->text);
        bool is_passed = passes && value && value->kind == JSON_ARRAY;
        *has_list_r |= is_passed;
        step_into(&next, value, name);
        for (const struct json *one = is_passed ? value->first : NULL; one; one = one->next)
            if (one->kind == JSON_OBJECT)
                step_into(&next, read_level(from->arena, one->text), name);
    }
    return next;
}

/* The elements of lists, and the other values if a list was passed. */
static struct followed take_elements(const struct followed *from, bool has_list, bool *is_there_r)
{
    struct followed all = {.arena = from->arena};
    *is_there_r = has_list;
    for (size_t i = 0; i < from->count; i++) {
        const struct json *value = from->list[i];
        bool is_list = value->kind == JSON_ARRAY;
        *is_there_r |= is_list;
        if (is_list)
            value = read_level(from->arena, value->text);
        for (const struct json *one = is_list && value ? value->first : NULL; one; one = one->next)
            add_followed(&all, one);
        if (!is_list && has_list)
            add_followed(&all, value);
    }
    return all;
}

bool schema_paths_follow(struct arena *arena, const struct schema_field *field, struct bytes content,
                         const struct json *const **values_r, size_t *count_r)
{
    struct followed values = {.arena = arena};
    const struct json *root = read_level(arena, content);
    bool has_list = false;
    if (!root || root->kind != JSON_OBJECT)
        return false;
    add_followed(&values, root);
    for (size_t i = 0; i < field->path->count; i++)
        values = follow_step(&values, field->path->members[i], field->is_list, &has_list);
    bool is_there = values.count > 0;
    if (field->is_list)
        values = take_elements(&values, has_list, &is_there);
    *values_r = values.list;
    *count_r = values.count;
    return is_there && values.count <= SCHEMA_ELEMENTS_MOST;
}
