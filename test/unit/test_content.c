/* content: what conforms to a schema, where a violation is, which schemas are refused, and what hostile ones
 * and contents cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "content_cases.h"
#include "model/content/content.h"
#include "model/content/content_value.h"

enum { STEPS = 1000000 };

/* With " in place of '. */
static struct bytes quoted(const char *text)
{
    size_t size = strlen(text);
    char *copy = arena_copy(arena, text, size);
    for (size_t i = 0; i < size; i++)
        if (copy[i] == '\'')
            copy[i] = '"';
    return (struct bytes){copy, size};
}

static bool compile(struct bytes text, bool is_raw, const struct content_schema **schema_r,
                    struct content_problem *problem_r)
{
    static const struct json_limits limits = {.depth = CONTENT_SCHEMA_DEPTH_MOST,
                                              .tree_depth = CONTENT_SCHEMA_DEPTH_MOST};
    struct json *root;
    struct json_problem problem;
    if (json_read(arena, text, &limits, &root, &problem))
        fail_msg("%.*s: %s at %zu", (int)(text.size < 500 ? text.size : 500), text.data, problem.what,
                 problem.offset);
    return content_compile(arena, root, is_raw, schema_r, problem_r);
}

static const struct content_schema *compiled(const char *text)
{
    const struct content_schema *schema;
    struct content_problem problem;
    if (!compile(quoted(text), false, &schema, &problem))
        fail_msg("%s: %s: %s", text, problem.place, problem.expected);
    return schema;
}

static enum content_verdict check(const struct content_schema *schema, struct bytes content,
                                  struct content_violation *violation_r)
{
    int64_t steps = STEPS;
    enum content_verdict verdict = content_check(schema, arena, content, &steps, violation_r);
    assert_true(steps >= 0 && steps <= STEPS);
    if (verdict != CONTENT_CONFORMS) {
        assert_true(*violation_r->expected && strlen(violation_r->expected) < 400);
        assert_non_null(violation_r->place);
        assert_non_null(violation_r->rule);
    }
    return verdict;
}

static void every_keyword_accepts_and_refuses(void **state UNUSED)
{
    size_t count = 0;
    for (size_t i = 0; i < content_case_count; i++) {
        const struct content_case *one = &content_cases[i];
        const struct content_schema *schema = compiled(one->schema);
        struct content_violation violation;
        for (size_t k = 0; k < CONTENT_CASES_MOST && one->good[k]; k++, count++)
            if (check(schema, quoted(one->good[k]), &violation) != CONTENT_CONFORMS)
                fail_msg("%s refuses %s: %s", one->schema, one->good[k], violation.expected);
        for (size_t k = 0; k < CONTENT_CASES_MOST && one->bad[k]; k++, count++)
            if (check(schema, quoted(one->bad[k]), &violation) != CONTENT_VIOLATES)
                fail_msg("%s accepts %s", one->schema, one->bad[k]);
    }
    assert_true(count > 400);
}

/* A schema under not accepts what it refused, and the reverse: no rule is skipped inside alternatives. */
static void the_opposite_accepts_the_opposite(void **state UNUSED)
{
    for (size_t i = 0; i < content_case_count; i++) {
        const struct content_case *one = &content_cases[i];
        struct content_violation violation;
        if (strstr(one->schema, "$"))
            continue;
        const struct content_schema *schema = compiled(arena_printf(arena, "{'not':%s}", one->schema));
        for (size_t k = 0; k < CONTENT_CASES_MOST && one->good[k]; k++)
            assert_int_equal(check(schema, quoted(one->good[k]), &violation), CONTENT_VIOLATES);
        for (size_t k = 0; k < CONTENT_CASES_MOST && one->bad[k]; k++)
            assert_int_equal(check(schema, quoted(one->bad[k]), &violation), CONTENT_CONFORMS);
    }
}

