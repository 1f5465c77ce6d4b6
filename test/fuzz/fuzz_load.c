/* fuzz_load: what stampctl load reads: a line of documents, and the file that says how far it has come.  What
 * a line gives is a document that is read as the same; a bookmark written is read as the same. */
#include "fuzz.h"

#include "control/documents/bookmark.h"
#include "control/documents/line.h"
#include "edge/json/json.h"

const char fuzz_target[] = "load";

static void check_document(struct arena *arena, struct bytes text, const struct line_document *document)
{
    static const struct json_limits limits = {.depth = 129, .tree_depth = 2};
    struct json *root;
    struct json_problem problem;
    struct builder again = {0};
    struct line_document same;
    const char *why;
    enum fault fault = json_read(arena, text, &limits, &root, &problem);
    assert(fault == FAULT_NONE && root->kind == JSON_OBJECT);
    const struct json *items = json_member(root, "items");
    assert(root->count == (items ? 3 : 2) && (!items || items->kind == JSON_ARRAY));
    assert(bytes_equal(json_member(root, "c")->value, document->class));
    assert(bytes_equal(json_member(root, "id")->value, document->id));
    bool is_good = line_read(arena, text, &again, &same, &why);
    assert(is_good && same.name == document->name && bytes_equal(builder_bytes(&again), text));
    builder_free(&again);
}

static void check_line(struct arena *arena, struct bytes text)
{
    struct builder built = {0};
    struct line_document document;
    const char *why = NULL;
    builder_add_text(&built, "[");
    if (line_read(arena, text, &built, &document, &why)) {
        assert(!line_is_empty(text));
        check_document(arena, (struct bytes){built.data + 1, built.size - 1}, &document);
    } else {
        assert(why && *why && built.size == 1);
    }
    builder_free(&built);
}

static void check_bookmark(struct arena *arena, struct bytes text)
{
    struct bookmark bookmark, again;
    if (!bookmark_parse(arena, text, &bookmark))
        return;
    assert(bookmark.line >= 0 && bookmark.offset >= 0);
    bool is_good = bookmark_parse(arena, bookmark_compose(arena, &bookmark), &again);
    assert(is_good && again.line == bookmark.line && again.offset == bookmark.offset);
    assert(strcmp(again.ns, bookmark.ns) == 0 && strcmp(again.file, bookmark.file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data, size};
    check_line(arena, text);
    check_bookmark(arena, text);
    arena_destroy(arena);
    return 0;
}
