/* test_resource_file: paths, media types, contents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "model/resource_file.h"

static void paths(void **state UNUSED)
{
    static const char *const good[] = {"a",   "a.css", "img/logo.png", ".well-known/x",
                                       "...", "..a",   "\xC3\xA9/a b", "a+b&c=d;e"};
    static const char *const wrong[] = {"",    "/",    "/a",   "a/",    "a//b", ".",
                                        "..",  "a/..", "../a", "a/./b", "a\\b", "a%b",
                                        "a?b", "a#b",  "a\nb", "a\x7f", "\xC3", "\xC0\xAE"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_null(resource_file_refuse_path(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_non_null(resource_file_refuse_path(bytes_of(wrong[i])));
    assert_non_null(resource_file_refuse_path(NO_BYTES));
    assert_non_null(resource_file_refuse_path(BYTES("a\0b")));
    char longest[RESOURCE_FILE_PATH_MOST + 2], deepest[64] = "";
    memset(longest, 'a', sizeof longest);
    assert_null(resource_file_refuse_path((struct bytes){longest, RESOURCE_FILE_PATH_MOST}));
    assert_non_null(resource_file_refuse_path((struct bytes){longest, RESOURCE_FILE_PATH_MOST + 1}));
    for (int i = 0; i < RESOURCE_FILE_DEPTH_MOST; i++)
        strcat(deepest, i ? "/d" : "d");
    assert_null(resource_file_refuse_path(bytes_of(deepest)));
    assert_non_null(resource_file_refuse_path(bytes_of(strcat(deepest, "/d"))));
}

static void pieces_of_addresses(void **state UNUSED)
{
    const struct bytes two[] = {BYTES("a"), BYTES("b.css")}, slash[] = {BYTES("a/b"), BYTES("c")},
                       dots[] = {BYTES("a"), BYTES("..")};
    const struct bytes empty[] = {BYTES("a"), BYTES("")}, nul[] = {BYTES("a\0b")};
    assert_true(bytes_equal(resource_file_join(arena, two, 2), BYTES("a/b.css")));
    assert_true(bytes_equal(resource_file_join(arena, two, 1), BYTES("a")));
    assert_null(resource_file_join(arena, slash, 2).data);
    assert_null(resource_file_join(arena, dots, 2).data);
    assert_null(resource_file_join(arena, empty, 2).data);
    assert_null(resource_file_join(arena, nul, 1).data);
    assert_null(resource_file_join(arena, two, 0).data);
}

static const char *type_of(const char *path)
{
    return resource_file_type(bytes_of(path));
}

static void types_of_extensions(void **state UNUSED)
{
    assert_string_equal(type_of("a.css"), "text/css; charset=utf-8");
    assert_string_equal(type_of("d.x/A.PNG"), "image/png");
    assert_string_equal(type_of("a.min.js"), "text/javascript; charset=utf-8");
    static const char *const none[] = {"a",     "a.",    ".css",  "d/.css",  "d.css/a", "a.html",
                                       "a.htm", "a.svg", "a.xml", "a.xhtml", "a.cs",    "a.csss"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_null(type_of(none[i]));
}

static void media_types(void **state UNUSED)
{
    static const char *const good[] = {"a/b",
                                       "text/html",
                                       "text/html; charset=utf-8",
                                       "text/plain;a=b; c=d",
                                       "application/vnd.a+xml",
                                       "image/svg+xml"};
    static const char *const wrong[] = {"",
                                        "/",
                                        "a",
                                        "a/",
                                        "/b",
                                        "A/b",
                                        "a/b/c",
                                        "a/b;",
                                        "a/b; ",
                                        "a/b;c",
                                        "a/b; c=",
                                        "a/b; =d",
                                        "a/b;c=d;",
                                        "a/b\r\nc:d",
                                        "a b/c",
                                        "a/b; c=\"d\"",
                                        "multipart/mixed",
                                        "a/\xC3\xA9"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_null(resource_file_refuse_type(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_non_null(resource_file_refuse_type(bytes_of(wrong[i])));
    assert_non_null(resource_file_refuse_type(BYTES("a/b\0")));
}

static void types_that_run(void **state UNUSED)
{
    static const char *const active[] = {
        "text/html", "text/html; charset=utf-8", "image/svg+xml", "application/xhtml+xml",
        "text/xml",  "application/xml",          "a/b+xml;c=d",   "text/xsl"};
    static const char *const passive[] = {
        "text/plain", "text/css", "image/png", "application/json", "application/xml-dtd", "text/javascript"};
    for (size_t i = 0; i < COUNT_OF(active); i++)
        assert_true(resource_file_is_active(bytes_of(active[i])));
    for (size_t i = 0; i < COUNT_OF(passive); i++)
        assert_false(resource_file_is_active(bytes_of(passive[i])));
}

static void policies(void **state UNUSED)
{
    assert_null(resource_file_refuse_policy(BYTES("")));
    assert_null(resource_file_refuse_policy(BYTES("default-src 'self'")));
    assert_non_null(resource_file_refuse_policy(BYTES("a\r\nb")));
    assert_non_null(resource_file_refuse_policy(BYTES("\xC3\xA9")));
    assert_non_null(resource_file_refuse_policy(BYTES("a\0")));
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void contents(void **state UNUSED)
{
    const struct resource_file file = {
        .type = BYTES("text/css"), .size = 7, .sha256 = BYTES(DIGEST), .policy = BYTES("a \"b\"")};
    struct resource_file read;
    assert_true(resource_file_read(arena, resource_file_write(arena, &file), &read));
    assert_true(bytes_equal(read.type, file.type) && bytes_equal(read.sha256, file.sha256));
    assert_true(bytes_equal(read.policy, file.policy) && read.size == 7);
    assert_true(
        resource_file_read(arena, BYTES("{\"type\":\"a/b\",\"size\":0,\"sha256\":\"" DIGEST "\"}"), &read));
    assert_null(read.policy.data);
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"type\":\"a\",\"size\":0,\"sha256\":\"" DIGEST "\"}",
                                        "{\"type\":\"a/b\",\"size\":-1,\"sha256\":\"" DIGEST "\"}",
                                        "{\"type\":\"a/b\",\"size\":1,\"sha256\":\"x\"}",
                                        "{\"type\":\"a/b\",\"size\":1,\"sha256\":\"" DIGEST
                                        "\",\"policy\":1}"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(resource_file_read(arena, bytes_of(wrong[i]), &read));
    assert_false(resource_file_read(arena, NO_BYTES, &read));
}

static void pieces(void **state UNUSED)
{
    unsigned char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t size = 0; size <= sizeof all; size++) {
        struct bytes plain = {(const char *)all, size};
        assert_true(bytes_equal(resource_file_decode(arena, resource_file_encode(arena, plain)), plain));
    }
    assert_true(bytes_equal(resource_file_decode(arena, BYTES("+/8=")), BYTES("\xFB\xFF")));
    assert_true(bytes_equal(resource_file_decode(arena, BYTES("")), BYTES("")) &&
                resource_file_decode(arena, BYTES("")).data);
    static const char *const wrong[] = {"a", "ab!d", "a b=", "abcde", "a=bc"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_null(resource_file_decode(arena, bytes_of(wrong[i])).data);
    assert_int_equal(resource_file_part_bytes(1048576), RESOURCE_FILE_PART_BYTES);
    assert_int_equal(resource_file_part_bytes(64), 48);
    assert_true(bytes_equal(resource_file_id(arena, BYTES("lab"), BYTES("a/b")), BYTES("lab/a/b")));
    assert_true(bytes_equal(resource_file_part_key(arena, 7), BYTES("0007")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(pieces_of_addresses),
        cmocka_unit_test(types_of_extensions),
        cmocka_unit_test(media_types),
        cmocka_unit_test(types_that_run),
        cmocka_unit_test(policies),
        cmocka_unit_test(contents),
        cmocka_unit_test(pieces),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
