/* fuzz_mutation: contents of older releases made newest.  The first line is a schema, what follows is a
 * content as an item of its first class may hold it: JSON.  What comes out is JSON of the same kind, and what
 * is newest already stays as it is. */
#include "fuzz.h"

#include <string.h>

#include "model/document/mutation.h"
#include "edge/json/json.h"

const char fuzz_target[] = "mutation";

static bool is_json(struct arena *arena, struct bytes text, enum json_kind *kind_r)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    if (json_read(arena, text, &limits, &root, &problem) != FAULT_NONE)
        return false;
    *kind_r = root->kind;
    return true;
}

static void check_item(struct arena *arena, const struct schema_class *class, struct bytes item_class,
                       struct bytes content, enum json_kind kind)
{
    enum json_kind newer;
    struct bytes applied = mutation_apply(arena, class, item_class, content);
    if (kind != JSON_OBJECT)
        assert(applied.data == content.data && applied.size == content.size);
    bool is_read = is_json(arena, applied, &newer);
    assert(is_read && newer == kind);
    struct bytes twice = mutation_apply(arena, class, item_class, applied);
    assert(bytes_equal(applied, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text, content;
    if (!fuzz_divide(data, size, &text, &content))
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct schema *schema;
    struct schema_problem problem;
    enum json_kind kind;
    if (schema_read(arena, text, &schema, &problem) == FAULT_NONE && schema->class_count &&
        is_json(arena, content, &kind)) {
        const struct schema_class *class = &schema->classes[0];
        for (size_t i = 0; i < class->item_count; i++)
            check_item(arena, class, class->items[i].name, content, kind);
        check_item(arena, class, BYTES("Undeclared"), content, kind);
    }
    arena_destroy(arena);
    return 0;
}
