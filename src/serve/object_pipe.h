/* object_pipe: a part of an object of a store, as bytes that an event loop reads.
 *
 * A process of its own requests the object, piece by piece, and writes it into a pipe: a store that is slow
 * or away stops nothing else, and when nothing is read, nothing more is requested.  The process ends with the
 * pipe, or with its parent. */
#ifndef STAMPD_SERVE_OBJECT_PIPE_H
#define STAMPD_SERVE_OBJECT_PIPE_H

#include "base/bytes.h"
#include "base/settings.h"
#include "edge/events.h"

struct object_part {
    const char *store, *object;
    int64_t from, size;
};

struct object_pipe;
/* NULL: there is no process for it, and it was logged.  `ready` is called after OBJECT_PIPE_LATER. */
struct object_pipe *object_pipe_open(struct events *events, const struct settings *settings,
                                     const struct object_part *part, void (*ready)(void *context),
                                     void *context);
enum object_pipe_state {
    OBJECT_PIPE_READ,
    OBJECT_PIPE_LATER, /* they have not come: `ready` will be called */
    OBJECT_PIPE_ENDED, /* they will not come; the process has logged why */
};
/* The next `size` bytes, OBJECT_PIPE_MOST at most, valid until the next call. */
enum { OBJECT_PIPE_MOST = (1 << 16) + 16 };
MUST_USE enum object_pipe_state object_pipe_read(struct object_pipe *pipe, size_t size,
                                                 struct bytes *bytes_r);
void object_pipe_close(struct object_pipe *pipe); /* NULL is allowed */

#endif