static void a_violation_is_located(void **state UNUSED)
{
    static const struct {
        const char *schema, *content, *place, *keyword, *rule;
    } cases[] = {
        {"{'type':'object'}", "[]", "", "type", "/type"},
        {"{'properties':{'a':{'items':{'maximum':3}}}}", "{'a':[1,2,7]}", "/a/2", "maximum",
         "/properties/a/items/maximum"},
        {"{'properties':{'x/y':{'const':1},'t~':{}}}", "{'x/y':2}", "/x~1y", "const",
         "/properties/x~1y/const"},
        {"{'required':['a','b']}", "{'b':1}", "", "required", "/required"},
        {"{'additionalProperties':false}", "{'b':1}", "/b", "additionalProperties", "/additionalProperties"},
        {"{'unevaluatedProperties':false}", "{'b':1}", "/b", "unevaluatedProperties",
         "/unevaluatedProperties"},
        {"{'properties':{'b':false}}", "{'b':1}", "/b", "properties", "/properties/b"},
        {"{'propertyNames':{'maxLength':1}}", "{'a':1,'bc':2}", "/bc", "maxLength",
         "/propertyNames/maxLength"},
        {"{'uniqueItems':true}", "[1,2,1]", "/2", "uniqueItems", "/uniqueItems"},
        {"{'anyOf':[{'type':'null'},{'const':1}]}", "2", "", "anyOf", "/anyOf"},
        {"{'allOf':[true,{'minimum':3}]}", "2", "", "minimum", "/allOf/1/minimum"},
        {"{'$ref':'#/$defs/a','$defs':{'a':{'items':{'type':'null'}}}}", "[null,1]", "/1", "type",
         "/$defs/a/items/type"},
        {"{'contains':{'const':1}}", "[2]", "", "contains", "/contains"},
        {"{'contains':{'const':1},'minContains':2}", "[1]", "", "minContains", "/minContains"},
        {"{'if':true,'then':{'minLength':2}}", "'a'", "", "minLength", "/then/minLength"},
        {"{'patternProperties':{'^a':{'type':'null'}}}", "{'ab':1}", "/ab", "type",
         "/patternProperties/^a/type"},
        {"{'dependentRequired':{'a':['b']}}", "{'a':1}", "", "dependentRequired", "/dependentRequired"},
        {"{'prefixItems':[true,{'const':1}]}", "[0,0]", "/1", "const", "/prefixItems/1/const"},
        {"{'not':{}}", "1", "", "not", "/not"},
        {"{'properties':{'a':{'type':'null'},'b':{'type':'null'}}}", "{'b':1,'a':1}", "/b", "type",
         "/properties/b/type"}, /* the first in the content */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct content_violation violation;
        assert_int_equal(check(compiled(cases[i].schema), quoted(cases[i].content), &violation),
                         CONTENT_VIOLATES);
        assert_string_equal(violation.place, cases[i].place);
        assert_string_equal(violation.keyword, cases[i].keyword);
        assert_string_equal(violation.rule, cases[i].rule);
    }
}

static void what_is_expected_is_short(void **state UNUSED)
{
    struct builder text = {0};
    struct content_violation violation;
    builder_add_text(&text, "{'enum':['");
    for (int i = 0; i < 2000; i++)
        builder_add_text(&text, "\xF0\x9F\x98\x80");
    builder_add_text(&text, "']}");
    const char *schema = arena_copy(arena, text.data, text.size);
    builder_free(&text);
    assert_int_equal(check(compiled(schema), BYTES("1"), &violation), CONTENT_VIOLATES);
    assert_true(bytes_is_utf8(bytes_of(violation.expected)));
    assert_true(strlen(violation.expected) < 200);
    check(compiled("{'maximum':3}"), BYTES("4"), &violation);
    assert_string_equal(violation.expected, "A number that is not greater than this is expected: 3.");
    check(compiled("{'required':['name']}"), BYTES("{}"), &violation);
    assert_string_equal(violation.expected, "The member \"name\" is expected.");
}

