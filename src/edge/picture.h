/* picture: decodes an image and makes smaller ones of it (libvips), in a process of its own: stamp-thumbnail.
 *
 * The bytes are hostile: only the decoders of JPEG, PNG, GIF and WebP are enabled, and the dimensions are
 * judged before anything is decoded. */
#ifndef STAMPD_EDGE_PICTURE_H
#define STAMPD_EDGE_PICTURE_H

#include "base/bytes.h"

/* How stamp-thumbnail ends: its exit status. */
enum picture_end {
    PICTURE_DONE = 0,
    PICTURE_USAGE = 2,        /* its arguments are wrong */
    PICTURE_UNSUPPORTED = 10, /* no format that is enabled */
    PICTURE_DAMAGED = 11,     /* it cannot be decoded */
    PICTURE_PIXELS = 12,      /* its dimensions are too large */
    PICTURE_BYTES = 13,       /* it has too many bytes */
    PICTURE_FAILED = 20,      /* no fault of the image */
};

struct picture_box {
    int64_t width, height;
};

/* Before the process is confined (edge/confinement.h). */
MUST_USE bool picture_start(const char *program);
/* Is it an image of at most so many pixels? */
MUST_USE enum picture_end picture_judge(struct bytes image, int64_t pixels_most);
/* The image as WebP in sRGB, upright, without metadata, as large as fits into the box but never enlarged.
 * Valid until the process ends. */
MUST_USE enum picture_end picture_shrink(struct bytes image, struct picture_box box, struct bytes *webp_r);

#endif
