/* task_counts: two tables of the segment. */
#include "segment/counts/task_counts.h"

#include <stdio.h>

void task_counts_add(struct segment *segment, struct bytes operation, bool is_done, bool is_failed,
                     int64_t us)
{
    struct named_counts *table = &segment->task_counts->operations;
    size_t place = named_counts_place(table, operation);
    named_counts_add(table, place, TASK_COUNT_DONE, is_done);
    named_counts_add(table, place, TASK_COUNT_FAILED, is_failed);
    named_counts_add(table, place, TASK_COUNT_US, us > 0 ? (uint64_t)us : 0);
}

const struct named_counts *task_counts_operations(const struct segment *segment)
{
    return &segment->task_counts->operations;
}

size_t task_counts_queue(struct segment *segment, struct bytes ns, int queue)
{
    char name[NAMED_COUNTS_BYTES + 2];
    int size = snprintf(name, sizeof name, "%d %.*s", queue, (int)ns.size, ns.data);
    if (size > NAMED_COUNTS_BYTES)
        return NAMED_COUNTS_NAMES;
    return named_counts_place(&segment->task_counts->queues, (struct bytes){name, (size_t)size});
}

void task_counts_add_external(struct segment *segment, struct bytes ns, int queue, enum external_count count,
                              uint64_t more)
{
    if (more)
        named_counts_add(&segment->task_counts->queues, task_counts_queue(segment, ns, queue), (int)count,
                         more);
}

const struct named_counts *task_counts_queues(const struct segment *segment)
{
    return &segment->task_counts->queues;
}

size_t task_counts_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct task_counts_board);
}

void task_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->task_counts = memory;
}
