/* arguments: query strings, forms, JSON bodies, content types, paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "http/arguments.h"
#include "http/path.h"

static struct arguments arguments;
static struct json_problem problem;

/* A copy of exactly that size, so that a sanitizer sees a byte read too far. */
enum { PARTS = 16 };

static struct bytes exact(struct bytes text)
{
    char *copy = arena_alloc(arena, text.size);
    if (text.size)
        memcpy(copy, text.data, text.size);
    return text.data ? (struct bytes){copy, text.size} : NO_BYTES;
}

static enum fault read_source(struct bytes query, struct bytes type, struct bytes body)
{
    static const struct argument_limits limits = {.depth = 32, .nodes = ARGUMENT_NODES, .parts = PARTS};
    struct argument_source source = {.query = exact(query), .content_type = exact(type), .body = exact(body)};
    enum fault fault = arguments_read(arena, &source, &limits, &arguments, &problem);
    assert_true((fault == FAULT_NONE) == (arguments.wrong == NULL));
    assert_true((fault == FAULT_NONE) == (problem.what == NULL));
    return fault;
}

static enum fault read_query(struct bytes query)
{
    return read_source(query, NO_BYTES, NO_BYTES);
}

static enum fault read_form(struct bytes body)
{
    return read_source(NO_BYTES, BYTES("application/x-www-form-urlencoded"), body);
}

static enum fault read_json(struct bytes body)
{
    return read_source(NO_BYTES, BYTES("application/json"), body);
}

static void assert_bytes(struct bytes got, const char *wanted)
{
    assert_int_equal(got.size, strlen(wanted));
    assert_non_null(got.data);
    assert_memory_equal(got.data, wanted, got.size);
}

static void nothing_is_fine(void **state UNUSED)
{
    static const struct bytes types[] = {
        {NULL, 0}, BYTES(""), BYTES("text/plain"), BYTES("application/json; charset=latin1")};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        assert_int_equal(read_source(NO_BYTES, types[i], i ? BYTES("") : NO_BYTES), FAULT_NONE);
        assert_null(arguments.param);
        assert_null(arguments.syncs);
        assert_null(arguments.account.data);
        assert_null(arguments.key.data);
        assert_null(arguments.admin.data);
        assert_null(arguments.lang.data);
        assert_null(arguments.dhop.data);
    }
}

/* The same seven arguments by each of the roads. */
static void all_arguments_come_by_each_path(void **state UNUSED)
{
    static const struct bytes pairs = BYTES("param=%7B%22a%22:%5b1,2%5D%7d&syncs=[{\"c\":\"A\"}]&account=x%"
                                            "26y+z&key=%c3%A9&admin=a%3Db=c&lang=fr&dhop=261121000000000");
    static const struct bytes json = BYTES("{\"param\":{\"a\":[1,2]},\"syncs\":[{\"c\":\"A\"}],\"account\":"
                                           "\"x&y z\",\"key\":\"\\u00e9\",\"admin\":\"a=b=c\","
                                           "\"lang\":\"fr\",\"dhop\":261121000000000}");
    for (int path = 0; path < 3; path++) {
        enum fault fault = path == 0 ? read_query(pairs) : path == 1 ? read_form(pairs) : read_json(json);
        assert_int_equal(fault, FAULT_NONE);
        assert_bytes(arguments.param->text, "{\"a\":[1,2]}");
        assert_int_equal(json_member(arguments.param, "a")->count, 2);
        assert_int_equal(arguments.syncs->kind, JSON_ARRAY);
        assert_bytes(json_member(arguments.syncs->first, "c")->value, "A");
        assert_bytes(arguments.account, "x&y z");
        assert_bytes(arguments.key, "\xC3\xA9");
        assert_bytes(arguments.admin, "a=b=c");
        assert_bytes(arguments.lang, "fr");
        assert_bytes(arguments.dhop, "261121000000000");
    }
    assert_int_equal(read_json(BYTES("{\"dhop\":\"12\"}")), FAULT_NONE);
    assert_bytes(arguments.dhop, "12");
}