static const struct {
    const char *schema, *place, *words;
} unsupported[] = {
    {"1", "", "object, true or false"},
    {"{'items':{'typ':'string'}}", "/items/typ", "did you mean \"type\"?"},
    {"{'propertes':{}}", "/propertes", "\"properties\""},
    {"{'$dynamicRef':'#a'}", "/$dynamicRef", "$ref"},
    {"{'definitions':{}}", "/definitions", "$defs"},
    {"{'dependencies':{}}", "/dependencies", "dependentRequired"},
    {"{'additionalItems':false}", "/additionalItems", "items"},
    {"{'nullable':true}", "/nullable", "null"},
    {"{'contentEncoding':'base64'}", "/contentEncoding", "Unknown keyword"},
    {"{'$vocabulary':{}}", "/$vocabulary", "Unknown keyword"},
    {"{'x':1}", "/x", "Unknown keyword"},
    {"{'':1}", "/", "Unknown keyword"},
    {"{'$schema':'http://json-schema.org/draft-07/schema#'}", "/$schema", "2020-12"},
    {"{'items':{'$schema':'https://json-schema.org/draft/2020-12/schema'}}", "/items/$schema", "root"},
    {"{'items':{'$id':'x'}}", "/items/$id", "root"},
    {"{'type':'text'}", "/type", "integer"},
    {"{'type':[]}", "/type", "integer"},
    {"{'type':['null','null']}", "/type", "different"},
    {"{'enum':[]}", "/enum", "one or more"},
    {"{'enum':1}", "/enum", "one or more"},
    {"{'multipleOf':0}", "/multipleOf", "above 0"},
    {"{'multipleOf':-1}", "/multipleOf", "above 0"},
    {"{'multipleOf':'1'}", "/multipleOf", "above 0"},
    {"{'multipleOf':1234567890123456789}", "/multipleOf", "18 digits"},
    {"{'minimum':'1'}", "/minimum", "number"},
    {"{'minLength':-1}", "/minLength", "integer"},
    {"{'minLength':1.5}", "/minLength", "integer"},
    {"{'maxItems':1e13}", "/maxItems", "integer"},
    {"{'maxItems':1e400}", "/maxItems", "integer"},
    {"{'maxProperties':null}", "/maxProperties", "integer"},
    {"{'pattern':'('}", "/pattern", "regular expression"},
    {"{'pattern':1}", "/pattern", "string"},
    {"{'pattern':'(a)\\\\1'}", "/pattern", "regular expression"},
    {"{'patternProperties':{'[':{}}}", "/patternProperties/[", "regular expression"},
    {"{'format':'hostname'}", "/format", "date-time"},
    {"{'format':1}", "/format", "date-time"},
    {"{'items':[{}]}", "/items", "prefixItems"},
    {"{'items':1}", "/items", "schema"},
    {"{'prefixItems':[]}", "/prefixItems", "one or more"},
    {"{'allOf':{}}", "/allOf", "one or more"},
    {"{'anyOf':[1]}", "/anyOf/0", "schema"},
    {"{'properties':[]}", "/properties", "object"},
    {"{'properties':{'a':{'properties':{'b/c':3}}}}", "/properties/a/properties/b~1c", "schema"},
    {"{'required':'a'}", "/required", "names"},
    {"{'required':['a','a']}", "/required", "once"},
    {"{'required':[1]}", "/required", "names"},
    {"{'dependentRequired':{'a':'b'}}", "/dependentRequired", "names"},
    {"{'uniqueItems':1}", "/uniqueItems", "true or false"},
    {"{'$defs':[]}", "/$defs", "object"},
    {"{'$defs':{'a':{'tpye':'null'}}}", "/$defs/a/tpye", "type"},
    {"{'$anchor':'1a'}", "/$anchor", "letter"},
    {"{'$defs':{'a':{'$anchor':'x'},'b':{'$anchor':'x'}}}", "/$defs/b/$anchor", "no other"},
    {"{'title':1}", "/title", "string"},
    {"{'deprecated':1}", "/deprecated", "true or false"},
    {"{'examples':1}", "/examples", "list"},
    {"{'$ref':'#/$defs/none'}", "/$ref", "subschema or an anchor"},
    {"{'$ref':'#none'}", "/$ref", "subschema or an anchor"},
    {"{'$ref':'other.json'}", "/$ref", "into this schema"},
    {"{'$ref':'https://x.test/#'}", "/$ref", "into this schema"},
    {"{'$ref':1}", "/$ref", "string"},
    {"{'$ref':'#/enum/0','enum':[{}]}", "/$ref", "subschema or an anchor"},
    {"{'$ref':'#/$defs/a~2','$defs':{'a~2':true}}", "/$ref", "subschema or an anchor"},
    {"{'$ref':'#/%zz'}", "/$ref", "escapes"},
    /* cycles that stay at one value */
    {"{'$ref':'#'}", "", "lead back"},
    {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}}}", "/$defs/a", "lead back"},
    {"{'allOf':[{'$ref':'#'}]}", "", "lead back"},
    {"{'anyOf':[{'not':{'if':{'$ref':'#'}}}]}", "", "lead back"},
    {"{'dependentSchemas':{'a':{'$ref':'#'}}}", "", "lead back"},
    {"{'oneOf':[true,{'then':{'$ref':'#/oneOf/1'}}]}", "/oneOf/1", "lead back"},
    {"{'items':{'else':{'$ref':'#/items'}}}", "/items", "lead back"},
};

