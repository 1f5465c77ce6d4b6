/* build: a counter, whose only use is that it changes. */
#include "operation/documents/build.h"

#include "edge/json/json.h"
#include "model/namespace.h"

static int64_t read_count(struct arena *arena, const struct item *item)
{
    static const struct json_limits limits = {.depth = 1, .tree_depth = 1, .nodes = 4};
    struct json *object;
    struct json_problem problem;
    int64_t count;
    bool is_read = item && !json_read(arena, item->content, &limits, &object, &problem) &&
                   json_member(object, "n") && json_is_i64(json_member(object, "n"), &count);
    return is_read && count > 0 && count < INT64_MAX ? count : 0;
}

void build_move(struct attempt *attempt, struct draft *draft)
{
    struct arena *arena = attempt->call->arena;
    const struct item *before = document_find_item(draft_base(draft), BYTES("Build"), BYTES(""));
    bool is_there = before && !item_is_tombstone(before);
    int64_t count = read_count(arena, is_there ? before : NULL);
    draft_set_item(draft, BYTES("Build"), BYTES(""), false,
                   bytes_of(arena_printf(arena, "{\"n\":%lld}", (long long)count + 1)));
}

static struct ns_conf read_conf(struct arena *arena, const struct item *item)
{
    return namespace_read(arena, item && !item_is_tombstone(item) ? item->content : NO_BYTES);
}

void build_note(struct attempt *attempt, struct draft *draft)
{
    struct arena *arena = attempt->call->arena;
    const struct ns_conf before =
        read_conf(arena, document_find_item(draft_base(draft), BYTES("Conf"), BYTES("")));
    const struct ns_conf after = read_conf(arena, draft_find_item(draft, BYTES("Conf"), BYTES("")));
    if (!bytes_equal(before.label, after.label) || !bytes_equal(before.theme, after.theme) ||
        !bytes_equal(before.options, after.options))
        build_move(attempt, draft);
}
