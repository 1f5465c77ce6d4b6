/* fuzz_resource: what a client and the database say of files.  The first byte chooses: a path and an address,
 * a media type and a policy, the content of an item, base64. */
#include "fuzz.h"

#include "base/builder.h"
#include "model/resource_file.h"
#include "http/path.h"

const char fuzz_target[] = "resource";

static void escape(struct builder *builder, struct bytes path)
{
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '/')
            builder_add_text(builder, "/");
        else
            builder_printf(builder, "%%%02x", (unsigned char)path.data[i]);
}

/* A path is found at its own address, and leads nowhere else. */
static void check_path(struct arena *arena, struct bytes path)
{
    struct bytes pieces[RESOURCE_FILE_DEPTH_MOST], rest = path;
    struct builder address = {0};
    size_t count;
    assert(path.size && path.size <= RESOURCE_FILE_PATH_MOST && bytes_is_utf8(path));
    while (rest.size) {
        struct bytes part = bytes_cut(&rest, '/');
        assert(part.size && !bytes_equal(part, BYTES(".")) && !bytes_equal(part, BYTES("..")));
    }
    assert(path.data[0] != '/' && path.data[path.size - 1] != '/');
    for (size_t i = 0; i < path.size; i++)
        assert((unsigned char)path.data[i] >= ' ' && !strchr("\\%?#\x7f", path.data[i]));
    builder_add_text(&address, "/");
    escape(&address, path);
    builder_add_text(&address, "?../..");
    enum fault fault = path_split(arena, builder_bytes(&address), pieces, RESOURCE_FILE_DEPTH_MOST, &count);
    assert(fault == FAULT_NONE && bytes_equal(resource_file_join(arena, pieces, count), path));
    builder_free(&address);
}

/* Whatever address: what its pieces make is a path, or nothing. */
static void check_address(struct arena *arena, struct bytes address)
{
    struct bytes pieces[2 * RESOURCE_FILE_DEPTH_MOST];
    size_t count;
    if (path_split(arena, address, pieces, COUNT_OF(pieces), &count))
        return;
    struct bytes path = resource_file_join(arena, pieces, count);
    if (!path.data)
        return;
    assert(!resource_file_refuse_path(path));
    check_path(arena, path);
}

/* Both go into heads of answers. */
static void check_type(struct bytes type, struct bytes policy)
{
    if (!resource_file_refuse_type(type)) {
        struct bytes rest = type, essence = bytes_cut(&rest, ';');
        assert(type.size <= RESOURCE_FILE_TYPE_MOST && memchr(essence.data, '/', essence.size));
        for (size_t i = 0; i < type.size; i++)
            assert(type.data[i] >= ' ' && type.data[i] <= '~' && type.data[i] != '"' && type.data[i] != ',');
        if (bytes_equal(essence, BYTES("text/html")) || bytes_equal(essence, BYTES("image/svg+xml")))
            assert(resource_file_is_active(type));
    }
    for (size_t i = 0; !resource_file_refuse_policy(policy) && i < policy.size; i++)
        assert(policy.data[i] >= ' ' && policy.data[i] <= '~');
}

static void check_content(struct arena *arena, struct bytes content)
{
    struct resource_file file, again;
    if (!resource_file_read(arena, content, &file))
        return;
    bool is_again = resource_file_read(arena, resource_file_write(arena, &file), &again);
    assert(is_again && again.size == file.size && bytes_equal(again.type, file.type));
    assert(bytes_equal(again.sha256, file.sha256) && bytes_equal(again.policy, file.policy));
}

static void check_base64(struct arena *arena, struct bytes text)
{
    struct bytes stored = resource_file_decode(arena, resource_file_encode(arena, text));
    assert(bytes_equal(stored, text));
    struct bytes piece = resource_file_decode(arena, text);
    if (piece.data)
        assert(bytes_equal(resource_file_decode(arena, resource_file_encode(arena, piece)), piece));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data + 1, size - 1}, line, rest;
    switch (data[0]) {
    case 'p':
        if (!resource_file_refuse_path(text))
            check_path(arena, text);
        check_address(arena, text);
        break;
    case 't':
        if (fuzz_divide(data + 1, size - 1, &line, &rest))
            check_type(line, rest);
        break;
    case 'c':
        check_content(arena, text);
        break;
    default:
        check_base64(arena, text);
    }
    arena_destroy(arena);
    return 0;
}
