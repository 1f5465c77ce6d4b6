/* fuzz_content: JSON Schemas and contents.  The first line is a schema, what follows is a content.  A refusal
 * has a place and a sentence; a check ends within its steps; a violation lies in the content and in the
 * schema; a schema within allOf judges alike, one within not the other way round. */
#include "fuzz.h"

#include <string.h>

#include "model/content/content.h"

const char fuzz_target[] = "content";

enum { STEPS = 100000 };

static const struct json_limits limits = {.depth = CONTENT_SCHEMA_DEPTH_MOST,
                                          .tree_depth = CONTENT_SCHEMA_DEPTH_MOST};

static const struct content_schema *compile(struct arena *arena, struct bytes text, bool is_raw)
{
    struct json *root;
    struct json_problem wrong;
    struct content_problem problem = {0};
    const struct content_schema *schema;
    if (json_read(arena, text, &limits, &root, &wrong))
        return NULL;
    if (content_compile(arena, root, is_raw, &schema, &problem))
        return schema;
    assert(problem.place && (!*problem.place || *problem.place == '/'));
    assert(problem.expected && *problem.expected && !schema);
    return NULL;
}

static enum content_verdict check(struct arena *arena, const struct content_schema *schema,
                                  struct bytes content, bool *is_final_r)
{
    int64_t steps = STEPS;
    struct content_violation violation;
    enum content_verdict verdict = content_check(schema, arena, content, &steps, &violation);
    assert(steps >= 0 && steps <= STEPS);
    assert(verdict != CONTENT_COSTLY || steps == 0);
    if (verdict != CONTENT_CONFORMS) {
        assert(!*violation.place || *violation.place == '/');
        assert(!*violation.rule || *violation.rule == '/');
        assert(*violation.expected && strlen(violation.expected) < 1000);
        assert(bytes_is_utf8(bytes_of(violation.expected)));
    }
    /* a limit was reached, or it is no JSON: that is not a verdict of the schema */
    *is_final_r = verdict == CONTENT_COSTLY ||
                  (verdict == CONTENT_VIOLATES &&
                   (strstr(violation.expected, "fewer steps") || strstr(violation.expected, "less deep") ||
                    strstr(violation.expected, "can be checked")));
    return verdict;
}

static void check_wrapped(struct arena *arena, struct bytes text, struct bytes content,
                          enum content_verdict verdict)
{
    bool is_final;
    const char *words = arena_copy(arena, text.data, text.size);
    if (strchr(words, '$'))
        return;
    const struct content_schema *same =
        compile(arena, bytes_of(arena_printf(arena, "{\"allOf\":[%s]}", words)), false);
    const struct content_schema *opposite =
        compile(arena, bytes_of(arena_printf(arena, "{\"not\":%s}", words)), false);
    if (!same || !opposite) /* one level, or one subschema, too many */
        return;
    enum content_verdict again = check(arena, same, content, &is_final);
    assert(is_final || again == verdict);
    again = check(arena, opposite, content, &is_final);
    assert(is_final || (again == CONTENT_CONFORMS) == (verdict == CONTENT_VIOLATES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text, content;
    if (!fuzz_divide(data, size, &text, &content))
        return 0;
    struct arena *arena = arena_create("fuzz");
    const struct content_schema *schema = compile(arena, text, false), *raw = compile(arena, text, true);
    bool is_final;
    if (schema) {
        enum content_verdict verdict = check(arena, schema, content, &is_final);
        if (!is_final)
            check_wrapped(arena, text, content, verdict);
    }
    if (raw && bytes_is_utf8(content))
        (void)check(arena, raw, content, &is_final);
    arena_destroy(arena);
    return 0;
}
