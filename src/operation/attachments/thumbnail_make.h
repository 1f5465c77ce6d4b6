/* thumbnail_make: the thumbnails of one image: read, decoded by a process of its own, stored as files that no
 * item has yet. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_THUMBNAIL_MAKE_H
#define STAMPD_OPERATION_ATTACHMENTS_THUMBNAIL_MAKE_H

#include "model/document/thumbnails.h"
#include "operation/attempt.h"

struct thumbnail_made {
    const struct schema_thumbnail *thumbnail;
    struct blob_digest digest;
    int64_t size;
};

/* `kept` of the attempt: the tries of a cycle share it. */
struct thumbnail_kept {
    struct blob_digest image;
    bool is_refused; /* none can be made; the row of the file has the reason */
    struct thumbnail_made made[SCHEMA_THUMBNAILS_MOST];
    size_t count;
};

/* Makes these thumbnails of the image.  FAULT_XSTORE, XFULL, BCONTENT: the file cannot be read, or the
 * thumbnails not stored; FAULT_XTIME: the decoder was killed: another attempt may succeed; FAULT_OTHUMBNAILS:
 * this server makes none; FAULT_BINTERNAL: the decoder cannot be run.  What is the fault of the image is
 * noted. */
MUST_USE enum fault thumbnail_make(struct attempt *attempt, const struct thumbnails_file *file,
                                   const struct schema_thumbnail *const *wanted, size_t count,
                                   struct thumbnail_kept *kept);

#endif
