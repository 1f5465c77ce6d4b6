/* fuzz_path: path_split on any bytes.  Pieces written again, escaped, must be split into the same pieces. */
#include "fuzz.h"

#include "base/builder.h"
#include "http/path.h"

const char fuzz_target[] = "path";

enum { MOST = 6 };

static void escape(struct builder *builder, struct bytes piece)
{
    for (size_t i = 0; i < piece.size; i++)
        builder_printf(builder, "%%%02x", (unsigned char)piece.data[i]);
}

static void check_pieces(struct arena *arena, const struct bytes *pieces, size_t count)
{
    struct builder again = {0};
    for (size_t i = 0; i < count; i++) {
        assert(pieces[i].size && bytes_is_utf8(pieces[i]) && !memchr(pieces[i].data, '\0', pieces[i].size));
        assert(!bytes_equal(pieces[i], BYTES(".")) && !bytes_equal(pieces[i], BYTES("..")));
        builder_add_text(&again, "/");
        escape(&again, pieces[i]);
    }
    if (!count)
        builder_add_text(&again, "/");
    builder_add_text(&again, "?/%");
    struct bytes pieces_again[MOST];
    size_t count_again;
    enum fault fault = path_split(arena, builder_bytes(&again), pieces_again, MOST, &count_again);
    assert(fault == FAULT_NONE && count_again == count);
    for (size_t i = 0; i < count; i++)
        assert(bytes_equal(pieces[i], pieces_again[i]));
    builder_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct bytes pieces[MOST];
    size_t count;
    enum fault fault = path_split(arena, (struct bytes){(const char *)data, size}, pieces, MOST, &count);
    assert(count <= MOST);
    if (fault == FAULT_NONE)
        check_pieces(arena, pieces, count);
    else
        assert(fault == FAULT_NPATH || fault == FAULT_AARG || fault == FAULT_AUTF8);
    arena_destroy(arena);
    return 0;
}
