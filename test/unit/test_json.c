/* json: what is accepted, what is refused and where, texts of nodes exactly as written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "arena_fixture.h"
#include "edge/json/json.h"

static const struct json_limits ordinary = {.depth = 32, .tree_depth = 32, .nodes = 0};

static struct json *root;
static struct json_problem problem;

/* Reads from memory of exactly that size, so that a sanitizer sees a byte read too far. */
static enum fault read_within(struct bytes text, struct json_limits limits)
{
    char *exact = arena_alloc(arena, text.size);
    if (text.size)
        memcpy(exact, text.data, text.size);
    enum fault fault = json_read(arena, (struct bytes){exact, text.size}, &limits, &root, &problem);
    assert_true((fault == FAULT_NONE) == (root != NULL));
    assert_true((fault == FAULT_NONE) == (problem.what == NULL));
    assert_true(problem.offset <= text.size);
    return fault;
}

static enum fault read_text(struct bytes text)
{
    return read_within(text, ordinary);
}

static void assert_bytes(struct bytes got, struct bytes wanted)
{
    assert_int_equal(got.size, wanted.size);
    if (wanted.size)
        assert_memory_equal(got.data, wanted.data, wanted.size);
}

static void sound_texts_are_accepted(void **state UNUSED)
{
    static const struct {
        struct bytes text;
        enum json_kind kind;
    } cases[] = {
        {BYTES("null"), JSON_NULL},
        {BYTES("true"), JSON_TRUE},
        {BYTES(" false\n"), JSON_FALSE},
        {BYTES("0"), JSON_NUMBER},
        {BYTES("-0"), JSON_NUMBER},
        {BYTES("-0.0E-0"), JSON_NUMBER},
        {BYTES("1e400"), JSON_NUMBER},
        {BYTES("1E+400 "), JSON_NUMBER},
        {BYTES("\t12\r\n"), JSON_NUMBER},
        {BYTES("\"\""), JSON_STRING},
        {BYTES("\"/\x7F\xC2\x80\xF4\x8F\xBF\xBF\""), JSON_STRING},
        {BYTES("[]"), JSON_ARRAY},
        {BYTES("{}"), JSON_OBJECT},
        {BYTES("{\"\":{}}"), JSON_OBJECT},
        {BYTES("[1,[2,[3]],{\"a\":[]}]"), JSON_ARRAY},
        {BYTES("{\"a\":{\"a\":{\"a\":1}},\"A\":0}"), JSON_OBJECT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_text(cases[i].text), FAULT_NONE);
        assert_int_equal(root->kind, cases[i].kind);
        assert_null(root->name.data);
        assert_null(root->next);
    }
}

