/* line: checks a line, and copies it into the request as it is written. */
#include "control/documents/line.h"

#include "base/coding/hash.h"
#include "base/names.h"
#include "edge/json/json.h"

static uint64_t hash_name(struct bytes class, struct bytes id)
{
    uint64_t hash = hash_more(HASH_START, class);
    return hash_more(hash_more(hash, BYTES(".")), id); /* a class has no dot */
}

bool line_is_empty(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!strchr(" \t\r\n", text.data[i]) || !text.data[i])
            return false;
    return true;
}

static const char *find_unknown(struct arena *arena, const struct json *root)
{
    static const char known[] = "c id v ct dt items";
    struct builder words = {0};
    for (const struct json *member = root->first; member; member = member->next) {
        if (names_have(known, member->name))
            continue;
        names_explain(known, "member", member->name, &words);
        return builder_take(&words, arena).data;
    }
    return NULL;
}

static const char *find_problem(struct arena *arena, const struct json *root)
{
    const struct json *class = json_member(root, "c"), *id = json_member(root, "id");
    const struct json *items = json_member(root, "items");
    if (root->kind != JSON_OBJECT)
        return "expected an object {\"c\":…,\"id\":…,\"items\":[…]}";
    if (!class || class->kind != JSON_STRING)
        return "expected a text as \"c\", the class";
    if (!id || id->kind != JSON_STRING)
        return "expected a text as \"id\"";
    if (items && items->kind != JSON_ARRAY)
        return "expected an array as \"items\"";
    return find_unknown(arena, root);
}

bool line_read(struct arena *arena, struct bytes text, struct builder *builder,
               struct line_document *document_r, const char **problem_r)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json_problem problem;
    struct json *root;
    if (json_read(arena, text, &limits, &root, &problem) != FAULT_NONE) {
        *problem_r = arena_printf(arena, "%s, at byte %zu", problem.what, problem.offset + 1);
        return false;
    }
    *problem_r = find_problem(arena, root);
    if (*problem_r)
        return false;
    const struct json *class = json_member(root, "c"), *id = json_member(root, "id");
    const struct json *items = json_member(root, "items");
    builder_add_text(builder, "{\"c\":");
    builder_add_bytes(builder, class->text);
    builder_add_text(builder, ",\"id\":");
    builder_add_bytes(builder, id->text);
    if (items) {
        builder_add_text(builder, ",\"items\":");
        builder_add_bytes(builder, items->text);
    }
    builder_add_text(builder, "}");
    *document_r = (struct line_document){class->value, id->value, hash_name(class->value, id->value)};
    return true;
}
