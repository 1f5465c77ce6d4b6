/* segment_open: the segment of a process, from its first use to its end. */
#ifndef STAMPD_SEGMENT_SEGMENT_OPEN_H
#define STAMPD_SEGMENT_SEGMENT_OPEN_H

#include "segment/segment.h"

/* Creates or attaches the segment (master, before fork). `slots` is a power of two; `shared_cache_bytes` is
 * the memory for copies that workers pass to each other, 0: none.  Both must equal the values that running
 * processes use. */
MUST_USE bool segment_open(struct segment **segment_r, const char *path, uint32_t slots,
                           size_t shared_cache_bytes, char *problem, size_t problem_size);
/* The same, with a size for each tenant that has one. */
MUST_USE bool segment_open_sized(struct segment **segment_r, const char *path,
                                 const struct board_sizes *sizes, char *problem, size_t problem_size);
void segment_close(struct segment *segment);
/* For the master, when its children have ended, before segment_close: nothing that documents had stays in the
 * file, unless another instance uses it. */
void segment_open_erase(struct segment *segment);

/* The first call of a child: from now on it is the process of this index.  Every tenant recovers what the
 * former process of the index left; that process must be gone. */
void segment_join(struct segment *segment, int index);

#endif
