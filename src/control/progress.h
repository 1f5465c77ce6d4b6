/* progress: how far a load has come, for the eye: a bar that is drawn again on a terminal, else a line now
 * and then. */
#ifndef STAMPD_CONTROL_PROGRESS_H
#define STAMPD_CONTROL_PROGRESS_H

#include "base/base.h"

struct progress {
    bool is_terminal;
    bool is_drawn;        /* a bar stands on the terminal's present line */
    int64_t start_ms;     /* monotonic */
    int64_t shown_ms;     /* last time */
    int64_t start_offset; /* bytes that were done before this run */
    int64_t size;         /* bytes of all; 0: unknown */
};

void progress_start(struct progress *progress, int64_t offset, int64_t size);
/* Shows it on standard error when it is time.  `lines` since the start of this run, `offset` in the file. */
void progress_show(struct progress *progress, int64_t lines, int64_t offset);
/* Takes the bar away, so that something else can be written. */
void progress_clear(struct progress *progress);

/* The text of one state, without its newline; pure. */
void progress_compose(const struct progress *progress, int64_t now_ms, int64_t lines, int64_t offset,
                      char *text, size_t text_size);

#endif