static void the_first_of_repeated_arguments_wins(void **state UNUSED)
{
    assert_int_equal(read_query(BYTES("lang=fr&lang=en&lang=%zz")), FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_int_equal(read_query(BYTES("lang=&lang=en")), FAULT_NONE);
    assert_bytes(arguments.lang, "");
    assert_int_equal(read_query(BYTES("lang&lang=en")), FAULT_NONE);
    assert_bytes(arguments.lang, "");
    assert_int_equal(read_query(BYTES("param={}&param=[")), FAULT_NONE);

    struct bytes form = BYTES("application/x-www-form-urlencoded"), json = BYTES("application/json");
    assert_int_equal(read_source(BYTES("lang=fr&param={\"q\":1}"), form, BYTES("lang=en&key=k&param=[]")),
                     FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_bytes(arguments.key, "k");
    assert_bytes(arguments.param->text, "{\"q\":1}");
    assert_int_equal(
        read_source(BYTES("lang=fr&param={\"q\":1}"), json, BYTES("{\"lang\":1,\"key\":\"k\",\"param\":[]}")),
        FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_bytes(arguments.key, "k");
    assert_bytes(arguments.param->text, "{\"q\":1}");
}

static void names_are_decoded(void **state UNUSED)
{
    static const struct bytes pairs = BYTES("&&la%6Eg=fr&&%6cang=en&");
    assert_int_equal(read_query(pairs), FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_int_equal(read_form(pairs), FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_int_equal(read_json(BYTES("{\"l\\u0061ng\":\"fr\"}")), FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
}

static void wrong_arguments_are_named(void **state UNUSED)
{
    static const struct {
        char path; /* q, f, j */
        struct bytes text;
        enum fault fault;
        const char *wrong;
    } cases[] = {
        {'q', BYTES("lang=%"), FAULT_AARG, "lang"},
        {'q', BYTES("lang=%4"), FAULT_AARG, "lang"},
        {'q', BYTES("lang=%4&key=1"), FAULT_AARG, "lang"},
        {'q', BYTES("key=1&lang=%4G"), FAULT_AARG, "lang"},
        {'q', BYTES("lang=%G4"), FAULT_AARG, "lang"},
        {'q', BYTES("lang=%+4"), FAULT_AARG, "lang"},
        {'q', BYTES("lang=%%41"), FAULT_AARG, "lang"},
        {'q', BYTES("account=a%00b"), FAULT_AARG, "account"},
        {'q', BYTES("account=a\0b"), FAULT_AARG, "account"},
        {'f', BYTES("account=a%00b"), FAULT_AARG, "account"},
        {'q', BYTES("param=%00"), FAULT_AARG, "param"},
        {'q', BYTES("%zz=1"), FAULT_AARG, "query"},
        {'q', BYTES("a%00=1"), FAULT_AARG, "query"},
        {'q', BYTES("%ff=1"), FAULT_AUTF8, "query"},
        {'q', BYTES("lang%C0%80=1"), FAULT_AUTF8, "query"},
        {'f', BYTES("la%ng=1"), FAULT_AARG, "body"},
        {'q', BYTES("key=%C0%80"), FAULT_AUTF8, "key"},
        {'q', BYTES("key=%ED%A0%80"), FAULT_AUTF8, "key"},
        {'f', BYTES("key=\xFF"), FAULT_AUTF8, "key"},
        {'q', BYTES("param={\"a\":\"%ff\"}"), FAULT_AUTF8, "param"},
        {'q', BYTES("param="), FAULT_AJSON, "param"},
        {'q', BYTES("param"), FAULT_AJSON, "param"},
        {'q', BYTES("param={\"a\":1"), FAULT_AJSON, "param"},
        {'q', BYTES("param={\"a\":1,\"a\":1}"), FAULT_AJSON, "param"},
        {'q', BYTES("param=[]"), FAULT_AARG, "param"},
        {'q', BYTES("param=null"), FAULT_AARG, "param"},
        {'q', BYTES("param=\"{}\""), FAULT_AARG, "param"},
        {'q', BYTES("syncs={}"), FAULT_AARG, "syncs"},
        {'f', BYTES("syncs=1"), FAULT_AARG, "syncs"},
        {'f', BYTES("syncs=[1"), FAULT_AJSON, "syncs"},
        {'j', BYTES(" "), FAULT_AJSON, "body"},
        {'j', BYTES("{\"param\":{}"), FAULT_AJSON, "body"},
        {'j', BYTES("{\"x\":\"\xC0\x80\"}"), FAULT_AUTF8, "body"},
        {'j', BYTES("[]"), FAULT_AARG, "body"},
        {'j', BYTES("null"), FAULT_AARG, "body"},
        {'j', BYTES("{\"param\":[]}"), FAULT_AARG, "param"},
        {'j', BYTES("{\"param\":\"{}\"}"), FAULT_AARG, "param"},
        {'j', BYTES("{\"param\":null}"), FAULT_AARG, "param"},
        {'j', BYTES("{\"syncs\":{}}"), FAULT_AARG, "syncs"},
        {'j', BYTES("{\"account\":1}"), FAULT_AARG, "account"},
        {'j', BYTES("{\"key\":null}"), FAULT_AARG, "key"},
        {'j', BYTES("{\"lang\":[\"fr\"]}"), FAULT_AARG, "lang"},
        {'j', BYTES("{\"dhop\":true}"), FAULT_AARG, "dhop"},
        {'j', BYTES("{\"param\":{},\"param\":{}}"), FAULT_AJSON, "body"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum fault fault = cases[i].path == 'q'   ? read_query(cases[i].text)
                           : cases[i].path == 'f' ? read_form(cases[i].text)
                                                  : read_json(cases[i].text);
        if (fault != cases[i].fault)
            fail_msg("%.*s: %s", (int)cases[i].text.size, cases[i].text.data, fault_code(fault));
        assert_string_equal(arguments.wrong, cases[i].wrong);
    }
    assert_int_equal(read_query(BYTES("lang=fr&param=%7B%22a%22:x}")), FAULT_AJSON);
    assert_in_range(problem.offset, 5, 6); /* in the decoded text */
}

static void types_of_content_are_checked(void **state UNUSED)
{
    static const struct {
        struct bytes type;
        bool is_json, is_form;
    } cases[] = {
        {BYTES("application/json"), true, false},
        {BYTES("Application/JSON"), true, false},
        {BYTES(" application/json "), true, false},
        {BYTES("application/json;"), true, false},
        {BYTES("application/json; charset=utf-8"), true, false},
        {BYTES("application/json;charset=UTF-8"), true, false},
        {BYTES("application/json ; Charset=\"utf-8\" ; x=y"), true, false},
        {BYTES("application/x-www-form-urlencoded"), false, true},
        {BYTES("application/X-WWW-Form-urlencoded; charset=UTF-8"), false, true},
        {BYTES("application/json; charset=iso-8859-1"), false, false},
        {BYTES("application/json; charset="), false, false},
        {BYTES("application/json; charset=\""), false, false},
        {BYTES("application/json; charset"), false, false},
        {BYTES("application/json; =utf-8"), false, false},
        {BYTES("application/json; charset=utf-8; charset=latin1"), false, false},
        {BYTES("application/jsonp"), false, false},
        {BYTES("application/json, text/plain"), false, false},
        {BYTES("text/plain"), false, false},
        {BYTES(";"), false, false},
        {BYTES(""), false, false},
        {{NULL, 0}, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum fault json = read_source(NO_BYTES, cases[i].type, BYTES("{\"lang\":\"fr\"}"));
        assert_true((json == FAULT_NONE && arguments.lang.data) == cases[i].is_json);
        enum fault form = read_source(NO_BYTES, cases[i].type, BYTES("lang=fr"));
        assert_true((form == FAULT_NONE) == cases[i].is_form);
        if (!cases[i].is_json && !cases[i].is_form) {
            assert_int_equal(json, FAULT_ATYPE);
            assert_int_equal(form, FAULT_ATYPE);
            assert_string_equal(arguments.wrong, "body");
        }
    }
}

#define PUT_ITEM  "{\"c\":\"I\",\"k\":\"k\",\"j\":{\"a\" : [1]}}"
#define PUT_PARAM "{\"docs\":[{\"c\":\"A\",\"id\":\"i\",\"items\":[" PUT_ITEM "]}]}"

static void contents_of_items_stay_shallow(void **state UNUSED)
{
    for (int path = 0; path < 3; path++) {
        assert_int_equal(path == 0   ? read_query(BYTES("param=" PUT_PARAM))
                         : path == 1 ? read_form(BYTES("param=" PUT_PARAM))
                                     : read_json(BYTES("{\"param\":" PUT_PARAM "}")),
                         FAULT_NONE);
        const struct json *document = json_member(arguments.param, "docs")->first;
        const struct json *item = json_member(document, "items")->first;
        assert_false(item->is_shallow);
        assert_bytes(json_member(item, "k")->value, "k");
        assert_true(json_member(item, "j")->is_shallow);
        assert_bytes(json_member(item, "j")->text, "{\"a\" : [1]}");
    }
}

#define PART(parameters, content)                                                                            \
    "--b\r\nContent-Disposition: form-data; " parameters "\r\n\r\n" content "\r\n"

static enum fault read_multipart(struct bytes body)
{
    return read_source(BYTES("lang=fr"), BYTES("Multipart/Form-Data; boundary=b; charset=UTF-8"), body);
}

static void multipart_forms_bear_arguments_and_files(void **state UNUSED)
{
    assert_int_equal(
        read_multipart(
            BYTES(PART("name=\"param\"", PUT_PARAM) PART("name=\"photo\"; filename=\"a.png\"", "\0\xFF\r")
                      PART("name=lang", "en") PART("name=key", "a+b%20c") PART("name=param", "{")
                          PART("name=\"param\"; filename=\"\"\r\nContent-Type: text/css", "") "--b--")),
        FAULT_NONE);
    assert_bytes(arguments.lang, "fr");
    assert_bytes(arguments.key, "a+b%20c");
    const struct json *document = json_member(arguments.param, "docs")->first;
    assert_true(json_member(json_member(document, "items")->first, "j")->is_shallow);
    assert_int_equal(arguments.file_count, 2);
    assert_bytes(arguments.files[0].name, "photo");
    assert_bytes(arguments.files[0].file_name, "a.png");
    assert_bytes(arguments.files[0].type, "application/octet-stream");
    assert_true(bytes_equal(arguments.files[0].content, BYTES("\0\xFF\r")));
    assert_bytes(arguments.files[1].name, "param");
    assert_bytes(arguments.files[1].file_name, "");
    assert_bytes(arguments.files[1].type, "text/css");
    assert_int_equal(arguments.files[1].content.size, 0);
}

static void many_files_keep_their_order(void **state UNUSED)
{
    static const char one[] = PART("name=f; filename=x", "");
    struct builder body = {0};
    for (int i = 0; i < PARTS; i++)
        builder_add(&body, one, sizeof one - 1);
    size_t size = body.size;
    builder_add_text(&body, "--b--");
    assert_int_equal(read_multipart(builder_bytes(&body)), FAULT_NONE);
    assert_int_equal(arguments.file_count, PARTS);
    for (size_t i = 1; i < PARTS; i++)
        assert_true(arguments.files[i].name.data > arguments.files[i - 1].name.data);
    body.size = size;
    builder_add(&body, one, sizeof one - 1);
    builder_add_text(&body, "--b--");
    assert_int_equal(read_multipart(builder_bytes(&body)), FAULT_ALIMIT);
    assert_string_equal(arguments.wrong, "limit_parts");
    builder_free(&body);
}

static void wrong_parts_are_named(void **state UNUSED)
{
    static const struct {
        struct bytes body;
        enum fault fault;
        const char *wrong;
    } cases[] = {
        {BYTES(PART("name=param", "[]") "--b--"), FAULT_AARG, "param"},
        {BYTES(PART("name=syncs", "{") "--b--"), FAULT_AJSON, "syncs"},
        {BYTES(PART("name=key", "\xFF") "--b--"), FAULT_AUTF8, "key"},
        {BYTES(PART("name=key", "a\0") "--b--"), FAULT_AARG, "key"},
        {BYTES(PART("name=key\r\nContent-Type: text/plain; charset=latin1", "a") "--b--"), FAULT_ATYPE,
         "key"},
        {BYTES(PART("name=key", "a")), FAULT_ABODY, "body"},
        {BYTES("x"), FAULT_AARG, "body"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_multipart(cases[i].body), cases[i].fault);
        assert_string_equal(arguments.wrong, cases[i].wrong);
    }
    assert_int_equal(read_source(NO_BYTES, BYTES("multipart/form-data"), BYTES("--b--")), FAULT_ATYPE);
    assert_string_equal(arguments.wrong, "body");
}

static void resources_have_other_arguments(void **state UNUSED)
{
    static const struct argument_limits limits = {.depth = 4, .nodes = 20, .parts = 3};
    struct argument_source source = {
        .is_resource = true,
        .query = BYTES("age=60"),
        .content_type = BYTES("application/json"),
        .body = BYTES("{\"c\":7,\"id\":7,\"v\":7,\"ct\":7,\"dt\":7,"
                      "\"items\":[{\"c\":\"A\",\"j\":{\"a\":1}}],\"age\":7}"),
    };
    assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), FAULT_NONE);
    assert_null(arguments.param);
    assert_null(arguments.syncs);
    assert_bytes(arguments.age, "60");
    assert_false(arguments.items->first->is_shallow);
    assert_true(json_member(arguments.items->first, "j")->is_shallow);
    source = (struct argument_source){.is_resource = true, .query = BYTES("items=[{\"c\":\"A\",\"j\":[1]}]")};
    assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), FAULT_NONE);
    assert_true(json_member(arguments.items->first, "j")->is_shallow);
    source.is_resource = false;
    assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), FAULT_AARG);
    assert_string_equal(arguments.wrong, "items");
    source = (struct argument_source){.is_resource = true, .query = BYTES("param={}")};
    assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), FAULT_AARG);
    source = (struct argument_source){.is_manager = true, .query = BYTES("syncs=[]")};
    assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), FAULT_AARG);
    assert_string_equal(problem.what, "Unknown argument \"syncs\"; known are param and key.");
}

