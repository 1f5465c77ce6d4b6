/* thumbnailer: runs stamp-thumbnail, the program that decodes images (edge/picture.h), on the bytes of one.
 *
 * The program gets an empty environment, a pipe with the bytes, and a pipe for the thumbnails.  Memory here
 * is that of the thumbnails only.  Whatever the program does, it is gone when thumbnailer_finish returns. */
#ifndef STAMPD_BLOB_THUMBNAILER_H
#define STAMPD_BLOB_THUMBNAILER_H

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"

enum { THUMBNAILER_BOXES_MOST = 8 };

struct thumbnailer_box {
    int64_t width, height;
};

struct thumbnailer_job {
    const char *program; /* not "none"; "": stamp-thumbnail, beside the program that runs */
    int64_t bytes_most, pixels_most, memory_mb, cpu_s;
    int64_t wall_ms; /* then it is killed */
    struct thumbnailer_box boxes[THUMBNAILER_BOXES_MOST];
    size_t box_count;
};

enum thumbnailer_end {
    THUMBNAILER_MADE,
    THUMBNAILER_REFUSED, /* for good: it is the fault of the image */
    THUMBNAILER_KILLED,  /* by something else than its limits, or it was late: another try may succeed */
    THUMBNAILER_FAILED,  /* the program cannot be run */
};

/* Are thumbnails made, with this thumbnail_program?  Not with "none"; with "" only by a build with libvips.
 */
bool thumbnailer_is_there(const char *program);

struct thumbnailer;
/* NULL: it cannot be started, which is logged. */
struct thumbnailer *thumbnailer_start(struct arena *arena, const struct thumbnailer_job *job);
/* For a function that reads a file: `context` is the thumbnailer.  False: it takes no more. */
bool thumbnailer_feed(void *context, struct bytes piece);
/* All bytes were fed.  images_r: one for each box, in the arena.  reason_r: of REFUSED and KILLED, a few
 * words. */
MUST_USE enum thumbnailer_end thumbnailer_finish(struct thumbnailer *thumbnailer,
                                                 struct bytes images_r[THUMBNAILER_BOXES_MOST],
                                                 const char **reason_r);
/* The bytes could not be read: ends the program. */
void thumbnailer_abandon(struct thumbnailer *thumbnailer);

#endif
