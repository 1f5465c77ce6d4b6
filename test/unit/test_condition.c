/* condition: lists of entity tags as conditions on a version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "http/condition.h"

static struct version_condition read_field(const char *field, enum comparison comparison)
{
    struct version_condition condition;
    if (condition_read(arena, bytes_of(field), comparison, &condition) != FAULT_NONE)
        fail_msg("refused: %s", field);
    return condition;
}

static void what_is_not_sent_is_not_given(void **state UNUSED)
{
    assert_false(read_field("", COMPARE_STRONGLY).is_given);
    assert_false(read_field(" \t", COMPARE_STRONGLY).is_given);
}

static void star_is_any(void **state UNUSED)
{
    struct version_condition condition = read_field(" * ", COMPARE_STRONGLY);
    assert_true(condition.is_given && condition.is_any);
    assert_int_equal(condition.count, 0);
}

static void tags_are_versions(void **state UNUSED)
{
    struct version_condition condition =
        read_field("\"261121103000123\" , ,\"x\",W/\"7\",\"8\",\"\"", COMPARE_STRONGLY);
    assert_true(condition.is_given && !condition.is_any);
    assert_int_equal(condition.count, 2);
    assert_int_equal(condition.versions[0], 261121103000123);
    assert_int_equal(condition.versions[1], 8);
    condition = read_field("W/\"7\",\"8\"", COMPARE_WEAKLY);
    assert_int_equal(condition.count, 2);
    assert_int_equal(condition.versions[0], 7);
}

static void tags_may_have_a_view(void **state UNUSED)
{
    struct version_condition condition = read_field("\"7-0af9\",\"8\"", COMPARE_STRONGLY);
    assert_int_equal(condition.count, 2);
    assert_int_equal(condition.versions[0], 7);
    assert_true(bytes_equal(condition.views[0], BYTES("0af9")));
    assert_int_equal(condition.versions[1], 8);
    assert_int_equal(condition.views[1].size, 0);
}

static void tags_of_others_name_nothing(void **state UNUSED)
{
    static const char *const fields[] = {
        "\"\"",    "\"07\"",       "\"+7\"", "\"-7\"", "\"7a\"",  "\"99999999999999999999\"",
        "\"a,b\"", "\"\xC3\xA9\"", "\"7-\"", "\"-a\"", "\"7-A\"", "\"7-a-b\"",
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        struct version_condition condition = read_field(fields[i], COMPARE_STRONGLY);
        assert_true(condition.is_given && !condition.is_any);
        assert_int_equal(condition.count, 0);
    }
}

static void what_is_no_list_is_refused(void **state UNUSED)
{
    static const char *const fields[] = {
        "7",       "\"7",        "7\"",       "*,\"7\"",   "\"7\",*",  "* *", ",",
        "\"7\" 8", "\"7\"\"8\"", "w/\"7\"",   "W/7",       "W/ \"7\"", "W/",  "\"",
        "\"7 8\"", "\"7\t\"",    "\"7\x7f\"", "\"7\x01\"", "\"7\";",   "'7'",
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        struct version_condition condition;
        if (condition_read(arena, bytes_of(fields[i]), COMPARE_WEAKLY, &condition) != FAULT_AARG)
            fail_msg("taken: %s", fields[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_sent_is_not_given),
        cmocka_unit_test(star_is_any),
        cmocka_unit_test(tags_are_versions),
        cmocka_unit_test(tags_may_have_a_view),
        cmocka_unit_test(tags_of_others_name_nothing),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests_name("condition", tests, arena_set_up, arena_tear_down);
}
