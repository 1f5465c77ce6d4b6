/* segment: a file mapped into memory and shared by processes, its life watched with flock (freshness.md 2,
 * "start of an instance").  Knows nothing of what lies in it but a head that says magic, layout and size. */
#ifndef STAMPD_EDGE_SEGMENT_H
#define STAMPD_EDGE_SEGMENT_H

#include "base/base.h"

struct segment {
    void *memory; /* MAP_SHARED; starts with struct segment_head */
    size_t size;
    int fd;      /* bears the shared lock; inherited by fork, O_CLOEXEC, never unlocked by hand */
    bool is_new; /* nobody lived: the memory behind the head is zero and the generation has grown */
};

struct segment_head {
    uint64_t magic;        /* which program's segment */
    uint32_t layout;       /* version of the structures behind the head */
    uint32_t installation; /* random, drawn when the file is first made; kept */
    uint64_t size;         /* bytes of the whole file */
    uint64_t generation;   /* grows at each start without living users */
};

/* Creates or attaches the segment at `path`.  Living users with another magic, layout or size: refused.  On
 * failure returns false with one line in `problem`. */
MUST_USE bool segment_open(struct segment *segment, const char *path, uint64_t magic, uint32_t layout, size_t size,
                           char *problem, size_t problem_size);
void segment_close(struct segment *segment);

#endif
