/* mapping: a file mapped into memory and shared by processes; flock tells whether any of them is alive
 * (freshness.md 2, "start of an instance").  The file begins with a head: magic, layout, size. */
#ifndef STAMPD_EDGE_MAPPING_H
#define STAMPD_EDGE_MAPPING_H

#include "base/base.h"

struct mapping {
    void *memory; /* MAP_SHARED; starts with struct mapping_head */
    size_t size;
    int fd;      /* bears the shared lock; inherited by fork, O_CLOEXEC, never unlocked by hand */
    bool is_new; /* this call made it: nobody lived, the generation has grown */
};

/* Who attaches finds a whole head and behind it what the living made of memory that was zero: zero must be a
 * valid beginning of whatever lies there, because nobody is alone with a new segment. */
struct mapping_head {
    uint64_t magic;        /* which program's segment */
    uint32_t layout;       /* version of the structures behind the head, never 0; 0: its making was cut off */
    uint32_t installation; /* random, top byte 'S', drawn when the file is first made; kept */
    uint64_t size;         /* bytes of the whole file */
    uint64_t generation;   /* grows at each start without living users */
    uint64_t seed;         /* random, drawn anew for each generation */
    uint64_t reserved[3];
};

enum { MAPPING_INSTALLATION_MARK = 0x53 }; /* top byte of every installation */

/* Creates or attaches the segment at `path`.  Living users with another magic, layout or size: refused; so is
 * a file that is no segment.  On failure returns false with one line in `problem`. */
MUST_USE bool mapping_open(struct mapping *mapping, const char *path, uint64_t magic, uint32_t layout,
                           size_t size, char *problem, size_t problem_size);
void mapping_close(struct mapping *mapping);

/* Memory of zeros that this process shares with the children that it forks from now on, for its whole life;
 * none is left: the process ends. */
void *mapping_share(size_t size) __attribute__((returns_nonnull));
/* The same by a descriptor that can be handed to another process: made when it is -1.  NULL: it is of another
 * size. */
void *mapping_share_passed(size_t size, int *descriptor);

#endif
