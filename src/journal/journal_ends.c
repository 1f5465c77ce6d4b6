/* journal_ends: members of JSON objects are passed on as they were written. */
#include "journal/journal_ends.h"

#include <inttypes.h>

#include "base/names.h"

/* Members of a param, of its take, and of an answer; the server limits their depth to 128. */
static const struct json_limits param_limits = {.depth = 64, .tree_depth = 1, .nodes = 1000};
static const struct json_limits answer_limits = {.depth = 256, .tree_depth = 2};

static struct json *journal_ends_read_object(struct arena *arena, struct bytes text,
                                             const struct json_limits *limits)
{
    struct json_problem problem;
    struct json *root = NULL;
    bool is_read = json_read(arena, text, limits, &root, &problem) == FAULT_NONE;
    return is_read && root->kind == JSON_OBJECT ? root : NULL;
}

const struct json *journal_ends_take(struct arena *arena, const struct json *param)
{
    const struct json *take = json_member(param, "take");
    return take ? journal_ends_read_object(arena, take->text, &param_limits) : NULL;
}

/* Adds a member to the object that `out` ends with, which is open. */
static void begin_member(struct builder *out, struct bytes name)
{
    if (out->data[out->size - 1] != '{')
        builder_add_text(out, ",");
    json_add_string(out, name);
    builder_add_text(out, ":");
}

static void journal_ends_add_member(struct builder *out, const struct json *member)
{
    begin_member(out, member->name);
    builder_add_bytes(out, member->text);
}

/* The members of the object, but those of `without`, names separated by blanks. */
static void add_members(struct builder *out, const struct json *object, const char *without)
{
    for (const struct json *member = object ? object->first : NULL; member; member = member->next)
        if (!names_have(without, member->name))
            journal_ends_add_member(out, member);
}

static void add_named(struct builder *out, const struct json *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_member(object, names[i]))
            journal_ends_add_member(out, json_member(object, names[i]));
}

/* --- the requests --- */

/* What is no number of seconds is refused by the server, with the end. */
static bool waits(const struct json *take)
{
    const struct json *wait = json_member(take, "wait"), *apart = json_member(take, "apart");
    int64_t seconds;
    bool is_left = apart && apart->kind != JSON_FALSE && apart->kind != JSON_NULL;
    return wait && wait->kind != JSON_NULL && !(json_is_i64(wait, &seconds) && !seconds) && !is_left;
}

static void add_end(struct builder *out, const struct json *param, const struct json *take)
{
    builder_add_text(out, "{");
    add_members(out, param, "take");
    begin_member(out, BYTES("take"));
    builder_add_text(out, "{");
    add_members(out, take, "apart");
    builder_add_text(out, ",\"apart\":true}}");
}

static void add_following(struct builder *out, const struct json *param, const struct json *take)
{
    static const char *const claim[] = {"id", "starttime", "retry"};
    builder_add_text(out, "{");
    add_members(out, take, "apart wait after");
    begin_member(out, BYTES("after"));
    builder_add_text(out, "{");
    add_named(out, param, claim, COUNT_OF(claim));
    builder_add_text(out, "}");
}

bool journal_ends_split(struct bytes param, struct builder *end, struct builder *following)
{
    struct arena *arena = arena_create("param");
    const struct json *root = journal_ends_read_object(arena, param, &param_limits);
    const struct json *take = journal_ends_take(arena, root);
    bool is_split = take && waits(take);
    if (is_split) {
        add_end(end, root, take);
        add_following(following, root, take);
    }
    arena_destroy(arena);
    return is_split;
}

void journal_ends_add_wait(struct builder *following, int64_t wait_s)
{
    builder_printf(following, ",\"wait\":%" PRId64 "}", wait_s);
}

/* --- the answers --- */

int64_t journal_ends_wait_s(struct bytes answer)
{
    struct arena *arena = arena_create("answer");
    const struct json *out = json_member(journal_ends_read_object(arena, answer, &answer_limits), "out");
    const struct json *wait = json_member(out, "wait");
    int64_t wait_s = 0;
    bool is_number = wait && json_is_i64(wait, &wait_s);
    arena_destroy(arena);
    return is_number && wait_s > 0 ? wait_s : 0;
}

static void add_out(struct builder *out, const struct json *end, const struct json *later, int64_t pause_ms)
{
    static const char *const of_wait[] = {"tasks", "next", "pause"};
    begin_member(out, BYTES("out"));
    builder_add_text(out, "{");
    add_members(out, end, "tasks next pause wait");
    if (json_member(later, "tasks")) {
        add_named(out, later, of_wait, COUNT_OF(of_wait));
    } else {
        begin_member(out, BYTES("tasks"));
        builder_printf(out, "[],\"pause\":%" PRId64, pause_ms);
    }
    builder_add_text(out, "}");
}

void journal_ends_join(struct builder *out, struct bytes answer, struct bytes later, int64_t pause_ms)
{
    struct arena *arena = arena_create("answers");
    const struct json *end = journal_ends_read_object(arena, answer, &answer_limits);
    const struct json *taken = later.data ? journal_ends_read_object(arena, later, &answer_limits) : NULL;
    builder_add_text(out, "{");
    add_out(out, json_member(end, "out"), json_member(taken, "out"), pause_ms);
    add_members(out, end, "out");
    builder_add_text(out, "}");
    arena_destroy(arena);
}
