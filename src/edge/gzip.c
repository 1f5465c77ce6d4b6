/* gzip: the loops around inflate() and deflate(). */
#include "edge/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"
#include "base/memory.h"

enum { PIECE = 65536, GZIP_ONLY = 16, MEMORY_LEVEL = 8 };

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

enum gzip_outcome gzip_unpack(struct bytes packed, size_t most, size_t ratio, struct builder *text_r)
{
    z_stream stream = {0};
    size_t before = text_r->size;
    size_t dense = packed.size > SIZE_MAX / ratio ? SIZE_MAX : packed.size * ratio;
    dense = dense > GZIP_FREE ? dense : GZIP_FREE;
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
            return most <= dense ? GZIP_TOO_LARGE : GZIP_TOO_DENSE;
        }
        if (status == Z_STREAM_END && packed.size)
            status = inflateReset(&stream);
    }
    inflateEnd(&stream);
    return status == Z_STREAM_END ? GZIP_DONE : GZIP_BROKEN;
}

/* --- packing --- */

struct gzip_packer {
    z_stream stream;
};

struct gzip_packer *gzip_packer_create(void)
{
    struct gzip_packer *packer = memory_zeroed(1, sizeof *packer, "gzip");
    if (deflateInit2(&packer->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_ONLY + MAX_WBITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        log_fatal("out of memory deflating");
    return packer;
}

void gzip_packer_destroy(struct gzip_packer *packer)
{
    if (packer)
        deflateEnd(&packer->stream);
    free(packer);
}

void gzip_packer_add(struct gzip_packer *packer, struct bytes text, bool is_last, struct builder *packed)
{
    z_stream *stream = &packer->stream;
    do {
        uInt given = (uInt)least(text.size, PIECE);
        bool is_end = is_last && given == text.size;
        stream->next_in = (Bytef *)(uintptr_t)text.data;
        stream->avail_in = given;
        do { /* until it leaves room: then it has nothing more to give */
            stream->next_out = (Bytef *)builder_reserve(packed, PIECE);
            stream->avail_out = PIECE;
            deflate(stream, is_end ? Z_FINISH : Z_NO_FLUSH); /* fails only when it is called wrongly */
            packed->size += PIECE - stream->avail_out;
        } while (!stream->avail_out);
        text = (struct bytes){text.data + given, text.size - given};
    } while (text.size);
}
