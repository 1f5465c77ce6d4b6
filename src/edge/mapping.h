/* mapping: a file mapped into memory and shared by processes; an flock shows whether any of them is alive
 * (freshness.md 2, "start of an instance").  The file begins with a head: magic, layout, size. */
#ifndef STAMPD_EDGE_MAPPING_H
#define STAMPD_EDGE_MAPPING_H

#include "base/base.h"

struct mapping {
    void *memory; /* MAP_SHARED; starts with struct mapping_head */
    size_t size;
    int fd;      /* holds the shared lock; inherited by fork, O_CLOEXEC, never unlocked explicitly */
    bool is_new; /* this call created it: no process was alive, the generation has grown */
};

/* A process that attaches finds a complete head, followed by memory that began as zeros and that live
 * processes may have changed.  Zero must be a valid initial state of every structure there, because no
 * process is ever alone with a new segment. */
struct mapping_head {
    uint64_t magic;        /* identifies the program of the segment */
    uint32_t layout;       /* version of the structures behind the head (from 1); 0: creation interrupted */
    uint32_t installation; /* random, top byte 'S', drawn when the file is first created; kept */
    uint64_t size;         /* bytes of the whole file */
    uint64_t generation;   /* grows at each start without live users */
    uint64_t seed;         /* random, drawn anew for each generation */
    uint64_t reserved[3];
};

enum { MAPPING_INSTALLATION_MARK = 0x53 }; /* top byte of every installation */

/* Creates or attaches the segment at `path`.  Fails when live users have another magic, layout or size, or
 * when the file is not a segment.  On failure returns false with one line in `problem`. */
MUST_USE bool mapping_open(struct mapping *mapping, const char *path, uint64_t magic, uint32_t layout,
                           size_t size, char *problem, size_t problem_size);
void mapping_close(struct mapping *mapping);
/* For the process that has opened it, when all children that have inherited it have ended, as the last call
 * before mapping_close: zeros after the head, unless there are other users.  The file keeps its size, for
 * those that only read it. */
void mapping_erase(struct mapping *mapping);
/* Is the file of this path, or the next folder above it that exists, in memory (tmpfs, ramfs)? */
bool mapping_is_in_memory(const char *path);

/* Zeroed memory that this process shares, for its whole life, with the children that it forks from now on;
 * ends the process when memory runs out. */
void *mapping_share(size_t size) __attribute__((returns_nonnull));
/* The same by a descriptor that can be passed to another process; created when it is -1.  NULL: the
 * descriptor has another size. */
void *mapping_share_passed(size_t size, int *descriptor);
/* Zeroed memory of this process; a child that it forks finds zeros there.  NULL: the kernel has none such. */
void *mapping_keep(size_t size);

/* What a file has, to be read only; what others write to it is seen.  It must have `size` bytes and keep
 * them. NULL: errno. */
const void *mapping_view(int fd, size_t size);
void mapping_view_end(const void *view, size_t size); /* NULL is allowed */

#endif
