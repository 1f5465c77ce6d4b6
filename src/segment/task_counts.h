/* task_counts: what became of the tasks that this host has run, by operation, for the metrics.
 *
 * Any process counts; the segment has room for TASK_COUNTS_NAMES operations, in the order in which their
 * tasks are run first, and the others share an entry: metrics do not grow with what modules declare.  A
 * process that dies in between leaves nothing behind: whoever finds an entry without its name completes it.
 */
#ifndef STAMPD_SEGMENT_TASK_COUNTS_H
#define STAMPD_SEGMENT_TASK_COUNTS_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "segment/segment.h"

enum { TASK_COUNTS_NAMES = 64, TASK_COUNTS_WORDS = 4, TASK_COUNTS_BYTES = TASK_COUNTS_WORDS * 8 };

/* For task_counts.c and the layout of the segment only. */
struct task_counts_board {
    struct task_counts_entry {
        _Alignas(64) _Atomic uint64_t hash; /* of the name; 0: free */
        _Atomic uint64_t is_named;
        _Atomic uint64_t name[TASK_COUNTS_WORDS];
        _Atomic uint64_t done, failed, us;
    } entries[TASK_COUNTS_NAMES + 1]; /* the last one: all others */
};

struct task_counts {
    char name[TASK_COUNTS_BYTES + 1];
    uint64_t done, failed, us;
};

/* An attempt at a task of the operation has ended, after this time.  Neither done nor failed: it goes on
 * later. */
void task_counts_add(struct segment *segment, struct bytes operation, bool is_done, bool is_failed,
                     int64_t us);
/* The counts at a place from 0 to TASK_COUNTS_NAMES, the last one: of all other operations, without a name.
 * False: there are none. */
bool task_counts_read(const struct segment *segment, size_t place, struct task_counts *counts_r);

/* For board.c. */
size_t task_counts_size(const struct board_sizes *sizes);
void task_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