enum { ANYWHERE = 999 };
static const struct {
    struct bytes text;
    enum fault fault;
    size_t offset;
} unsound[] = {
    /* nothing */
    {BYTES(""), FAULT_AJSON, 0},
    {BYTES(" \t\r\n"), FAULT_AJSON, 4},
    {BYTES(","), FAULT_AJSON, ANYWHERE},
    /* truncated */
    {BYTES("["), FAULT_AJSON, 1},
    {BYTES("[1,2"), FAULT_AJSON, 4},
    {BYTES("{\"a\""), FAULT_AJSON, 4},
    {BYTES("{\"a\":"), FAULT_AJSON, 5},
    {BYTES("{\"a\":1,"), FAULT_AJSON, 7},
    {BYTES("\"abc"), FAULT_AJSON, 4},
    {BYTES("\""), FAULT_AJSON, 1},
    {BYTES("\"\\"), FAULT_AJSON, 2},
    {BYTES("\"\\u00"), FAULT_AJSON, 5},
    {BYTES("tru"), FAULT_AJSON, 3},
    {BYTES("-"), FAULT_AJSON, 1},
    {BYTES("1e"), FAULT_AJSON, 2},
    {BYTES("1."), FAULT_AJSON, 2},
    /* behind the value */
    {BYTES("[1] x"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1] \""), FAULT_AJSON, 4},
    {BYTES("[1]\"abc"), FAULT_AJSON, 3},
    {BYTES("[1] \"abc\""), FAULT_AJSON, ANYWHERE},
    {BYTES("[1] 5"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1] -"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1] nul"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1],"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1]:"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1]]"), FAULT_AJSON, ANYWHERE},
    {BYTES("{}{}"), FAULT_AJSON, ANYWHERE},
    {BYTES("1 2"), FAULT_AJSON, ANYWHERE},
    {BYTES("12 \"x"), FAULT_AJSON, 3},
    {BYTES("truefalse"), FAULT_AJSON, ANYWHERE},
    {BYTES("{}\0"), FAULT_AJSON, ANYWHERE},
    {BYTES("1\0"), FAULT_AJSON, ANYWHERE},
    /* comments, words, quotes of other languages */
    {BYTES("/* c */ 1"), FAULT_AJSON, ANYWHERE},
    {BYTES("1 // c\n"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1 /**/]"), FAULT_AJSON, ANYWHERE},
    {BYTES("# c\n1"), FAULT_AJSON, ANYWHERE},
    {BYTES("NaN"), FAULT_AJSON, ANYWHERE},
    {BYTES("Infinity"), FAULT_AJSON, ANYWHERE},
    {BYTES("[-Infinity]"), FAULT_AJSON, ANYWHERE},
    {BYTES("nan"), FAULT_AJSON, ANYWHERE},
    {BYTES("True"), FAULT_AJSON, ANYWHERE},
    {BYTES("undefined"), FAULT_AJSON, ANYWHERE},
    {BYTES("'a'"), FAULT_AJSON, ANYWHERE},
    {BYTES("{a:1}"), FAULT_AJSON, ANYWHERE},
    /* structure */
    {BYTES("[1,]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[,1]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1 2]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1:2]"), FAULT_AJSON, ANYWHERE},
    {BYTES("{\"a\":1,}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{,\"a\":1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{\"a\" 1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{\"a\",1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{\"a\"::1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{1:1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{[]:1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1}"), FAULT_AJSON, ANYWHERE},
    {BYTES("{\"a\":1]"), FAULT_AJSON, ANYWHERE},
    {BYTES("]"), FAULT_AJSON, ANYWHERE},
    /* numbers */
    {BYTES("01"), FAULT_AJSON, ANYWHERE},
    {BYTES("-01"), FAULT_AJSON, ANYWHERE},
    {BYTES("[00]"), FAULT_AJSON, ANYWHERE},
    {BYTES("+1"), FAULT_AJSON, ANYWHERE},
    {BYTES(".5"), FAULT_AJSON, ANYWHERE},
    {BYTES("[5.]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1.e5]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[1e+]"), FAULT_AJSON, ANYWHERE},
    {BYTES("[--1]"), FAULT_AJSON, ANYWHERE},
    {BYTES("0x1F"), FAULT_AJSON, ANYWHERE},
    {BYTES("1_000"), FAULT_AJSON, ANYWHERE},
    /* white space that is none */
    {BYTES("\v1"), FAULT_AJSON, 0},
    {BYTES("[1,\f2]"), FAULT_AJSON, 3},
    {BYTES("[1\v]"), FAULT_AJSON, 2},
    {BYTES("{\"a\"\v:1}"), FAULT_AJSON, 4},
    {BYTES("{}\f"), FAULT_AJSON, 2},
    {BYTES("7\v"), FAULT_AJSON, 1},
    {BYTES("[\xC2\xA0]"), FAULT_AJSON, ANYWHERE},
    /* byte order marks */
    {BYTES("\xEF\xBB\xBF{}"), FAULT_AJSON, 0},
    {BYTES("\xEF\xBB\xBF"), FAULT_AJSON, 0},
    {BYTES("[\xEF\xBB\xBF]"), FAULT_AJSON, ANYWHERE},
    {BYTES("\xFF\xFE[\0]\0"), FAULT_AUTF8, 0},
    /* strings */
    {BYTES("\"a\nb\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"a\tb\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"a\0b\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\x1F\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\x41\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\'\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\U0041\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\u12G4\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\u{41}\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\u123\""), FAULT_AJSON, ANYWHERE},
    {BYTES("\"\\u0000\""), FAULT_AJSON, 1},
    {BYTES("[\"ab\\u0000\"]"), FAULT_AJSON, 4},
    {BYTES("{\"\\u0000\":1}"), FAULT_AJSON, 2},
    /* surrogates */
    {BYTES("\"\\uD800\""), FAULT_AJSON, 1},
    {BYTES("\"\\uDBFFx\""), FAULT_AJSON, 1},
    {BYTES("\"\\uDC00\""), FAULT_AJSON, 1},
    {BYTES("\"a\\uDFFF\\uD800\""), FAULT_AJSON, 2},
    {BYTES("\"\\uDC00\\uDC00\""), FAULT_AJSON, 1},
    {BYTES("\"\\uD800\\u0041\""), FAULT_AJSON, 1},
    {BYTES("\"\\uD800\\uD800\\uDC00\""), FAULT_AJSON, 1},
    {BYTES("\"\\uD800\\n\""), FAULT_AJSON, 1},
    {BYTES("\"\\uD834\\\\uDD1E\""), FAULT_AJSON, 1},
    {BYTES("{\"\\uDEAD\":1}"), FAULT_AJSON, 2},
    /* UTF-8 */
    {BYTES("\"\xC0\x80\""), FAULT_AUTF8, 1},
    {BYTES("\"\xC1\xBF\""), FAULT_AUTF8, 1},
    {BYTES("\"ab\xE0\x80\xAF\""), FAULT_AUTF8, 3},
    {BYTES("\"\xC3\xA9\xF0\x80\x80\xAF\""), FAULT_AUTF8, 3},
    {BYTES("\"\xE2\x82\xAC\xED\xA0\x80\""), FAULT_AUTF8, 4},
    {BYTES("\"\xF4\x90\x80\x80\""), FAULT_AUTF8, 1},
    {BYTES("\"\x80\""), FAULT_AUTF8, 1},
    {BYTES("\"\xC3"), FAULT_AUTF8, 1},
    {BYTES("{\"\xFF\":1}"), FAULT_AUTF8, 2},
    /* duplicates */
    {BYTES("{\"a\":1,\"a\":2}"), FAULT_AJSON, 7},
    {BYTES("{\"a\":1,\"b\":2, \"a\":1}"), FAULT_AJSON, 14},
    {BYTES("{\"a\":1,\"\\u0061\":2}"), FAULT_AJSON, 7},
    {BYTES("{\"\\n\":1,\"\\u000A\":2}"), FAULT_AJSON, 8},
    {BYTES("{\"\xF0\x9D\x84\x9E\":1,\"\\uD834\\uDD1E\":2}"), FAULT_AJSON, 10},
    {BYTES("{\"\":1,\"\":2}"), FAULT_AJSON, 6},
    {BYTES("[{\"b\":{\"c\":1,\"d\":{},\"c\":1}}]"), FAULT_AJSON, 20},
};