static void what_is_not_supported_is_refused_with_its_place(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(unsupported); i++) {
        const struct content_schema *schema;
        struct content_problem problem;
        if (compile(quoted(unsupported[i].schema), false, &schema, &problem))
            fail_msg("%s is accepted", unsupported[i].schema);
        assert_string_equal(problem.place, unsupported[i].place);
        if (!strstr(problem.expected, unsupported[i].words))
            fail_msg("%s: %s", unsupported[i].schema, problem.expected);
        assert_null(schema);
    }
}

static void raw_text_has_the_rules_of_strings(void **state UNUSED)
{
    static const char *const refused[] = {"{'type':'string'}", "{'enum':['a']}", "{'items':{}}",
                                          "{'$ref':'#'}"};
    const struct content_schema *schema;
    struct content_problem problem;
    struct content_violation violation;
    assert_true(compile(quoted("{'minLength':1,'maxLength':3,'pattern':'^[a-z]*$','title':'t'}"), true,
                        &schema, &problem));
    assert_int_equal(check(schema, BYTES("abc"), &violation), CONTENT_CONFORMS);
    assert_int_equal(check(schema, BYTES(""), &violation), CONTENT_VIOLATES);
    assert_int_equal(check(schema, BYTES("abcd"), &violation), CONTENT_VIOLATES);
    assert_string_equal(violation.place, "");
    assert_string_equal(violation.keyword, "maxLength");
    assert_int_equal(check(schema, BYTES("\"a\""), &violation), CONTENT_VIOLATES); /* text, not JSON */
    assert_string_equal(violation.keyword, "pattern");
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_false(compile(quoted(refused[i]), true, &schema, &problem));
        assert_non_null(strstr(problem.expected, "known are minLength"));
    }
}

static void numbers_are_compared_as_decimals(void **state UNUSED)
{
    static const char *const ascending[] = {
        "-1e1000000000000000",
        "-1e3",
        "-999.9",
        "-9.99",
        "-1",
        "-0.1",
        "-1e-9",
        "0",
        "1e-1000000000000000",
        "0.00001",
        "0.1",
        "0.10000000000000000000000001",
        "1",
        "9.99",
        "10",
        "10.5",
        "9007199254740992",
        "9007199254740992.5",
        "9007199254740993",
        "1e400",
        "1e401",
        "1e99999999999999999999999",
    };
    static const char *const equal[][2] = {
        {"1", "1.000"},      {"100", "1e2"},    {"0.01", "1E-2"},    {"-0", "0.000e7"}, {"120", "1.2e+2"},
        {"0.0012", "12e-4"}, {"10.50", "10.5"}, {"1000", "0.001e6"}, {"5e0", "5"},
    };
    for (size_t i = 0; i < COUNT_OF(ascending); i++)
        for (size_t k = 0; k < COUNT_OF(ascending); k++) {
            struct content_number a = content_number_read(bytes_of(ascending[i]));
            struct content_number b = content_number_read(bytes_of(ascending[k]));
            int order = content_number_compare(&a, &b);
            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("%s and %s: %d", ascending[i], ascending[k], order);
        }
    for (size_t i = 0; i < COUNT_OF(equal); i++) {
        struct content_number a = content_number_read(bytes_of(equal[i][0]));
        struct content_number b = content_number_read(bytes_of(equal[i][1]));
        if (content_number_compare(&a, &b) || content_number_hash(&a) != content_number_hash(&b))
            fail_msg("%s and %s differ", equal[i][0], equal[i][1]);
    }
}

