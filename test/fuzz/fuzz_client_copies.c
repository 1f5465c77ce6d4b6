/* fuzz_client_copies: what the quick road takes, the tree takes too, and finds the same in it. */
#include "fuzz.h"

#include "edge/json/json.h"
#include "operation/sync/client_copies.h"
#include "operation/reply.h"

const char fuzz_target[] = "client_copies";

static const struct settings settings = {.limit_syncs = 1000, .limit_name_bytes = 255};

static void check_same(const struct client_copies *plain, const struct client_copies *tree)
{
    assert(plain->count == tree->count);
    for (size_t i = 0; i < tree->count; i++) {
        assert(bytes_equal(plain->names[i].class, tree->names[i].class));
        assert(bytes_equal(plain->names[i].id, tree->names[i].id));
        assert(plain->held[i].version == tree->held[i].version);
        assert(plain->held[i].ctime == tree->held[i].ctime && plain->held[i].dtime == tree->held[i].dtime);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes body = {(const char *)data, size};
    struct arena *arena = arena_create("fuzz");
    struct call call = {.arena = arena};
    struct reply reply = {0};
    const struct reader reader = {&settings, &call, &reply};
    struct bytes others;
    const struct client_copies *plain = client_copies_read_fast(arena, body, &others);
    if (plain) {
        const struct json_limits limits = {.depth = CLIENT_COPIES_DEPTH, .tree_depth = CLIENT_COPIES_DEPTH};
        struct json *root;
        struct json_problem problem;
        struct client_copies *tree;
        enum fault fault = json_read(arena, body, &limits, &root, &problem);
        if (fault) { /* for what was not looked at */
            assert(others.size);
            arena_destroy(arena);
            return 0;
        }
        assert(root->first->next ? others.size && others.data[0] == '"' : !others.size);
        fault = client_copies_read(&reader, root->first, &tree);
        assert(client_copies_check(&reader, plain) == fault && (!fault || fault == FAULT_ALIMIT));
        if (!fault)
            check_same(plain, tree);
    }
    arena_destroy(arena);
    return 0;
}
