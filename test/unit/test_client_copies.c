/* client_copies: the quick road takes what programs write, and says what the tree says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arena_fixture.h"
#include "edge/json/json.h"
#include "operation/sync/client_copies.h"
#include "operation/reply.h"

static const struct settings settings = {.limit_syncs = 100, .limit_name_bytes = 40};
static struct reply reply;

/* Where a byte too many is seen by the address sanitizer. */
static struct bytes exact(struct bytes text)
{
    char *copy = arena_alloc(arena, text.size ? text.size : 1);
    memcpy(copy, text.data, text.size);
    return (struct bytes){copy, text.size};
}

static enum fault read_tree(struct bytes body, struct client_copies **client_copies_r)
{
    struct call *call = ARENA_NEW(arena, struct call);
    const struct reader reader = {&settings, call, &reply};
    const struct json_limits limits = {.depth = 32, .tree_depth = 6};
    struct json *root;
    struct json_problem problem;
    call->arena = arena;
    reply = (struct reply){0};
    enum fault fault = json_read(arena, body, &limits, &root, &problem);
    if (fault)
        return fault;
    const struct json *syncs = json_member(root, "syncs");
    return syncs && syncs->kind == JSON_ARRAY ? client_copies_read(&reader, syncs, client_copies_r)
                                              : FAULT_AARG;
}

static struct client_copies *read_plain(struct bytes body)
{
    struct bytes others;
    struct client_copies *client_copies = client_copies_read_fast(arena, body, &others);
    return client_copies && !others.size ? client_copies : NULL;
}

static enum fault check(const struct client_copies *client_copies)
{
    struct call *call = ARENA_NEW(arena, struct call);
    const struct reader reader = {&settings, call, &reply};
    call->arena = arena;
    reply = (struct reply){0};
    return client_copies_check(&reader, client_copies);
}

/* What the quick road takes, the tree takes too, and finds the same, or refuses it for the same limit. */
static bool paths_agree(struct bytes body)
{
    struct client_copies *tree = NULL, *plain = read_plain(body);
    if (!plain)
        return true;
    enum fault fault = read_tree(body, &tree);
    if (fault != check(plain) || (fault && fault != FAULT_ALIMIT))
        return false;
    if (fault)
        return true;
    if (tree->count != plain->count || memcmp(tree->held, plain->held, tree->count * sizeof *tree->held) != 0)
        return false;
    for (size_t i = 0; i < tree->count; i++)
        if (!bytes_equal(tree->names[i].class, plain->names[i].class) ||
            !bytes_equal(tree->names[i].id, plain->names[i].id))
            return false;
    return true;
}

#define ONE   "{\"c\":\"Doc\",\"id\":\"a\",\"v\":261121000000001,\"ct\":261121000000000,\"dt\":0}"
#define WHOLE "{\"syncs\":[" ONE "]}"

static void what_programs_write_is_taken(void **state UNUSED)
{
    static const struct {
        const char *body;
        size_t count;
    } cases[] = {
        {WHOLE, 1},
        {"{\"syncs\":[" ONE "," ONE "," ONE "]}", 3},
        {" { \"syncs\" : [ " ONE " , \n\t" ONE " ] }\r\n ", 2},
        {"{\"syncs\": [{\"c\": \"Doc\", \"id\": \"a\", \"v\": 261121000000001, \"ct\": 261121000000000, "
         "\"dt\": 0}]}",
         1},
        {"{\"syncs\":[{\"c\":\"D\",\"id\":\"\xC3\xA9'/{}[]\",\"v\":0,\"ct\":0,\"dt\":991231235959999}]}", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes body = exact(bytes_of(cases[i].body));
        const struct client_copies *client_copies = read_plain(body);
        assert_non_null(client_copies);
        assert_int_equal(client_copies->count, cases[i].count);
        assert_true(paths_agree(body));
    }
    const struct client_copies *one = read_plain(BYTES(WHOLE));
    assert_true(bytes_equal(one->names[0].class, BYTES("Doc")) && bytes_equal(one->names[0].id, BYTES("a")));
    assert_int_equal(one->held[0].version, 261121000000001);
    assert_int_equal(one->held[0].ctime, 261121000000000);
    assert_int_equal(one->held[0].dtime, 0);
}

static void what_is_unusual_is_left_to_the_tree(void **state UNUSED)
{
    static const struct bytes cases[] = {
        BYTES(""),
        BYTES(" "),
        BYTES("}"),
        BYTES("{}"),
        BYTES("{\"syncs\":[]}"),
        BYTES("{\"syncs\":{}}"),
        BYTES("{\"syncs\":[}"),
        BYTES("{\"syncs\":[" ONE "}"),
        BYTES("{\"syncs\":[" ONE "]"),
        BYTES("{\"syncs\":[" ONE ",]}"),
        BYTES("{\"syncs\":[" ONE "]}}"),
        BYTES("{\"syncs\":[" ONE "]} x}"),
        BYTES("{\"syncs\":[" ONE "],\"param\":{}}"),
        BYTES("{\"param\":{},\"syncs\":[" ONE "]}"),
        BYTES("{\"syncs\":[" ONE "]}\1"),
        BYTES("\xEF\xBB\xBF" WHOLE),
        BYTES("{\"syncs\":[{\"id\":\"a\",\"c\":\"D\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0,\"x\":1}]}"),
        BYTES("{\"syncs\":[{\"c\":\"d\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\\n\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\n\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"\xFF\",\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":1,\"v\":0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":-0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":00,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0.0,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":5,\"ct\":0,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":null,\"dt\":0}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":991231235960000}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":2611210000000001}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":26112100000000}]}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":261121000000001}"),
        BYTES("{\"syncs\":[{\"c\":\"D\",\"id\":\"a}"),
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (read_plain(exact(cases[i])))
            fail_msg("taken: %.*s", (int)cases[i].size, cases[i].data);
}