static void unsound_texts_are_refused_where_they_break(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(unsound); i++) {
        enum fault fault = read_text(unsound[i].text);
        if (fault != unsound[i].fault ||
            (unsound[i].offset != ANYWHERE && problem.offset != unsound[i].offset))
            fail_msg("case %zu, %.*s: %s at %zu: %s", i, (int)unsound[i].text.size, unsound[i].text.data,
                     fault_code(fault), problem.offset, problem.what ? problem.what : "accepted");
    }
}

/* One line a node, before its children: depth, name, text as written, decoded value. */
static void outline(struct builder *builder, const struct json *node, int depth)
{
    for (; node; node = node->next) {
        builder_printf(builder, "%d", depth);
        if (node->name.data)
            builder_printf(builder, " %.*s:", (int)node->name.size, node->name.data);
        builder_printf(builder, " <%.*s>", (int)node->text.size, node->text.data);
        if (node->kind == JSON_STRING)
            builder_printf(builder, " %.*s", (int)node->value.size, node->value.data);
        if (node->kind == JSON_ARRAY || node->kind == JSON_OBJECT)
            builder_printf(builder, " %u%s", node->count, node->is_shallow ? " shallow" : "");
        builder_add_text(builder, "\n");
        outline(builder, node->first, depth + 1);
    }
}