/* --- hostile schemas and contents ---------------------------------------------------------------- */

static struct bytes repeated(const char *before, const char *one, size_t count, const char *after)
{
    struct builder text = {0};
    builder_add(&text, before, strlen(before));
    for (size_t i = 0; i < count; i++)
        builder_add(&text, one, strlen(one));
    builder_add(&text, after, strlen(after));
    struct bytes copy = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return copy;
}

static void a_hostile_content_ends_the_check(void **state UNUSED)
{
    struct content_violation violation;
    /* two alternatives of two alternatives of … : 2 to the power of 40 */
    struct builder text = {0};
    builder_add_text(&text, "{'$ref':'#/$defs/d0','$defs':{'d40':{'type':'null'}");
    for (int i = 0; i < 40; i++)
        builder_printf(&text, ",'d%d':{'anyOf':[{'$ref':'#/$defs/d%d'},{'$ref':'#/$defs/d%d'}]}", i, i + 1,
                       i + 1);
    builder_add_text(&text, "}}");
    const char *schema = arena_copy(arena, text.data, text.size);
    builder_free(&text);
    assert_int_equal(check(compiled(schema), BYTES("1"), &violation), CONTENT_COSTLY);
    /* the same under not: want of steps is no answer that could be turned round */
    schema = arena_printf(arena, "{'not':%s", schema + 1);
    schema = arena_printf(arena, "{'not':{'$ref':'#/$defs/d0'},%s", strstr(schema, "'$defs'"));
    assert_int_equal(check(compiled(schema), BYTES("1"), &violation), CONTENT_COSTLY);
    /* a regular expression */
    struct bytes text_of_a = repeated("\"", "a", 5000, "b\"");
    assert_int_equal(check(compiled("{'pattern':'^(a+)+$'}"), text_of_a, &violation), CONTENT_VIOLATES);
    assert_non_null(strstr(violation.expected, "fewer steps"));
    assert_int_equal(check(compiled("{'not':{'pattern':'^(a+)+$'}}"), text_of_a, &violation),
                     CONTENT_VIOLATES);
    assert_string_equal(violation.keyword, "pattern");
    /* many of them, each just below its limit */
    assert_int_equal(check(compiled("{'items':{'not':{'pattern':'^(a+)+$'}}}"),
                           repeated("[\"\"", ",\"aaaaaaaaaaaaab\"", 20000, "]"), &violation),
                     CONTENT_COSTLY);
    /* equal hashes need equal values: 20000 different ones */
    struct builder list = {0};
    builder_add_text(&list, "[0");
    for (int i = 1; i < 20000; i++)
        builder_printf(&list, ",%d", i);
    builder_add_text(&list, "]");
    struct bytes numbers = {arena_copy(arena, list.data, list.size), list.size};
    builder_free(&list);
    assert_int_equal(check(compiled("{'uniqueItems':true}"), numbers, &violation), CONTENT_CONFORMS);
    /* names that are needed and missing, in a large object */
    builder_clear(&list, 0);
    builder_add_text(&list, "{\"a\":0");
    for (int i = 1; i < 20000; i++)
        builder_printf(&list, ",\"%d\":0", i);
    builder_add_text(&list, "}");
    struct bytes object = {arena_copy(arena, list.data, list.size), list.size};
    builder_free(&list);
    assert_int_equal(
        check(compiled("{'patternProperties':{'':{}},'dependentRequired':{'a':['1','2','19999']}}"), object,
              &violation),
        CONTENT_CONFORMS);
}

