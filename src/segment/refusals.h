/* refusals: counts of refusals by each limit, in the shared segment, for the metrics.  Limits are those of
 * the settings; all other names share one counter, so the number of counters is fixed. */
#ifndef STAMPD_SEGMENT_REFUSALS_H
#define STAMPD_SEGMENT_REFUSALS_H

#include "base/base.h"
#include "base/fault.h"
#include "segment/segment.h"

enum { REFUSALS_MOST = 128 };
struct refusals_board {
    _Alignas(
        64) _Atomic uint64_t counts[REFUSALS_MOST]; /* in the order of the settings; the last: all others */
};

/* Counts an answer with this fault, if its first argument, which may be NULL, names a limit. */
void refusals_count(struct segment *segment, enum fault fault, const char *limit);

/* Name and count of a counter, from 0; NULL: there is no such counter, or it belongs to no limit.
 * REFUSALS_MOST is the end. */
const char *refusals_read(const struct segment *segment, int counter, uint64_t *count_r);

/* For board.c. */
size_t refusals_size(const struct board_sizes *sizes);
void refusals_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
