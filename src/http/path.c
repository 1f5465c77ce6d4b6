/* path: pieces are decoded after the path is split, so that an escaped slash stays inside its piece. */
#include "http/path.h"

#include <string.h>

#include "base/builder.h"
#include "base/coding/percent.h"

static enum fault decode_piece(struct arena *arena, struct bytes encoded, struct bytes *piece_r)
{
    const char *what;
    enum fault fault = percent_decode(arena, encoded, false, piece_r, &what);
    if (fault != FAULT_NONE)
        return fault;
    if (!bytes_is_utf8(*piece_r))
        return FAULT_AUTF8;
    bool is_dots = bytes_equal(*piece_r, BYTES(".")) || bytes_equal(*piece_r, BYTES(".."));
    return is_dots || piece_r->size == 0 ? FAULT_NPATH : FAULT_NONE;
}

enum fault path_split(struct arena *arena, struct bytes request_uri, struct bytes *pieces_r, size_t most,
                      size_t *count_r)
{
    *count_r = 0;
    struct bytes path = bytes_cut(&request_uri, '?');
    if (!path.size || path.data[0] != '/' || memchr(path.data, '#', path.size))
        return FAULT_NPATH;
    bool has_more = path.size > 1;
    path = (struct bytes){path.data + 1, path.size - 1};
    while (has_more) {
        /* A trailing slash is followed by an empty piece. */
        has_more = path.size && memchr(path.data, '/', path.size);
        struct bytes encoded = bytes_cut(&path, '/');
        if (*count_r == most)
            return FAULT_NPATH;
        enum fault fault = decode_piece(arena, encoded, &pieces_r[*count_r]);
        if (fault != FAULT_NONE)
            return fault;
        ++*count_r;
    }
    return FAULT_NONE;
}

struct bytes path_query(struct bytes request_uri)
{
    bytes_cut(&request_uri, '?');
    return bytes_cut(&request_uri, '#');
}

const char *path_join(struct arena *arena, const struct bytes *pieces, size_t count)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    struct builder path = {0};
    for (size_t i = 0; i < count; i++) {
        builder_add_text(&path, "/");
        for (size_t j = 0; j < pieces[i].size; j++) {
            char byte = pieces[i].data[j];
            if (byte && strchr(plain, byte))
                builder_add(&path, &byte, 1);
            else
                builder_printf(&path, "%%%02X", (unsigned char)byte);
        }
    }
    const char *text = arena_copy(arena, path.data ? path.data : "/", path.data ? path.size : 1);
    builder_free(&path);
    return text;
}
