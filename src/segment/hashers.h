/* hashers: the number of workers that compute digests of passwords, in the shared segment.
 *
 * Each process has a slot.  A process that begins writes its slot, then counts those that were there before:
 * no process waits, and no more than the share get in.  A slot counts while its process lives: no repair is
 * needed when the process dies. */
#ifndef STAMPD_SEGMENT_HASHERS_H
#define STAMPD_SEGMENT_HASHERS_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"

/* Enters the process of this handle, which has an index; false: `most` others of its instance compute
 * already, and it has not entered. */
MUST_USE bool hashers_enter(struct segment *segment, int64_t most);
void hashers_leave(struct segment *segment);
/* Workers of this process's instance that compute digests. */
int64_t hashers_count(const struct segment *segment);

/* --- layout in the segment --- */
struct hashers_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct hashers_slot {
        _Atomic uint64_t ticket; /* 0: free; written last */
        _Atomic uint32_t pid, reserved;
    } slots[PROCESSES_MOST];
};

/* For board.c. */
size_t hashers_size(const struct board_sizes *sizes);
void hashers_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
