/* multipart: forms as clients send them, and what is no form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "arena_fixture.h"
#include "base/builder.h"
#include "http/multipart.h"

enum { PARTS_MAX = 8 };

static struct part parts[PARTS_MAX];
static size_t part_count;
static const char *what;

/* A copy of exactly that size, so that a byte read behind it is seen by the sanitizers. */
static struct bytes exact(struct bytes text)
{
    char *copy = arena_alloc(arena, text.size);
    if (text.size)
        memcpy(copy, text.data, text.size);
    return (struct bytes){copy, text.size};
}

static enum fault read_all(struct bytes parameters, struct bytes body)
{
    struct multipart multipart;
    bool is_there = true;
    part_count = 0;
    what = NULL;
    enum fault fault = multipart_open(arena, exact(parameters), exact(body), &multipart, &what);
    while (!fault && is_there) {
        assert_true(part_count < PARTS_MAX);
        fault = multipart_next(&multipart, &parts[part_count], &is_there, &what);
        part_count += is_there;
    }
    assert_true(!fault == !what);
    return fault;
}

/* The body with boundary "b". */
static enum fault read_body(struct bytes body)
{
    return read_all(BYTES(" boundary=b"), body);
}

static void assert_text(struct bytes text, const char *expected)
{
    if (!expected) {
        assert_null(text.data);
        return;
    }
    assert_non_null(text.data);
    if (!bytes_equal(text, bytes_of(expected)))
        fail_msg("%.*s, expected %s", (int)text.size, text.data, expected);
}

static void assert_part(const struct part *part, const char *name, const char *file_name, const char *type,
                        const char *content)
{
    assert_text(part->name, name);
    assert_text(part->file_name, file_name);
    assert_text(part->type, type);
    assert_text(part->content, content);
}

/* A part whose head is `head`. */
static enum fault read_head(const char *head)
{
    char body[512];
    int size = snprintf(body, sizeof body, "--b\r\n%s\r\n\r\nx\r\n--b--\r\n", head);
    return read_body((struct bytes){body, (size_t)size});
}

static void forms_are_read(void **state UNUSED)
{
    /* as Firefox sends it */
    assert_int_equal(read_all(BYTES(" boundary=---------------------------9051914041544843365972754266"),
                              BYTES("-----------------------------9051914041544843365972754266\r\n"
                                    "Content-Disposition: form-data; name=\"param\"\r\n\r\n{\"a\":1}\r\n"
                                    "-----------------------------9051914041544843365972754266\r\n"
                                    "Content-Disposition: form-data; name=\"photo\"; filename=\"a.txt\"\r\n"
                                    "Content-Type: text/plain\r\n\r\nline\r\n--line\r\n\r\n"
                                    "-----------------------------9051914041544843365972754266--\r\n")),
                     FAULT_NONE);
    assert_int_equal(part_count, 2);
    assert_part(&parts[0], "param", NULL, NULL, "{\"a\":1}");
    assert_part(&parts[1], "photo", "a.txt", "text/plain", "line\r\n--line\r\n");
}

static void forms_may_be_empty_or_short(void **state UNUSED)
{
    assert_int_equal(read_body(BYTES("--b--")), FAULT_NONE);
    assert_int_equal(part_count, 0);
    assert_int_equal(read_body(BYTES("--b-- \t\r\n")), FAULT_NONE);
    assert_int_equal(read_body(BYTES("--b \t\r\nContent-Disposition: form-data; name=\"\"\r\n\r\n\r\n--b--")),
                     FAULT_NONE);
    assert_int_equal(part_count, 1);
    assert_part(&parts[0], "", NULL, NULL, "");
}

static void contents_are_any_bytes(void **state UNUSED)
{
    static const char body[] = "--b\r\nContent-Disposition: form-data; name=x; filename=\"\"\r\n\r\n"
                               "\r\n-\r\n--\r\n--a\0\xFF\r\r\n--b--";
    assert_int_equal(read_body((struct bytes){body, sizeof body - 1}), FAULT_NONE);
    assert_int_equal(part_count, 1);
    assert_text(parts[0].file_name, "");
    assert_true(bytes_equal(parts[0].content, BYTES("\r\n-\r\n--\r\n--a\0\xFF\r")));
}

