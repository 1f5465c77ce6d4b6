/* pattern: what matches, what is refused, and that no expression costs more than it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "edge/pattern.h"

static const struct pattern *compiled(const char *text)
{
    const struct pattern *pattern;
    struct pattern_problem problem;
    if (!pattern_compile(arena, bytes_of(text), &pattern, &problem))
        fail_msg("%s: %s at %zu", text, problem.what, problem.offset);
    return pattern;
}

static enum pattern_result match(const char *pattern, struct bytes text)
{
    int64_t steps = 1000000;
    enum pattern_result result = pattern_match(compiled(pattern), text, &steps);
    assert_true(steps >= 0 && steps < 1000000);
    assert_true((result == PATTERN_COSTLY) == (steps == 0));
    return result;
}

static void expressions_mean_what_they_mean_in_json_schema(void **state UNUSED)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"b", "abc", true},
        {"^b", "abc", false},
        {"c$", "abc", true},
        {"c$", "abc\n", false}, /* the end of the text, not of a line */
        {"^c", "ab\nc", false},
        {"^.$", "\xC3\xA9", true}, /* a character, not a byte */
        {"^.$", "\xF0\x9F\x98\x80", true},
        {"^.$", "\n", false},
        {"^.$", "\r", false},
        {"^\\d$", "7", true},
        {"^\\d$", "\xD9\xA7", false}, /* an Arabic digit */
        {"^\\w+$", "az_9", true},
        {"^\\w$", "\xC3\xA9", false},
        {"^\\p{L}$", "\xC3\xA9", true},
        {"^\\p{Lu}\\p{Ll}+$", "\xC3\x89mile", true},
        {"^\\u00e9$", "\xC3\xA9", true},
        {"^\\u{1F600}$", "\xF0\x9F\x98\x80", true},
        {"^[^]$", "x", true},
        {"[]", "x", false},
        {"^(a|b){2,3}$", "abab", false},
        {"^(a|b){2,3}$", "aba", true},
        {"^(?=.*\\d)(?=.*[a-z]).{4,}$", "abc1", true},
        {"^(?=.*\\d)(?=.*[a-z]).{4,}$", "abcd", false},
        {"(?<!x)y", "xy", false},
        {"(?<name>a)b", "ab", true},
        {"", "", true},
        {"^$", "", true},
        {"^\\/$", "/", true},
        {"^[\\w.+-]+@[\\w-]+$", "a.b@c", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if ((match(cases[i].pattern, bytes_of(cases[i].text)) == PATTERN_MATCHES) != cases[i].matches)
            fail_msg("%s with %s", cases[i].pattern, cases[i].text);
}

static void expressions_that_cannot_be_bounded_are_refused(void **state UNUSED)
{
    static const char *const cases[] = {
        "(",
        "[",
        "a{2,1}",
        "*",
        "(a)\\1",
        "(?<a>b)\\k<a>",
        "(?P=a)",
        "\\C",
        "(*UTF)a",
        "(*LIMIT_MATCH=1000000000)a",
        "(*ACCEPT)",
        "a(*F)",
        "(?C1)a",
        "(?Cx)",
        "((a{100}){100}){100}",
        "(?:(?:a{0,50}){0,50}){0,50}",
        "[[:nothing:]]",
        "\\p{Nothing}",
        "(?1)",
        "((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))",
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct pattern *pattern;
        struct pattern_problem problem = {0};
        if (pattern_compile(arena, bytes_of(cases[i]), &pattern, &problem))
            fail_msg("%s is accepted", cases[i]);
        assert_true(problem.what && *problem.what);
        assert_true(problem.offset <= strlen(cases[i]));
    }
    char *text = arena_alloc(arena, PATTERN_TEXT_MOST + 2);
    memset(text, 'a', PATTERN_TEXT_MOST + 1);
    const struct pattern *pattern;
    struct pattern_problem problem;
    assert_true(pattern_compile(arena, (struct bytes){text, PATTERN_TEXT_MOST}, &pattern, &problem));
    assert_false(pattern_compile(arena, (struct bytes){text, PATTERN_TEXT_MOST + 1}, &pattern, &problem));
}

/* Each of them would run for minutes, or for longer than the sun, without a limit; the last ones spend it in
 * loops that PCRE2's own limits do not count. */
static void no_match_costs_more_than_it_may(void **state UNUSED)
{
    static const char *const cases[] = {
        "(a+)+$",
        "^(a+)+$",
        "^(a|aa)+$",
        "^(a|a)*$",
        "(.*)*[xy]$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?=.*b)",
        "(a*)*(a*)*\\d",
        "[a-z]+\\d",
        "[a-z]*+\\d",
        "(?>a*)[^a]",
        "a*a*a*a*a*\\d",
        "(?:a++)*\\d",
        "(?<x>a(?&x)?)\\d",
        "(?R)?a\\d",
        "\\X*\\d",

        "(?i)A*\\d",
        "(\\w+\\s*)+[:;]$",
        "^(.+.+)+:",
        "(?:[^b]|[^c])*\\d",
        "(?=(?=(?=(a+)+\\d)))",
        "((?:a|b)*?)*\\d",
    };
    struct bytes text = {arena_alloc(arena, 1000000), 1000000};
    memset((char *)text.data, 'a', text.size);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (match(cases[i], text) != PATTERN_COSTLY)
            fail_msg("%s is not costly", cases[i]);
}

static void a_linear_expression_is_judged_on_a_long_text(void **state UNUSED)
{
    struct bytes text = {arena_alloc(arena, 100000), 100000};
    memset((char *)text.data, 'a', text.size);
    assert_int_equal(match("^[a-z]*$", text), PATTERN_MATCHES);
    assert_int_equal(match("^(?:a|b)", text), PATTERN_MATCHES);
    assert_int_equal(match("b", text), PATTERN_DIFFERS);
}

static void without_steps_nothing_is_judged(void **state UNUSED)
{
    int64_t steps = 0;
    assert_int_equal(pattern_match(compiled("a"), BYTES("a"), &steps), PATTERN_COSTLY);
    assert_int_equal(steps, 0);
    steps = 20;
    assert_int_equal(pattern_match(compiled("a"), BYTES("a"), &steps), PATTERN_MATCHES);
    assert_true(steps > 0 && steps < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(expressions_mean_what_they_mean_in_json_schema),
        ARENA_TEST(expressions_that_cannot_be_bounded_are_refused),
        ARENA_TEST(no_match_costs_more_than_it_may),
        ARENA_TEST(a_linear_expression_is_judged_on_a_long_text),
        ARENA_TEST(without_steps_nothing_is_judged),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
