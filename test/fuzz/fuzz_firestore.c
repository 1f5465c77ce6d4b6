/* fuzz_firestore: firestore_mapping_write and firestore_log_fragment: the first byte of the input chooses, l:
 * the rest is a block of a file of an export, else it is an entity.  What an entity gives is a line that
 * import reads, with contents that are JSON; fragments lie in the block, in order. */
#include "fuzz.h"

#include "control/archive/archive_line.h"
#include "control/foreign/firestore/firestore_log.h"
#include "control/foreign/firestore/firestore_mapping.h"
#include "edge/json/json.h"

const char fuzz_target[] = "firestore";

static void check_line(struct arena *arena, struct bytes line)
{
    static const struct json_limits limits = {.depth = 34, .tree_depth = 1};
    struct archive_document document;
    struct json *root;
    struct json_problem problem;
    const char *why;
    assert(line.size && line.data[line.size - 1] == '\n');
    line.size--;
    assert(!memchr(line.data, '\n', line.size));
    bool is_good = archive_line_read(arena, line, &document, &why);
    assert(is_good && !document.is_deleted && document.count == 1 && !document.items[0].is_raw);
    assert(document.header.id.size && bytes_is_utf8(document.header.id));
    assert(json_read(arena, document.items[0].content, &limits, &root, &problem) == FAULT_NONE);
    assert(root->kind == JSON_OBJECT);
}

static void check_entity(struct arena *arena, struct bytes entity)
{
    static const struct settings settings = {.limit_content_bytes = 1024,
                                             .limit_depth = 32,
                                             .limit_document_bytes = 4096,
                                             .limit_items = 100,
                                             .limit_name_bytes = 255};
    struct builder lines = {0};
    const char *why = NULL;
    struct firestore_mapping *mapping = firestore_mapping_read(
        arena, &settings, BYTES("{\"classes\":{\"c\":null,\"a/b\":\"Inner\"}}"), "Row", &why);
    assert(mapping);
    switch (firestore_mapping_write(mapping, arena, entity, 1, &lines, &why)) {
    case FOREIGN_DOCUMENT:
        assert(!why);
        check_line(arena, builder_bytes(&lines));
        break;
    case FOREIGN_LEFT_OUT:
        assert(!why && !lines.size);
        break;
    default:
        assert(why && *why && !lines.size);
    }
    builder_free(&lines);
}

static void check_block(struct bytes block)
{
    struct firestore_fragment fragment;
    const char *why = NULL;
    size_t at = 0;
    if (block.size > FIRESTORE_BLOCK)
        block.size = FIRESTORE_BLOCK;
    while (at < block.size) {
        if (!firestore_log_fragment(block, at, &fragment, &why)) {
            assert(why && *why);
            return;
        }
        if (fragment.type == FIRESTORE_PADDING)
            return;
        assert(fragment.text.data == block.data + at + FIRESTORE_HEAD && fragment.type <= FIRESTORE_LAST);
        at += FIRESTORE_HEAD + fragment.text.size;
        assert(at <= block.size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct bytes rest = {(const char *)data + 1, size ? size - 1 : 0};
    if (size && data[0] == 'l')
        check_block(rest);
    else if (size)
        check_entity(arena, rest);
    arena_destroy(arena);
    return 0;
}
