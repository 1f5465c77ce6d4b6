/* purge_counts: one board for all namespaces. */
#include "segment/counts/purge_counts.h"
#include "segment/segment.h"

size_t purge_counts_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct purge_counts);
}

void purge_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->kept = memory;
}