static void names_are_read_as_clients_write_them(void **state UNUSED)
{
    static const struct {
        const char *head, *name, *file_name;
    } cases[] = {
        {"content-disposition:form-data;name=a", "a", NULL},
        {"CONTENT-DISPOSITION: \tForm-Data ; NAME=\"a\" ; FileName=\"b\" \t", "a", "b"},
        {"Content-Disposition: form-data; name=\"a\"; filename=\"x\\\"y\\\\z\"", "a", "x\"y\\z"},
        {"Content-Disposition: form-data; name=\"a\"; filename=\"C:\\dir\\f.txt\"", "a", "C:\\dir\\f.txt"},
        {"Content-Disposition: form-data; name=\"a%22b\"; filename=\"\xC3\xA9; x=\"", "a%22b",
         "\xC3\xA9; x="},
        {"X-Other: \xC3\xA9\r\nContent-Disposition: form-data; size=1; name=a\r\nContent-Length: 99", "a",
         NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (read_head(cases[i].head) != FAULT_NONE)
            fail_msg("%s: %s", cases[i].head, what);
        assert_part(&parts[0], cases[i].name, cases[i].file_name, NULL, "x");
    }
}

static void encodings_that_change_nothing_are_taken(void **state UNUSED)
{
    static const char *const encodings[] = {"binary", "8bit", "7BIT"};
    char head[128];
    for (size_t i = 0; i < COUNT_OF(encodings); i++) {
        snprintf(head, sizeof head, "Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: %s",
                 encodings[i]);
        assert_int_equal(read_head(head), FAULT_NONE);
    }
    assert_int_equal(read_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64"),
                     FAULT_ATYPE);
}

static void heads_are_refused(void **state UNUSED)
{
    static const struct {
        const char *head;
        enum fault fault;
    } cases[] = {
        {"Content-Type: text/plain", FAULT_AARG},
        {"Content-Disposition: form-data", FAULT_AARG},
        {"Content-Disposition: form-data; filename=\"a\"", FAULT_AARG},
        {"Content-Disposition: attachment; name=\"a\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\"; name=\"b\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\"; filename=x; filename=y", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"a\"",
         FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\"; filename*=UTF-8''x", FAULT_AARG},
        {"Content-Disposition: form-data; name*=UTF-8''x", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\\\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\"x", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\";", FAULT_AARG},
        {"Content-Disposition: form-data, name=\"a\"", FAULT_AARG},
        {"Content-Disposition: form-data; name = \"a\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\xFF\"", FAULT_AUTF8},
        {"Content-Disposition: form-data; name=\"a\"; filename=\"\xED\xA0\x80\"", FAULT_AUTF8},
        {"Content-Disposition: form-data; name=\"a\x01\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\nb\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=\"a\rb\"", FAULT_AARG},
        {"Content-Disposition: form-data;\r\n name=\"a\"", FAULT_AARG},
        {"Content-Disposition : form-data; name=\"a\"", FAULT_AARG},
        {"no field\r\nContent-Disposition: form-data; name=\"a\"", FAULT_AARG},
        {": x\r\nContent-Disposition: form-data; name=\"a\"", FAULT_AARG},
        {"Content-Disposition: form-data; name=a\r\nContent-Type:", FAULT_AARG},
        {"Content-Disposition: form-data; name=a\r\nContent-Type: a/b\r\nContent-Type: a/b", FAULT_AARG},
        {"Content-Disposition: form-data; name=a\r\nContent-Type: a/\xC3\xA9", FAULT_AARG},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (read_head(cases[i].head) != cases[i].fault)
            fail_msg("%s: %s", cases[i].head, what ? what : "taken");
}

static void bodies_are_refused(void **state UNUSED)
{
    static const struct {
        struct bytes body;
        enum fault fault;
    } cases[] = {
        {BYTES(""), FAULT_AARG},
        {BYTES("--"), FAULT_AARG},
        {BYTES("\r\n--b--"), FAULT_AARG},
        {BYTES("preamble\r\n--b--"), FAULT_AARG},
        {BYTES("--B--"), FAULT_AARG},
        {BYTES("--b"), FAULT_ABODY},
        {BYTES("--b-"), FAULT_ABODY},
        {BYTES("--b\r"), FAULT_ABODY},
        {BYTES("--b\r\n"), FAULT_ABODY},
        {BYTES("--bb\r\n"), FAULT_AARG},
        {BYTES("--b\n"), FAULT_AARG},
        {BYTES("--b--x"), FAULT_AARG},
        {BYTES("--b--\r\nepilogue"), FAULT_AARG},
        {BYTES("--b--\r\n\r\n"), FAULT_AARG},
        {BYTES("--b\r\n\r\nx\r\n--b--"), FAULT_AARG},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\n--b--"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n--b--"), FAULT_AARG},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b"), FAULT_ABODY},
        {BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--by\r\n--b--"), FAULT_AARG},
        {BYTES("--b\r\nContent-Disposition: form-data; name=\"\0\"\r\n\r\nx\r\n--b--"), FAULT_AARG},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum fault fault = read_body(cases[i].body);
        if (fault != cases[i].fault)
            fail_msg("%.*s: %s %s", (int)cases[i].body.size, cases[i].body.data, fault_code(fault),
                     what ? what : "");
    }
}

static void every_body_that_is_cut_is_refused(void **state UNUSED)
{
    struct bytes whole =
        BYTES("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\n"
              "Content-Disposition: form-data; name=\"f\"; filename=\"g\"\r\n\r\ny\r\n--b--");
    assert_int_equal(read_body(whole), FAULT_NONE);
    assert_int_equal(part_count, 2);
    for (size_t size = 0; size < whole.size; size++)
        assert_int_not_equal(read_body((struct bytes){whole.data, size}), FAULT_NONE);
}

static void boundaries_are_checked(void **state UNUSED)
{
    static const char seventy[] = "1234567890123456789012345678901234567890123456789012345678901234567890";
    char text[128], body[128];
    snprintf(text, sizeof text, "boundary=%s", seventy);
    snprintf(body, sizeof body, "--%s--", seventy);
    assert_int_equal(read_all(bytes_of(text), bytes_of(body)), FAULT_NONE);
    snprintf(text, sizeof text, "boundary=%s1", seventy);
    snprintf(body, sizeof body, "--%s1--", seventy);
    assert_int_equal(read_all(bytes_of(text), bytes_of(body)), FAULT_ATYPE);

    assert_int_equal(read_all(BYTES(" charset=utf-8; boundary=\"a b:=?\" ; x=\"y;z\""), BYTES("--a b:=?--")),
                     FAULT_NONE);
    assert_int_equal(read_all(BYTES(" BOUNDARY=a'()+_,-./:=?"), BYTES("--a'()+_,-./:=?--")), FAULT_NONE);
    static const char *const wrong[] = {
        "",
        "charset=utf-8",
        "boundary=",
        "boundary",
        "boundary=\"\"",
        "boundary=\"b",
        "boundary=b;boundary=b",
        "boundary=\"b \"",
        "boundary=b\xC3\xA9",
        "boundary=b@",
        "boundary=\"b\\b\"",
        "boundary=b c",
        "boundary=b;;",
        "boundary=b; =x",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (read_all(bytes_of(wrong[i]), BYTES("--b--")) != FAULT_ATYPE)
            fail_msg("taken: %s", wrong[i]);
}

/* A head of `size` bytes, its empty line included. */
static enum fault read_head_of(size_t size)
{
    struct builder body = {0};
    builder_add_text(&body, "--b\r\nContent-Disposition: form-data; name=a\r\nX: ");
    while (body.size < strlen("--b\r\n") + size - strlen("\r\n\r\n"))
        builder_add_text(&body, "y");
    builder_add_text(&body, "\r\n\r\nx\r\n--b--");
    enum fault fault = read_body(builder_bytes(&body));
    builder_free(&body);
    return fault;
}

static void heads_are_bounded(void **state UNUSED)
{
    assert_int_equal(read_head_of(PART_HEAD_MAX), FAULT_NONE);
    assert_int_equal(read_head_of(PART_HEAD_MAX + 1), FAULT_ALIMIT);
    assert_int_equal(read_head_of(PART_HEAD_MAX + 2), FAULT_ALIMIT);
    assert_int_equal(read_head_of(100000), FAULT_ALIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(forms_may_be_empty_or_short),
        cmocka_unit_test(contents_are_any_bytes),
        cmocka_unit_test(names_are_read_as_clients_write_them),
        cmocka_unit_test(encodings_that_change_nothing_are_taken),
        cmocka_unit_test(heads_are_refused),
        cmocka_unit_test(bodies_are_refused),
        cmocka_unit_test(every_body_that_is_cut_is_refused),
        cmocka_unit_test(boundaries_are_checked),
        cmocka_unit_test(heads_are_bounded),
    };
    return cmocka_run_group_tests_name("multipart", tests, arena_set_up, arena_tear_down);
}
