/* fuzz_condition: condition_read on any field.  What was read, written again as a list of tags, is read as
 * the same; a strong comparison names no more than a weak one; entity tags of versions are all that is named.
 */
#include "fuzz.h"

#include "http/condition.h"

const char fuzz_target[] = "condition";

static void check_same(const struct version_condition *a, const struct version_condition *b)
{
    assert(a->is_given == b->is_given && a->is_any == b->is_any && a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        assert(a->versions[i] == b->versions[i] && a->versions[i] > 0 &&
               bytes_equal(a->views[i], b->views[i]));
}

static void check_written(struct arena *arena, const struct version_condition *condition)
{
    struct builder field = {0};
    struct version_condition again;
    for (size_t i = 0; i < condition->count; i++)
        builder_printf(&field, "%s\"%lld%s%.*s\"", i ? " ,\t" : "", (long long)condition->versions[i],
                       condition->views[i].size ? "-" : "", (int)condition->views[i].size,
                       condition->views[i].data);
    if (condition->is_any)
        builder_add_text(&field, "*");
    else if (condition->is_given && !condition->count)
        builder_add_text(&field, "\"other\"");
    for (enum comparison comparison = COMPARE_STRONGLY; comparison <= COMPARE_WEAKLY; comparison++) {
        enum fault fault = condition_read(arena, builder_bytes(&field), comparison, &again);
        assert(fault == FAULT_NONE);
        check_same(&again, condition);
    }
    builder_free(&field);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct bytes field = {(const char *)data, size};
    struct version_condition strong, weak;
    enum fault fault = condition_read(arena, field, COMPARE_STRONGLY, &strong);
    enum fault other = condition_read(arena, field, COMPARE_WEAKLY, &weak);
    assert(fault == other && (fault == FAULT_NONE || fault == FAULT_AARG));
    if (!fault) {
        assert(strong.is_given == weak.is_given && strong.is_any == weak.is_any &&
               strong.count <= weak.count);
        for (size_t i = 0, k = 0; i < strong.count; i++, k++)
            while (weak.versions[k] != strong.versions[i] || !bytes_equal(weak.views[k], strong.views[i]))
                assert(++k < weak.count);
        check_written(arena, &strong);
        check_written(arena, &weak);
    }
    arena_destroy(arena);
    return 0;
}