static void too_many_arguments_are_refused(void **state UNUSED)
{
    static const char *const pairs[] = {"key=b", "lang=fr", "key", "", "param=%7b%7d"};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct builder text = {0};
        for (int count = 0; count < PARTS - 1; count++) {
            builder_add(&text, pairs[i], strlen(pairs[i]));
            builder_add_text(&text, "&");
        }
        struct bytes form_type = BYTES("application/x-www-form-urlencoded");
        assert_int_equal(read_query(builder_bytes(&text)), FAULT_NONE);
        assert_int_equal(read_source(BYTES("lang"), form_type, builder_bytes(&text)), FAULT_NONE);
        assert_int_equal(read_source(BYTES("lang&key"), form_type, builder_bytes(&text)), FAULT_ALIMIT);
        builder_add_text(&text, "lang&key");
        assert_int_equal(read_form(builder_bytes(&text)), FAULT_ALIMIT);
        assert_int_equal(read_query(builder_bytes(&text)), FAULT_ALIMIT);
        assert_string_equal(arguments.wrong, "limit_parts");
        builder_free(&text);
    }
}

static void paths_are_joined_as_they_are_split(void **state UNUSED)
{
    const struct bytes pieces[] = {BYTES("lab"), BYTES("a/b c"), BYTES("\xC3\xA9%\n-._~")};
    const char *path = path_join(arena, pieces, COUNT_OF(pieces));
    assert_string_equal(path, "/lab/a%2Fb%20c/%C3%A9%25%0A-._~");
    struct bytes again[3];
    size_t count;
    assert_int_equal(path_split(arena, bytes_of(path), again, COUNT_OF(again), &count), FAULT_NONE);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        assert_true(bytes_equal(again[i], pieces[i]));
}

