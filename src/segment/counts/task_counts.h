/* task_counts: what became of the tasks of this host, for the metrics: of those that its workers have run, by
 * operation; of those of external workers, by namespace and queue. */
#ifndef STAMPD_SEGMENT_COUNTS_TASK_COUNTS_H
#define STAMPD_SEGMENT_COUNTS_TASK_COUNTS_H

#include "base/bytes.h"
#include "segment/counts/named_counts.h"
#include "segment/segment.h"

enum task_count { TASK_COUNT_DONE, TASK_COUNT_FAILED, TASK_COUNT_US };

/* Of tasks of external workers; EXPIRED: claims that ended by themselves, found by a process of this host. */
enum external_count {
    EXTERNAL_COUNT_TAKEN,
    EXTERNAL_COUNT_KEPT,
    EXTERNAL_COUNT_DONE,
    EXTERNAL_COUNT_FAILED,
    EXTERNAL_COUNT_RELEASED,
    EXTERNAL_COUNT_EXPIRED,
};

/* For task_counts.c and the layout of the segment only. */
struct task_counts_board {
    struct named_counts operations, queues;
};

/* An attempt at a task of the operation has ended, after this time.  Neither done nor failed: it goes on
 * later. */
void task_counts_add(struct segment *segment, struct bytes operation, bool is_done, bool is_failed,
                     int64_t us);
const struct named_counts *task_counts_operations(const struct segment *segment);

/* Of a queue of external workers; the names in the table are "QUEUE NAMESPACE". */
void task_counts_add_external(struct segment *segment, struct bytes ns, int queue, enum external_count count,
                              uint64_t more);
const struct named_counts *task_counts_queues(const struct segment *segment);
/* The place of the queue among them. */
size_t task_counts_queue(struct segment *segment, struct bytes ns, int queue);

/* For board.c. */
size_t task_counts_size(const struct board_sizes *sizes);
void task_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
