/* fuzz_json: json_read on any bytes.  It accepts what the oracle accepts; texts of nodes lie in the input, in
 * order, and are accepted again as the same; a tree written again is read as the same tree.  The quick road
 * for plain texts gives what yajl gives. */
#include "fuzz.h"

#include "edge/json/json.h"
#include "edge/json/json_fast.h"
#include "oracle.h"

const char fuzz_target[] = "json";

enum { DEPTH = 10 };
static const struct json_limits whole = {.depth = DEPTH, .tree_depth = DEPTH};

static void write_value(struct builder *builder, const struct json *node)
{
    if (node->kind == JSON_STRING) {
        size_t before = builder->size;
        json_add_string(builder, node->value);
        assert(builder->size - before == json_string_size(node->value));
        return;
    }
    if (node->kind != JSON_ARRAY && node->kind != JSON_OBJECT) {
        builder_add_bytes(builder, node->text);
        return;
    }
    builder_add(builder, node->kind == JSON_ARRAY ? "[" : "{", 1);
    for (const struct json *child = node->first; child; child = child->next) {
        if (child != node->first)
            builder_add_text(builder, ",");
        if (node->kind == JSON_OBJECT) {
            json_add_string(builder, child->name);
            builder_add_text(builder, ":");
        }
        write_value(builder, child);
    }
    builder_add(builder, node->kind == JSON_ARRAY ? "]" : "}", 1);
}

/* Both roads through json_read give the same tree. */
static void check_same(const struct json *a, const struct json *b)
{
    assert(!a == !b);
    if (!a)
        return;
    assert(a->kind == b->kind && a->count == b->count && a->is_shallow == b->is_shallow);
    assert(a->text.data == b->text.data && a->text.size == b->text.size);
    assert(bytes_equal(a->value, b->value) && !a->value.data == !b->value.data);
    assert(bytes_equal(a->name, b->name) && !a->name.data == !b->name.data);
    check_same(a->first, b->first);
    check_same(a->next, b->next);
}

static void check_paths(struct bytes text, const struct json_limits *limits)
{
    struct arena *arena = arena_create("fuzz");
    struct json *quick, *full;
    struct json_problem quick_problem, full_problem;
    enum fault fault = json_read(arena, text, limits, &quick, &quick_problem);
    assert(json_fast_avoid(arena, text, limits, &full, &full_problem) == fault);
    assert(quick_problem.offset == full_problem.offset);
    check_same(quick, full);
    arena_destroy(arena);
}

/* Checks the node's text by reading it alone. */
static void check_alone(const struct json *node)
{
    struct arena *arena = arena_create("fuzz");
    struct json *root;
    struct json_problem problem;
    enum fault fault = json_read(arena, node->text, &whole, &root, &problem);
    assert(fault == FAULT_NONE && root->kind == node->kind);
    assert(root->text.data == node->text.data && root->text.size == node->text.size);
    assert(bytes_equal(root->value, node->value) && root->count == node->count);
    arena_destroy(arena);
}

/* Checks a node that must lie within `from` and `end`; returns the end of its text. */
static const char *check_node(const struct json *node, const char *from, const char *end)
{
    assert(node->text.size && node->text.data >= from && node->text.data + node->text.size <= end);
    assert(bytes_is_utf8(node->value) &&
           (!node->value.size || !memchr(node->value.data, '\0', node->value.size)));
    assert((node->value.data != NULL) == (node->kind == JSON_STRING || node->kind == JSON_NUMBER));
    assert(!node->is_shallow || !node->first);
    const char *at = node->text.data + 1, *last = node->text.data + node->text.size;
    uint32_t count = 0;
    for (const struct json *child = node->first; child; child = child->next, count++) {
        assert((child->name.data != NULL) == (node->kind == JSON_OBJECT));
        at = check_node(child, at, last - 1);
    }
    assert(node->is_shallow || count == node->count);
    check_alone(node);
    return last;
}

static void check_tree(struct arena *arena, const struct json *root, struct bytes text)
{
    check_node(root, text.data, text.data + text.size);
    struct builder first = {0}, second = {0};
    write_value(&first, root);
    struct json *again;
    struct json_problem problem;
    enum fault fault = json_read(arena, builder_bytes(&first), &whole, &again, &problem);
    assert(fault == FAULT_NONE);
    write_value(&second, again);
    assert(bytes_equal(builder_bytes(&first), builder_bytes(&second)));
    builder_free(&first);
    builder_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text = {(const char *)data, size};
    struct arena *arena = arena_create("fuzz");
    struct json *root, *shallow;
    struct json_problem problem, shallow_problem;
    enum fault fault = json_read(arena, text, &whole, &root, &problem);
    assert((fault == FAULT_NONE) == oracle_accepts(text, DEPTH));
    assert((fault == FAULT_NONE) == (root != NULL) && (fault == FAULT_NONE) == (problem.what == NULL));
    assert((fault == FAULT_AUTF8) == !bytes_is_utf8(text));
    assert(problem.offset <= size);
    if (root)
        check_tree(arena, root, text);

    /* A tree built less deep is judged alike. */
    struct json_limits less = {.depth = DEPTH, .tree_depth = 1};
    enum fault shallow_fault = json_read(arena, text, &less, &shallow, &shallow_problem);
    assert(shallow_fault == fault && shallow_problem.offset == problem.offset);
    if (shallow) {
        assert(bytes_equal(shallow->text, root->text) && shallow->count == root->count);
        check_node(shallow, text.data, text.data + size);
    }
    static const struct json_limits few = {.depth = DEPTH, .tree_depth = 3, .nodes = 9};
    check_paths(text, &whole);
    check_paths(text, &less);
    check_paths(text, &few);
    arena_destroy(arena);
    return 0;
}