static void limits_hold_alike_on_each_path(void **state UNUSED)
{
    static const struct argument_limits limits = {.depth = 4, .nodes = 10, .parts = 1};
    static const struct {
        struct bytes query, body;
        enum fault fault;
    } cases[] = {
        {BYTES("param={\"a\":[[1]]}"), BYTES("{\"param\":{\"a\":[[1]]}}"), FAULT_NONE},
        {BYTES("param={\"a\":[[[]]]}"), BYTES("{\"param\":{\"a\":[[[]]]}}"), FAULT_ALIMIT},
        {BYTES("syncs=[1,2,3,4,5,6,7,8]"), BYTES("{\"syncs\":[1,2,3,4,5,6,7,8]}"), FAULT_NONE},
        {BYTES("syncs=[1,2,3,4,5,6,7,8,9,10]"), BYTES("{\"syncs\":[1,2,3,4,5,6,7,8,9]}"), FAULT_ALIMIT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct argument_source source = {.query = cases[i].query};
        assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), cases[i].fault);
        source = (struct argument_source){.content_type = BYTES("application/json"), .body = cases[i].body};
        assert_int_equal(arguments_read(arena, &source, &limits, &arguments, &problem), cases[i].fault);
    }
}

static void paths_are_split_and_decoded(void **state UNUSED)
{
    enum { MOST = 4 };
    static const struct {
        struct bytes uri;
        enum fault fault;
        size_t count;
        const char *pieces[MOST];
    } cases[] = {
        {BYTES("/"), FAULT_NONE, 0, {NULL}},
        {BYTES("/?a=/b"), FAULT_NONE, 0, {NULL}},
        {BYTES("/ping"), FAULT_NONE, 1, {"ping"}},
        {BYTES("/ping?x#y//%zz"), FAULT_NONE, 1, {"ping"}},
        {BYTES("/a/op/Get/x"), FAULT_NONE, 4, {"a", "op", "Get", "x"}},
        {BYTES("/a%2Fb/c+d/%C3%a9/..."), FAULT_NONE, 4, {"a/b", "c+d", "\xC3\xA9", "..."}},
        {BYTES("/%3F%23%25"), FAULT_NONE, 1, {"?#%"}},
        {BYTES("/a/b/c/d/e"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/b/c/d/"), FAULT_NPATH, 0, {NULL}},
        {BYTES(""), FAULT_NPATH, 0, {NULL}},
        {{NULL, 0}, FAULT_NPATH, 0, {NULL}},
        {BYTES("?"), FAULT_NPATH, 0, {NULL}},
        {BYTES("ping"), FAULT_NPATH, 0, {NULL}},
        {BYTES("http://host/ping"), FAULT_NPATH, 0, {NULL}},
        {BYTES("//"), FAULT_NPATH, 0, {NULL}},
        {BYTES("//a"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a//b"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/?"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/."), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/../b"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/%2e%2E/b"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a/%2e"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a#b"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a#?b"), FAULT_NPATH, 0, {NULL}},
        {BYTES("/a%"), FAULT_AARG, 0, {NULL}},
        {BYTES("/a%4"), FAULT_AARG, 0, {NULL}},
        {BYTES("/a%4/1"), FAULT_AARG, 0, {NULL}},
        {BYTES("/a%xy"), FAULT_AARG, 0, {NULL}},
        {BYTES("/a%00"), FAULT_AARG, 0, {NULL}},
        {BYTES("/a\0b"), FAULT_AARG, 0, {NULL}},
        {BYTES("/%C0%AF"), FAULT_AUTF8, 0, {NULL}},
        {BYTES("/\xFF"), FAULT_AUTF8, 0, {NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes pieces[MOST];
        size_t count;
        enum fault fault = path_split(arena, exact(cases[i].uri), pieces, MOST, &count);
        if (fault != cases[i].fault)
            fail_msg("%.*s: %s", (int)cases[i].uri.size, cases[i].uri.data, fault_code(fault));
        if (fault != FAULT_NONE)
            continue;
        assert_int_equal(count, cases[i].count);
        for (size_t k = 0; k < count; k++)
            assert_bytes(pieces[k], cases[i].pieces[k]);
    }
}

#define ONE "{\"c\":\"D\",\"id\":\"a\",\"v\":261121000000001,\"ct\":0,\"dt\":0}"

/* A list of synchronisations that stands first, and is plain, has no tree; all else is as if it had one. */
static void synchronisations_that_stand_first_have_no_tree(void **state UNUSED)
{
    static const struct {
        struct bytes body;
        enum fault fault;
        bool has_tree;
        const char *lang, *wrong;
    } cases[] = {
        {BYTES("{\"syncs\":[" ONE "," ONE "]}"), FAULT_NONE, false, NULL, NULL},
        {BYTES("{\"syncs\":[" ONE "],\"lang\":\"fr\",\"param\":{}}"), FAULT_NONE, false, "fr", NULL},
        {BYTES("{\"syncs\":[" ONE "],\"lang\":\"fr\",\"x\":[1]}"), FAULT_AARG, false, "fr", "x"},
        {BYTES("{\"lang\":\"fr\",\"syncs\":[" ONE "]}"), FAULT_NONE, true, "fr", NULL},
        {BYTES("{\"syncs\":[{\"id\":\"a\",\"c\":\"D\"}],\"lang\":\"fr\"}"), FAULT_NONE, true, "fr", NULL},
        {BYTES("{\"syncs\":[" ONE "],\"lang\":1}"), FAULT_AARG, false, NULL, "lang"},
        {BYTES("{\"syncs\":[" ONE "],\"lang\"}"), FAULT_AJSON, true, NULL, "body"},
        {BYTES("{\"syncs\":[" ONE "],}"), FAULT_AJSON, true, NULL, "body"},
        {BYTES("{\"syncs\":[" ONE "],\"x\":1,\"x\":2}"), FAULT_AJSON, true, NULL, "body"},
        {BYTES("{\"syncs\":[" ONE "],\"s\\u0079ncs\":[]}"), FAULT_AJSON, true, NULL, "body"},
        {BYTES("{\"syncs\":[" ONE "],\"x\":\"\xFF\"}"), FAULT_AUTF8, true, NULL, "body"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(read_json(cases[i].body), cases[i].fault);
        assert_int_equal(arguments.client_copies == NULL, cases[i].has_tree);
        assert_int_equal(arguments.syncs != NULL, cases[i].has_tree && !cases[i].fault);
        assert_true(bytes_equal(arguments.lang, bytes_of(cases[i].lang ? cases[i].lang : "")));
        if (cases[i].wrong)
            assert_string_equal(arguments.wrong, cases[i].wrong);
    }
    /* The query string's come first. */
    assert_int_equal(read_source(BYTES("syncs=[]"), BYTES("application/json"), cases[0].body), FAULT_NONE);
    assert_null(arguments.client_copies);
    assert_int_equal(arguments.syncs->count, 0);
}

static void queries_stand_between_two_signs(void **state UNUSED)
{
    static const struct {
        struct bytes uri;
        const char *query;
    } cases[] = {
        {BYTES("/a/op/Get"), ""},
        {BYTES("/a/op/Get?"), ""},
        {BYTES("/a?b=c&d=?e"), "b=c&d=?e"},
        {BYTES("/a?b=%23&c#d=e"), "b=%23&c"},
        {BYTES("/a?#b"), ""},
        {BYTES("?b"), "b"},
        {BYTES(""), ""},
        {{NULL, 0}, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(bytes_equal(path_query(exact(cases[i].uri)), bytes_of(cases[i].query)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(nothing_is_fine),
        ARENA_TEST(all_arguments_come_by_each_path),
        ARENA_TEST(the_first_of_repeated_arguments_wins),
        ARENA_TEST(names_are_decoded),
        ARENA_TEST(wrong_arguments_are_named),
        ARENA_TEST(types_of_content_are_checked),
        ARENA_TEST(contents_of_items_stay_shallow),
        ARENA_TEST(limits_hold_alike_on_each_path),
        ARENA_TEST(multipart_forms_bear_arguments_and_files),
        ARENA_TEST(many_files_keep_their_order),
        ARENA_TEST(wrong_parts_are_named),
        ARENA_TEST(resources_have_other_arguments),
        ARENA_TEST(too_many_arguments_are_refused),
        ARENA_TEST(paths_are_joined_as_they_are_split),
        ARENA_TEST(paths_are_split_and_decoded),
        ARENA_TEST(synchronisations_that_stand_first_have_no_tree),
        ARENA_TEST(queries_stand_between_two_signs),
    };
    return cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
}
