/* segment_view: the segment of a server that runs, for a program that only looks: what it holds is mapped
 * read-only, and no lock is taken.  All tables are there, but a function that writes would end the process.
 */
#ifndef STAMPD_SEGMENT_SEGMENT_VIEW_H
#define STAMPD_SEGMENT_SEGMENT_VIEW_H

#include "segment/segment.h"

/* `sizes` must be those of the server.  On failure returns false with one line in `problem`. */
MUST_USE bool segment_view_open(struct segment **segment_r, const char *path, const struct board_sizes *sizes,
                                char *problem, size_t problem_size);
void segment_view_close(struct segment *segment);

#endif