static void assert_outline(const char *wanted)
{
    struct builder builder = {0};
    outline(&builder, root, 0);
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, wanted);
    builder_free(&builder);
}

static void texts_of_nodes_are_exactly_as_written(void **state UNUSED)
{
    static const struct {
        const char *text, *outline;
    } cases[] = {
        {"12", "0 <12>\n"},
        {" -0.50e+07 ", "0 <-0.50e+07>\n"},
        {"\r\n true\t", "0 <true>\n"},
        {"null", "0 <null>\n"},
        {" \"a b\" ", "0 <\"a b\"> a b\n"},
        {" [ ] ", "0 <[ ]> 0\n"},
        {"\t{ \n }\n", "0 <{ \n }> 0\n"},
        {"[1,2]", "0 <[1,2]> 2\n1 <1>\n1 <2>\n"},
        {"[[],{},\"\",0]", "0 <[[],{},\"\",0]> 4\n1 <[]> 0\n1 <{}> 0\n1 <\"\"> \n1 <0>\n"},
        {" [ 1 , \"x,y\" ,\n[ true ] , null ]", "0 <[ 1 , \"x,y\" ,\n[ true ] , null ]> 4\n1 <1>\n1 "
                                                "<\"x,y\"> x,y\n1 <[ true ]> 1\n2 <true>\n1 <null>\n"},
        {"{\"a\":1}", "0 <{\"a\":1}> 1\n1 a: <1>\n"},
        {"{ \"a\" : { \"b\" : [ ] , \"c\":false } ,\"d\":\": , \" } ",
         "0 <{ \"a\" : { \"b\" : [ ] , \"c\":false } ,\"d\":\": , \" }> 2\n"
         "1 a: <{ \"b\" : [ ] , \"c\":false }> 2\n2 b: <[ ]> 0\n2 c: <false>\n1 d: <\": , \"> : , \n"},
        {"{\"\\u0061\\/\" :\t\"\\u00e9\\t\" }",
         "0 <{\"\\u0061\\/\" :\t\"\\u00e9\\t\" }> 1\n1 a/: <\"\\u00e9\\t\"> \xC3\xA9\t\n"},
        {"[\"\\\"\\\\\\/\\b\\f\\n\\r\\tx\"]",
         "0 <[\"\\\"\\\\\\/\\b\\f\\n\\r\\tx\"]> 1\n1 <\"\\\"\\\\\\/\\b\\f\\n\\r\\tx\"> \"\\/\b\f\n\r\tx\n"},
        {"[\"\\u20ac\\uD834\\uDD1E\\u007F\\u0080\\u07FF\\u0800\\uFFFF\"]",
         "0 <[\"\\u20ac\\uD834\\uDD1E\\u007F\\u0080\\u07FF\\u0800\\uFFFF\"]> 1\n"
         "1 <\"\\u20ac\\uD834\\uDD1E\\u007F\\u0080\\u07FF\\u0800\\uFFFF\"> "
         "\xE2\x82\xAC\xF0\x9D\x84\x9E\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\n"},
        {"[\"\\uD800\\uDC00\\uDBFF\\uDFFF\"]",
         "0 <[\"\\uD800\\uDC00\\uDBFF\\uDFFF\"]> 1\n1 <\"\\uD800\\uDC00\\uDBFF\\uDFFF\"> "
         "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_text(bytes_of(cases[i].text)), FAULT_NONE);
        assert_outline(cases[i].outline);
    }
}

static void numbers_are_never_converted(void **state UNUSED)
{
    char digits[402] = "-";
    for (size_t i = 1; i < 401; i++)
        digits[i] = (char)('1' + i % 9);
    assert_int_equal(read_text(bytes_of(digits)), FAULT_NONE);
    assert_bytes(root->text, bytes_of(digits));
    assert_bytes(root->value, bytes_of(digits));

    static const struct {
        const char *text;
        bool fits;
        int64_t number;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"261121000000000", true, 261121000000000},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"1.0", false, 0},
        {"1e2", false, 0},
        {"1e400", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
        {"[1]", false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t number = 0;
        assert_int_equal(read_text(bytes_of(cases[i].text)), FAULT_NONE);
        assert_int_equal(json_is_i64(root, &number), cases[i].fits);
        assert_true(number == cases[i].number);
    }
    int64_t number;
    assert_false(json_is_i64(NULL, &number));
}

static void strings_without_escapes_are_slices(void **state UNUSED)
{
    assert_int_equal(read_text(BYTES("{\"name\":\"caf\xC3\xA9\",\"n\\u0061me2\":\"\\u0062\"}")), FAULT_NONE);
    const struct json *plain = json_member(root, "name"), *escaped = json_member(root, "name2");
    assert_ptr_equal(plain->value.data, plain->text.data + 1);
    assert_ptr_equal(plain->name.data, root->text.data + 2);
    assert_bytes(escaped->value, BYTES("b"));
}

static void members_are_found_by_name(void **state UNUSED)
{
    assert_int_equal(read_text(BYTES("{\"a\":1,\"ab\":2,\"\":3,\"x\\u00e9\":4}")), FAULT_NONE);
    assert_bytes(json_member(root, "a")->text, BYTES("1"));
    assert_bytes(json_member(root, "ab")->text, BYTES("2"));
    assert_bytes(json_member(root, "")->text, BYTES("3"));
    assert_bytes(json_member(root, "x\xC3\xA9")->text, BYTES("4"));
    assert_null(json_member(root, "b"));
    assert_null(json_member(NULL, "a"));
    assert_null(json_member(root->first, "a"));
    assert_int_equal(read_text(BYTES("[{\"a\":1}]")), FAULT_NONE);
    assert_null(json_member(root, "a"));
}

static struct bytes repeated(const char *piece, size_t times, const char *middle, const char *end_piece)
{
    size_t a = strlen(piece), b = strlen(middle), c = strlen(end_piece);
    char *text = arena_alloc(arena, (a + c) * times + b), *at = text;
    for (size_t i = 0; i < times; i++, at += a)
        memcpy(at, piece, a);
    memcpy(at, middle, b);
    at += b;
    for (size_t i = 0; i < times; i++, at += c)
        memcpy(at, end_piece, c);
    return (struct bytes){text, (a + c) * times + b};
}

static void depth_is_limited(void **state UNUSED)
{
    struct json_limits limits = {.depth = 5, .tree_depth = 5};
    assert_int_equal(read_within(repeated("[", 5, "1", "]"), limits), FAULT_NONE);
    assert_int_equal(read_within(repeated("[", 6, "1", "]"), limits), FAULT_ALIMIT);
    assert_int_equal(problem.offset, 5);
    assert_non_null(strstr(problem.what, "5 levels"));
    assert_int_equal(read_within(repeated("{\"a\":", 5, "1", "}"), limits), FAULT_NONE);
    assert_int_equal(read_within(repeated("{\"a\":", 6, "1", "}"), limits), FAULT_ALIMIT);
    /* as deep, one after the other */
    assert_int_equal(read_within(BYTES("[[[[[]]]],[[[[]]]],{\"a\":[[[]]]}]"), limits), FAULT_NONE);
    /* limits hold where nothing is built, too */
    limits.tree_depth = 1;
    assert_int_equal(read_within(repeated("[", 6, "1", "]"), limits), FAULT_ALIMIT);
    limits.depth = 0;
    assert_int_equal(read_within(BYTES("1"), limits), FAULT_NONE);
    assert_int_equal(read_within(BYTES("[]"), limits), FAULT_ALIMIT);

    /* More than the stack of a process has room for.  yajl moves its own with every 128 levels, which costs a
     * build with the sanitizers 20 seconds of a processor when there are two millions. */
    enum { MANY = IS_SANITIZED ? 200000 : 2000000 };
    assert_int_equal(read_text(repeated("[", MANY, "", "")), FAULT_ALIMIT);
    assert_int_equal(read_text(repeated("{\"a\":", MANY, "", "")), FAULT_ALIMIT);
    struct json_limits deep = {.depth = MANY, .tree_depth = 2};
    assert_int_equal(read_within(repeated("[", MANY, "", "]"), deep), FAULT_NONE);
    assert_int_equal(root->first->first->text.size, 2 * (size_t)MANY - 4);
}

static void nodes_are_limited(void **state UNUSED)
{
    struct json_limits limits = {.depth = 5, .tree_depth = 5, .nodes = 4};
    assert_int_equal(read_within(BYTES("[1,{\"a\":2}]"), limits), FAULT_NONE);
    assert_int_equal(read_within(BYTES("[1,{\"a\":2},3]"), limits), FAULT_ALIMIT);
    assert_int_equal(problem.offset, 11);
    assert_non_null(strstr(problem.what, "4 values"));
    /* what is not built does not count */
    limits.tree_depth = 1;
    assert_int_equal(read_within(BYTES("[1,[2,3,4,5,6,7],8]"), limits), FAULT_NONE);
}

static void deep_values_keep_their_text_only(void **state UNUSED)
{
    struct bytes text = BYTES("{\"a\": [1, {\"b\" : [ 2, {\"c\":\"\\u0064\"} ]}, [[]]] ,\"e\":[ ], \"f\":1}");
    struct json_limits limits = {.depth = 32, .tree_depth = 2};
    assert_int_equal(read_within(text, limits), FAULT_NONE);
    assert_outline("0 <{\"a\": [1, {\"b\" : [ 2, {\"c\":\"\\u0064\"} ]}, [[]]] ,\"e\":[ ], \"f\":1}> 3\n"
                   "1 a: <[1, {\"b\" : [ 2, {\"c\":\"\\u0064\"} ]}, [[]]]> 3\n"
                   "2 <1>\n"
                   "2 <{\"b\" : [ 2, {\"c\":\"\\u0064\"} ]}> 1 shallow\n"
                   "2 <[[]]> 1 shallow\n"
                   "1 e: <[ ]> 0\n"
                   "1 f: <1>\n");
    struct bytes shallow = json_member(root, "a")->first->next->text;
    assert_int_equal(read_within(shallow, ordinary), FAULT_NONE);
    assert_outline("0 <{\"b\" : [ 2, {\"c\":\"\\u0064\"} ]}> 1\n"
                   "1 b: <[ 2, {\"c\":\"\\u0064\"} ]> 2\n"
                   "2 <2>\n"
                   "2 <{\"c\":\"\\u0064\"}> 1\n"
                   "3 c: <\"\\u0064\"> d\n");
    limits.tree_depth = 0;
    assert_int_equal(read_within(BYTES(" [1,[2]] "), limits), FAULT_NONE);
    assert_outline("0 <[1,[2]]> 2 shallow\n");
    /* checked all the same */
    assert_int_equal(read_within(BYTES("[[{\"a\":1,\"\\u0061\":2}]]"), limits), FAULT_AJSON);
    assert_int_equal(read_within(BYTES("[[\"\\uD800\"]]"), limits), FAULT_AJSON);
    assert_int_equal(read_within(BYTES("[[\"\\u0000\"]]"), limits), FAULT_AJSON);
    assert_int_equal(read_within(BYTES("[[1,]]"), limits), FAULT_AJSON);
}

static struct bytes object_of(size_t count, size_t doubled_first, size_t doubled_second)
{
    struct builder builder = {0};
    builder_add_text(&builder, "{");
    for (size_t i = 0; i < count; i++)
        builder_printf(&builder, "%s\"%zu\":0", i ? "," : "", i == doubled_second ? doubled_first : i);
    builder_add_text(&builder, "}");
    struct bytes text = {arena_copy(arena, builder.data, builder.size), builder.size};
    builder_free(&builder);
    return text;
}

static void many_members_are_compared_too(void **state UNUSED)
{
    static const size_t counts[] = {2, 15, 16, 17, 18, 63, 64, 65, 200, 100000};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        size_t last = counts[i] - 1;
        assert_int_equal(read_text(object_of(counts[i], 0, counts[i])), FAULT_NONE);
        assert_int_equal(root->count, counts[i]);
        assert_int_equal(read_text(object_of(counts[i], 0, last)), FAULT_AJSON);
        assert_non_null(strstr(problem.what, "same name"));
        assert_int_equal(read_text(object_of(counts[i], last - 1, last)), FAULT_AJSON);
        assert_int_equal(read_text(object_of(counts[i], 0, 1)), FAULT_AJSON);
        assert_int_equal(problem.offset, 7); /* the second one is blamed */
    }
}