static void what_follows_is_left(void **state UNUSED)
{
    static const struct {
        const char *body, *others;
    } cases[] = {
        {WHOLE, ""},
        {"{\"syncs\":[" ONE "],\"param\":{}}", "\"param\":{}}"},
        {"{\"syncs\":[" ONE "] , \"lang\" : \"fr\" } ", "\"lang\" : \"fr\" }"},
        {"{\"syncs\":[" ONE "],\"x\"}", "\"x\"}"},
        {"{\"syncs\":[" ONE "],\"}", "\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes others;
        assert_non_null(client_copies_read_fast(arena, exact(bytes_of(cases[i].body)), &others));
        assert_true(bytes_equal(others, bytes_of(cases[i].others)));
    }
    static const char *const wrong[] = {"{\"syncs\":[" ONE "],}", "{\"syncs\":[" ONE "],1}",
                                        "{\"syncs\":[" ONE "]\"x\":1}", "{\"syncs\":[" ONE "]}}"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes others;
        assert_null(client_copies_read_fast(arena, exact(bytes_of(wrong[i])), &others));
    }
}

static void every_beginning_is_refused(void **state UNUSED)
{
    static const char body[] = "{\"syncs\":[" ONE "," ONE "]}";
    for (size_t size = 0; size < sizeof body - 1; size++)
        assert_null(read_plain(exact((struct bytes){body, size})));
}

static void limits_are_named_alike(void **state UNUSED)
{
    struct builder body = {0};
    builder_add_text(&body, "{\"syncs\":[" ONE);
    for (int i = 0; i < 100; i++)
        builder_add_text(&body, "," ONE);
    builder_add_text(&body, "]}");
    struct client_copies *plain = read_plain(builder_bytes(&body));
    assert_non_null(plain);
    assert_int_equal(check(plain), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_syncs");
    assert_string_equal(reply.arguments[2], "101");
    builder_free(&body);
    plain = read_plain(BYTES("{\"syncs\":[" ONE
                             ",{\"c\":\"D\",\"id\":\"12345678901234567890123456789012345678901\","
                             "\"v\":0,\"ct\":0,\"dt\":0}]}"));
    assert_non_null(plain);
    assert_int_equal(check(plain), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_name_bytes");
}

static uint32_t next_random(void)
{
    static uint64_t state = 20261121;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Bodies put together of what may stand there, most of them right, and then spoilt at some byte. */
static void both_paths_say_the_same(void **state UNUSED)
{
    static const char *const classes[] = {"Doc", "A", "Doc2", "doc", "", "Abcdefghijklmnopq", "D\\u006f"};
    static const char *const ids[] = {
        "a", "1", "\xC3\xA9t\xC3\xA9", "a\\\"", "", "\xFF", "0123456789012345678901234567890123456789x"};
    static const char *const segment[] = {"261121000000000", "0", "991231235959999", "1", "-1", "1e3", "null",
                                          "991231235960000"};
    static const char noise[] = "\"{}[]:,0 \\\n9aD\0\xFF";
    size_t taken = 0;
    for (int round = 0; round < 20000; round++) {
        struct builder body = {0};
        unsigned risk = round % 2 ? 64 : 3; /* of how many choices one may be a bad one */
#define CHOOSE(all) (all)[next_random() % risk ? next_random() % 2 : next_random() % COUNT_OF(all)]
        builder_add_text(&body, "{\"syncs\":[");
        for (uint32_t i = 0, count = 1 + next_random() % 4; i < count; i++)
            builder_printf(&body, "%s{\"c\":\"%s\",\"id\":\"%s\",\"v\":%s,%s\"ct\":%s,\"dt\":%s}",
                           i ? "," : "", CHOOSE(classes), CHOOSE(ids), CHOOSE(segment),
                           next_random() % 2 ? "" : " ", CHOOSE(segment), CHOOSE(segment));
        builder_add_text(&body, "]}");
#undef CHOOSE
        if (round % 4 == 0)
            body.data[next_random() % body.size] = noise[next_random() % (sizeof noise - 1)];
        struct bytes text = exact(builder_bytes(&body));
        taken += read_plain(text) != NULL;
        if (!paths_agree(text))
            fail_msg("not alike: %.*s", (int)text.size, text.data);
        builder_free(&body);
        arena_reset(arena);
    }
    assert_in_range(taken, 4000, 19000); /* neither road is forgotten */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(what_programs_write_is_taken), ARENA_TEST(what_is_unusual_is_left_to_the_tree),
        ARENA_TEST(what_follows_is_left),         ARENA_TEST(every_beginning_is_refused),
        ARENA_TEST(limits_are_named_alike),       ARENA_TEST(both_paths_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
