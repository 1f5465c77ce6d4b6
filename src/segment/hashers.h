/* hashers: the number of workers that compute digests of passwords, in the shared segment.
 *
 * Those that begin later than the share are refused, and none waits (tickets.h). */
#ifndef STAMPD_SEGMENT_HASHERS_H
#define STAMPD_SEGMENT_HASHERS_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"
#include "segment/tickets.h"

/* Enters the process of this handle, which has an index; false: `most` others of its instance compute
 * already, and it has not entered. */
MUST_USE bool hashers_enter(struct segment *segment, int64_t most);
void hashers_leave(struct segment *segment);
/* Workers of this process's instance that compute digests. */
int64_t hashers_count(const struct segment *segment);

/* --- layout in the segment --- */
struct hashers_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct tickets_slot slots[PROCESSES_MOST];
};

/* For board.c. */
size_t hashers_size(const struct board_sizes *sizes);
void hashers_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