static void names_of_nested_objects_are_apart(void **state UNUSED)
{
    /* the outer object goes on after an inner one with many names */
    struct builder builder = {0};
    builder_add_text(&builder, "{\"0\":1,\"x\":");
    builder_add_bytes(&builder, object_of(100, 0, 100));
    builder_add_text(&builder, ",\"1\":");
    builder_add_bytes(&builder, object_of(100, 0, 100));
    size_t sound = builder.size;
    builder_add_text(&builder, ",\"2\":1}");
    assert_int_equal(read_text(builder_bytes(&builder)), FAULT_NONE);
    assert_int_equal(root->count, 4);
    builder.size = sound;
    builder_add_text(&builder, ",\"0\":1}");
    assert_int_equal(read_text(builder_bytes(&builder)), FAULT_AJSON);
    assert_int_equal(problem.offset, sound + 1);
    builder_free(&builder);
}

static void large_strings_are_read(void **state UNUSED)
{
    enum { LARGE = 16 << 20 };
    struct bytes text = repeated("a", LARGE, "", "");
    char *data = (char *)text.data;
    data[0] = data[LARGE - 1] = '"';
    assert_int_equal(read_text(text), FAULT_NONE);
    assert_int_equal(root->value.size, LARGE - 2);
    memcpy(data + LARGE - 7, "\\u0062", 6);
    assert_int_equal(read_text(text), FAULT_NONE);
    assert_int_equal(root->value.size, LARGE - 2 - 5);
    assert_int_equal(root->value.data[root->value.size - 1], 'b');
    data[LARGE - 1] = ' ';
    assert_int_equal(read_text(text), FAULT_AJSON);
    data[LARGE - 1] = (char)0xC3;
    assert_int_equal(read_text(text), FAULT_AUTF8);
    assert_int_equal(problem.offset, LARGE - 1);
}

