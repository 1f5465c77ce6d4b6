/* gunzip: texts that were compressed with gzip (RFC 1952), by zlib. */
#ifndef STAMPD_EDGE_GUNZIP_H
#define STAMPD_EDGE_GUNZIP_H

#include "base/builder.h"
#include "base/bytes.h"
#include "base/base.h"

enum gunzip_outcome {
    GUNZIP_DONE,
    GUNZIP_BROKEN,    /* no gzip, cut off, a wrong sum, or something behind it */
    GUNZIP_TOO_LARGE, /* more than `most` bytes */
    GUNZIP_TOO_DENSE  /* more than `ratio` times as large as what was sent */
};

enum { GUNZIP_FREE = 65536 }; /* bytes that a text may have whatever its ratio */

/* Appends the text to `text_r`, which has a part of it when the outcome is another than GUNZIP_DONE: never
 * more than the limits allow.  Several members, one behind the other, are one text.  Memory: that of the
 * text, and 40 KiB while the function runs. */
MUST_USE enum gunzip_outcome gunzip_text(struct bytes packed, size_t most, size_t ratio,
                                         struct builder *text_r);

#endif
