/* gzip: texts that were compressed with gzip (RFC 1952), or are to be, by zlib. */
#ifndef STAMPD_EDGE_GZIP_H
#define STAMPD_EDGE_GZIP_H

#include "base/builder.h"
#include "base/bytes.h"
#include "base/base.h"

enum gzip_outcome {
    GZIP_DONE,
    GZIP_BROKEN,    /* no gzip, cut off, a wrong sum, or something behind it */
    GZIP_TOO_LARGE, /* more than `most` bytes */
    GZIP_TOO_DENSE  /* more than `ratio` times as large as what was sent */
};

enum { GZIP_FREE = 65536 }; /* bytes that a text may have whatever its ratio */

/* Appends the text to `text_r`, which has a part of it when the outcome is another than GZIP_DONE: never
 * more than the limits allow.  Several members, one behind the other, are one text.  Memory: that of the
 * text, and 40 KiB while the function runs. */
MUST_USE enum gzip_outcome gzip_unpack(struct bytes packed, size_t most, size_t ratio,
                                       struct builder *text_r);

/* A text that is compressed piece by piece, fast rather than small.  Memory: 270 KiB. */
struct gzip_packer;
struct gzip_packer *gzip_packer_create(void) __attribute__((returns_nonnull));
void gzip_packer_destroy(struct gzip_packer *packer); /* NULL is allowed */
/* Appends to `packed_r` what is ready of it; after the last piece of the text, all the rest. */
void gzip_packer_add(struct gzip_packer *packer, struct bytes text, bool is_last, struct builder *packed_r);

#endif
