/* test_attachment: the content of an item P, and the bytes of attachments that a draft counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "model/document/attachment.h"
#include "model/document/draft.h"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void one_form(void **state UNUSED)
{
    static const char *const mimes[] = {"text/plain", "text/plain; charset=\"utf-8\"", "a/b\\c",
                                        "image/png.gc"};
    for (size_t i = 0; i < COUNT_OF(mimes); i++) {
        struct attachment read,
            written = {.mime = bytes_of(mimes[i]), .size = INT64_C(12345678901) * (int64_t)i};
        memset(written.digest.bytes, (int)(0xa0 + i), BLOB_DIGEST);
        struct bytes content = attachment_write(arena, &written);
        assert_true(attachment_read(arena, content, &read));
        assert_true(bytes_equal(read.mime, written.mime));
        assert_int_equal(read.size, written.size);
        assert_memory_equal(read.digest.bytes, written.digest.bytes, BLOB_DIGEST);
        assert_int_equal(attachment_size(content), written.size);
    }
}

static void other_contents(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "{\"mime\":\"a/b\",\"size\":1,\"sha\":\"00\"}",
        "{\"mime\":\"a/b\",\"size\":01,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"a/b\",\"size\":-1,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"a/b\",\"size\":,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"a/b\",\"size\":1234567890123456789012,\"sha\":\"" ZEROS "\"}",
        "{\"size\":1,\"mime\":\"a/b\",\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"ab\",\"size\":1,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":7,\"size\":1,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"a/b\",\"more\":1,\"size\":1,\"sha\":\"" ZEROS "\"}",
        "{\"mime\":\"a/b\",\"size\":1,\"sha\":\"" ZEROS "\"} ",
        "{\"mime\":\"a/b\",\"size\":1,\"sha\":\"A" ZEROS "\"}",
    };
    struct attachment read;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (attachment_read(arena, bytes_of(wrong[i]), &read))
            fail_msg("%s", wrong[i]);
    assert_int_equal(attachment_size(NO_BYTES), 0);
    assert_int_equal(attachment_size(BYTES("{}")), 0);
}

static void media_types(void **state UNUSED)
{
    static const char *const good[] = {"a/b", "text/plain", "application/vnd.x+json; v=1", "x/y.gc"};
    static const char *const wrong[] = {"",     "a",       "/",    "a/",      "/b",          "a /b",
                                        "a/ b", "a/b\r\n", "a/;x", "a/b\x7f", "a/b\xc3\xa9", "a/b\tc"};
    char long_one[ATTACHMENT_MIME_MOST + 1];
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(attachment_is_mime(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (attachment_is_mime(bytes_of(wrong[i])))
            fail_msg("%s", wrong[i]);
    memset(long_one, 'a', sizeof long_one);
    long_one[1] = '/';
    assert_true(attachment_is_mime((struct bytes){long_one, ATTACHMENT_MIME_MOST}));
    assert_false(attachment_is_mime((struct bytes){long_one, sizeof long_one}));
    assert_false(attachment_is_mime(NO_BYTES));
}

static void forms(void **state UNUSED)
{
    static const struct {
        const char *mime, *type;
        bool is_gzipped, is_encrypted;
    } cases[] = {{"text/plain", "text/plain", false, false},
                 {"text/plain.g", "text/plain", true, false},
                 {"text/plain.c", "text/plain", false, true},
                 {"text/plain.gc", "text/plain", true, true},
                 {"text/x.cg", "text/x.cg", false, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct attachment_form form = attachment_form(bytes_of(cases[i].mime));
        assert_true(bytes_equal(form.type, bytes_of(cases[i].type)));
        assert_int_equal(form.is_gzipped, cases[i].is_gzipped);
        assert_int_equal(form.is_encrypted, cases[i].is_encrypted);
    }
}

/* --- drafts --- */

static struct attachment file(int64_t size)
{
    return (struct attachment){.mime = BYTES("a/b"), .size = size, .digest = {{(unsigned char)size}}};
}

static struct document *committed(struct draft *draft, int64_t version, int64_t bytes)
{
    struct draft_rows rows;
    assert_int_equal(draft_attached(draft), bytes);
    draft_seal(draft, version, 0, &rows);
    assert_int_equal(rows.header.v2, bytes);
    struct document *after = draft_snapshot(draft, &rows);
    assert_int_equal(after->header.v2, bytes);
    document_release((struct document *)draft_base(draft));
    return after;
}

static void set(struct draft *draft, const char *key, int64_t size)
{
    struct attachment one = file(size);
    draft_set_attachment(draft, bytes_of(key), &one);
}

static void exact_sums(void **state UNUSED)
{
    int64_t version = INT64_C(240101000000000);
    struct header header = {.class = BYTES("Note"), .id = BYTES("a")};
    struct document *now = document_build(&header, NULL, 0);
    struct draft *draft = draft_open(arena, now);
    set(draft, "one", 10);
    set(draft, "two", 10); /* the same file counts twice */
    set(draft, "two", 10);
    draft_set_item(draft, BYTES("Main"), BYTES(""), false, BYTES("{\"size\":99}"));
    now = committed(draft, ++version, 20);

    draft = draft_open(arena, now);
    set(draft, "one", 7);
    draft_remove_item(draft, ATTACHMENT_CLASS, BYTES("two"));
    set(draft, "three", 100);
    draft_remove_item(draft, ATTACHMENT_CLASS, BYTES("three"));
    now = committed(draft, ++version, 7);

    draft = draft_open(arena, now); /* a new incarnation */
    draft_delete(draft);
    set(draft, "one", 5);
    now = committed(draft, ++version, 5);

    draft = draft_open(arena, now);
    draft_delete(draft);
    now = committed(draft, ++version, 0);
    document_release(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(one_form), ARENA_TEST(other_contents), ARENA_TEST(media_types),
        ARENA_TEST(forms),    ARENA_TEST(exact_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
