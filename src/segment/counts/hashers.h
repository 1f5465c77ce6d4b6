/* hashers: the number of workers that compute digests of passwords, in the shared segment.
 *
 * Those that come later than the share (tickets.h) wait in a short queue, or are refused.  While one waits,
 * nobody else is let in: the places are for those who may wait. */
#ifndef STAMPD_SEGMENT_COUNTS_HASHERS_H
#define STAMPD_SEGMENT_COUNTS_HASHERS_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"
#include "segment/counts/tickets.h"

/* Places, and those who may wait for one together, each at most `wait_ms`. */
struct hashers_room {
    int64_t most, waiting_most, wait_ms;
};
/* Enters the process of this handle, which has an index; false: there was no place, and it has not entered.
 * `may_wait`: it may wait for one, and comes before those who may not. */
MUST_USE bool hashers_enter(struct segment *segment, const struct hashers_room *room, bool may_wait);
void hashers_leave(struct segment *segment);
/* Workers of this process's instance that compute digests. */
int64_t hashers_count(const struct segment *segment);

/* --- layout in the segment --- */
struct hashers_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct tickets_slot slots[PROCESSES_MOST], waiting[PROCESSES_MOST];
};

/* For board.c. */
size_t hashers_size(const struct board_sizes *sizes);
void hashers_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
