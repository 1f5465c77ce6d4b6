/* fuzz_answer: what stampctl reads of a server's answers.  The first byte is the status, what follows the
 * body: a problem becomes a decision with words; a page of classes, names or documents gives names that are
 * none of them empty, and lines that load reads. */
#include "fuzz.h"

#include "control/answer.h"
#include "control/documents/line.h"
#include "control/documents/page.h"

const char fuzz_target[] = "answer";

static void check_lines(struct arena *arena, struct bytes rest, size_t count)
{
    for (; count; count--) {
        const char *end = memchr(rest.data, '\n', rest.size);
        assert(end && !memchr(rest.data, '\r', (size_t)(end - rest.data)));
        struct builder document = {0};
        struct line_document name;
        const char *why;
        struct bytes line = {rest.data, (size_t)(end - rest.data)};
        bool is_good = line_read(arena, line, &document, &name, &why);
        /* whose items are no array, or that lies deeper than a line may, is told by load */
        assert(is_good || *why);
        assert(!is_good || (name.class.size && name.id.size));
        builder_free(&document);
        rest = (struct bytes){end + 1, rest.size - line.size - 1};
    }
    assert(!rest.size);
}

static void check_pages(struct arena *arena, struct bytes body)
{
    struct bytes *classes, cursor;
    struct page_name *names, name;
    size_t count, written;
    if (page_read_classes(arena, body, &classes, &count, &cursor)) {
        assert(!cursor.data || cursor.size);
        for (size_t i = 0; i < count; i++)
            assert(classes[i].size && bytes_is_utf8(classes[i]));
    }
    if (page_read_names(arena, body, &names, &count, &cursor)) {
        assert(!cursor.data || cursor.size);
        for (size_t i = 0; i < count; i++)
            assert(names[i].class.size && names[i].id.size);
    }
    for (count = 0; count < 4; count++) {
        struct builder lines = {0};
        if (page_read_documents(arena, body, count, &lines, &written)) {
            assert(written <= count);
            check_lines(arena, builder_bytes(&lines), written);
        } else {
            assert(!lines.size);
        }
        builder_free(&lines);
    }
    if (page_name_parse(body, &name))
        assert(name.class.size && name.id.size && name.class.size + 1 + name.id.size == body.size &&
               !memchr(name.class.data, '.', name.class.size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct http_result result = {.status = *data ? 100 + *data * 2 : 0,
                                 .problem = *data ? "" : "no answer",
                                 .body = {(const char *)data + 1, size - 1}};
    struct server_answer answer;
    enum answer_kind kind = answer_read(arena, &result, &answer);
    assert(kind <= ANSWER_HOPELESS && answer.code && answer.words);
    assert((kind == ANSWER_DONE) == (result.status >= 200 && result.status < 300));
    assert(kind == ANSWER_DONE || !result.status || (*answer.code && *answer.words));
    check_pages(arena, result.body);
    arena_destroy(arena);
    return 0;
}
