/* gunzip: the loop around inflate(). */
#include "edge/gunzip.h"

#include <string.h>
#include <zlib.h>

#include "base/log.h"

enum { PIECE = 65536, GZIP_ONLY = 16 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One piece more; Z_STREAM_END: a member has ended. */
static int inflate_piece(z_stream *stream, size_t room, struct builder *text)
{
    stream->next_out = (Bytef *)builder_reserve(text, room);
    stream->avail_out = (uInt)room;
    int status = inflate(stream, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR)
        log_fatal("out of memory inflating");
    text->size += room - stream->avail_out;
    return status;
}

enum gunzip_outcome gunzip_text(struct bytes packed, size_t most, size_t ratio, struct builder *text_r)
{
    z_stream stream = {0};
    size_t before = text_r->size;
    size_t dense = packed.size > SIZE_MAX / ratio ? SIZE_MAX : packed.size * ratio;
    dense = dense > GUNZIP_FREE ? dense : GUNZIP_FREE;
    size_t end = least(most, dense);
    int status = inflateInit2(&stream, GZIP_ONLY + MAX_WBITS);
    if (status != Z_OK)
        log_fatal("out of memory inflating");
    while (status == Z_OK && packed.size) { /* each turn takes bytes or gives some; a sum ends each member */
        size_t left = end - (text_r->size - before);
        uInt given = (uInt)least(packed.size, PIECE);
        stream.next_in = (Bytef *)(uintptr_t)packed.data;
        stream.avail_in = given;
        status = inflate_piece(&stream, least(left + 1, PIECE), text_r);
        packed =
            (struct bytes){packed.data + (given - stream.avail_in), packed.size - (given - stream.avail_in)};
        if (text_r->size - before > end) {
            text_r->size = before + end;
            inflateEnd(&stream);
            return most <= dense ? GUNZIP_TOO_LARGE : GUNZIP_TOO_DENSE;
        }
        if (status == Z_STREAM_END && packed.size)
            status = inflateReset(&stream);
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END ? GUNZIP_DONE : GUNZIP_BROKEN;
}
