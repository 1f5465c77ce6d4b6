/* hashers: a ticket for each worker that computes. */
#include "segment/hashers.h"

static struct tickets_slot *own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->hashers->slots[segment_index(segment)];
}

bool hashers_enter(struct segment *segment, int64_t most)
{
    struct tickets_slot *own = own_slot(segment);
    int64_t before = 0;
    tickets_take(own, &segment->hashers->next);
    for (int index = 0; index < processes_count(segment); index++)
        before += tickets_is_before(segment, index, &segment->hashers->slots[index], own);
    if (before >= most)
        hashers_leave(segment);
    return before < most;
}

void hashers_leave(struct segment *segment)
{
    tickets_leave(own_slot(segment));
}

int64_t hashers_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->hashers->slots[index]);
    return count;
}

size_t hashers_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct hashers_board);
}

void hashers_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->hashers = memory;
}