static void depth_is_limited_in_the_schema_and_in_the_content(void **state UNUSED)
{
    struct content_violation violation;
    struct content_problem problem;
    const struct content_schema *schema;
    /* a hundred references at each of a hundred levels */
    struct builder text = {0};
    builder_add_text(&text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{\"d100\":{\"items\":{\"$ref\":\"#\"}}");
    for (int i = 0; i < 100; i++)
        builder_printf(&text, ",\"d%d\":{\"$ref\":\"#/$defs/d%d\"}", i, i + 1);
    builder_add_text(&text, "}}");
    struct bytes copy = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    assert_true(compile(copy, false, &schema, &problem));
    assert_int_equal(check(schema, BYTES("[[[]]]"), &violation), CONTENT_CONFORMS);
    struct bytes deep = repeated("", "[", 100, "");
    deep = repeated(deep.data, "]", 100, "");
    assert_int_equal(check(schema, deep, &violation), CONTENT_VIOLATES);
    assert_non_null(strstr(violation.expected, "less deep"));
    deep = repeated("", "[", 300, "");
    deep = repeated(deep.data, "]", 300, "");
    assert_int_equal(check(compiled("{}"), deep, &violation), CONTENT_VIOLATES);
}

static void the_size_of_a_schema_is_limited(void **state UNUSED)
{
    struct content_problem problem;
    const struct content_schema *schema;
    assert_true(compile(repeated("{\"allOf\":[true", ",true", CONTENT_SUBSCHEMAS_MOST - 2, "]}"), false,
                        &schema, &problem));
    assert_false(compile(repeated("{\"allOf\":[true", ",true", CONTENT_SUBSCHEMAS_MOST - 1, "]}"), false,
                         &schema, &problem));
    assert_non_null(strstr(problem.expected, "1000 subschemas"));
    assert_true(compile(repeated("{\"title\":\"", "a", 65524, "\"}"), false, &schema, &problem));
    assert_false(compile(repeated("{\"title\":\"", "a", 65525, "\"}"), false, &schema, &problem));
    assert_non_null(strstr(problem.expected, "65536 bytes"));
    assert_false(compile(repeated("{\"title\":\"", "a", 10, "\",\"pattern\":\"((a{100}){100}){100}\"}"),
                         false, &schema, &problem));
}

/* The same check costs the same, whatever came before; and the budget is what ends it. */
static void steps_are_counted(void **state UNUSED)
{
    const struct content_schema *schema = compiled("{'items':{'type':'integer','minimum':0}}");
    struct bytes content = BYTES("[1,2,3,4,5,6,7,8,9,10]");
    struct content_violation violation;
    int64_t steps = STEPS;
    assert_int_equal(content_check(schema, arena, content, &steps, &violation), CONTENT_CONFORMS);
    int64_t cost = STEPS - steps;
    assert_true(cost > 10 && cost < 100);
    steps = cost;
    assert_int_equal(content_check(schema, arena, content, &steps, &violation), CONTENT_CONFORMS);
    assert_int_equal(steps, 0);
    for (int64_t less = 0; less < cost; less++) {
        steps = less;
        assert_int_equal(content_check(schema, arena, content, &steps, &violation), CONTENT_COSTLY);
        assert_int_equal(steps, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(every_keyword_accepts_and_refuses),
        ARENA_TEST(the_opposite_accepts_the_opposite),
        ARENA_TEST(a_violation_is_located),
        ARENA_TEST(what_is_expected_is_short),
        ARENA_TEST(what_is_not_supported_is_refused_with_its_place),
        ARENA_TEST(raw_text_has_the_rules_of_strings),
        ARENA_TEST(numbers_are_compared_as_decimals),
        ARENA_TEST(a_hostile_content_ends_the_check),
        ARENA_TEST(depth_is_limited_in_the_schema_and_in_the_content),
        ARENA_TEST(the_size_of_a_schema_is_limited),
        ARENA_TEST(steps_are_counted),
    };
    return cmocka_run_group_tests_name("content", tests, NULL, NULL);
}