static void problems_never_quote_the_text(void **state UNUSED)
{
    static const struct bytes secrets[] = {
        BYTES("[\"secret\", secret]"),
        BYTES("{\"secret\":1,\"secret\":2}"),
        BYTES("{\"secret\" 1}"),
        BYTES("[\"secret\"] secret"),
        BYTES("\"secret\\q\""),
        BYTES("[-secret]"),
        BYTES("\"secret"),
        BYTES("secret"),
        BYTES("\"secret\\u0000\""),
    };
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        assert_int_equal(read_text(secrets[i]), FAULT_AJSON);
        assert_null(strstr(problem.what, "secret"));
        assert_null(strchr(problem.what, '\n'));
        assert_true(strlen(problem.what) > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(sound_texts_are_accepted),
        ARENA_TEST(unsound_texts_are_refused_where_they_break),
        ARENA_TEST(texts_of_nodes_are_exactly_as_written),
        ARENA_TEST(numbers_are_never_converted),
        ARENA_TEST(strings_without_escapes_are_slices),
        ARENA_TEST(members_are_found_by_name),
        ARENA_TEST(depth_is_limited),
        ARENA_TEST(nodes_are_limited),
        ARENA_TEST(deep_values_keep_their_text_only),
        ARENA_TEST(many_members_are_compared_too),
        ARENA_TEST(names_of_nested_objects_are_apart),
        ARENA_TEST(large_strings_are_read),
        ARENA_TEST(problems_never_quote_the_text),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
