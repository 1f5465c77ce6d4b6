/* progress: displays how far a load has come: a bar, redrawn on a terminal, else a line at intervals. */
#ifndef STAMPD_CONTROL_DOCUMENTS_PROGRESS_H
#define STAMPD_CONTROL_DOCUMENTS_PROGRESS_H

#include "base/base.h"

struct progress {
    bool is_terminal;
    bool is_drawn;        /* a bar is on the terminal's current line */
    int64_t start_ms;     /* monotonic */
    int64_t shown_ms;     /* last display */
    int64_t start_offset; /* bytes done before this run */
    int64_t size;         /* bytes in total; 0: unknown */
    const char *unit;     /* what is counted; "lines" at the start */
};

void progress_start(struct progress *progress, int64_t offset, int64_t size);
/* Displays it on standard error when due.  `lines` since the start of this run, `offset` in the file. */
void progress_show(struct progress *progress, int64_t lines, int64_t offset);
/* Removes the bar, so that other output can be written. */
void progress_clear(struct progress *progress);

/* The text of one state, without its newline; pure. */
void progress_compose(const struct progress *progress, int64_t now_ms, int64_t lines, int64_t offset,
                      char *text, size_t text_size);

#endif
