/* hashers: slots and tickets. */
#include "segment/hashers.h"

#include <unistd.h>

/* A ticket is being assigned: this process comes first. */
static const uint64_t CHOOSING = 1;
enum { FIRST_TICKET = 2 };

static struct hashers_slot *own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->hashers->slots[segment_index(segment)];
}

/* The slot of a dead process does not count. */
static bool is_taken(const struct segment *segment, int index)
{
    const struct hashers_slot *slot = &segment->hashers->slots[index];
    return atomic_load(&slot->ticket) != 0 && processes_state(segment, index) == PROCESS_HELD &&
           processes_pid(segment, index) == atomic_load(&slot->pid) &&
           processes_instance(segment, index) == processes_instance(segment, segment_index(segment));
}

/* A process that takes a ticket after ours sees our slot; for one whose ticket is being assigned, the order
 * is unknown. */
bool hashers_enter(struct segment *segment, int64_t most)
{
    struct hashers_slot *own = own_slot(segment);
    int64_t before = 0;
    atomic_store(&own->pid, (uint32_t)getpid());
    atomic_store(&own->ticket, CHOOSING);
    uint64_t ticket = atomic_fetch_add(&segment->hashers->next, 1) + FIRST_TICKET;
    atomic_store(&own->ticket, ticket);
    for (int index = 0; index < processes_count(segment); index++) {
        uint64_t other = atomic_load(&segment->hashers->slots[index].ticket);
        before += index != segment_index(segment) && other && other < ticket && is_taken(segment, index);
    }
    if (before >= most)
        hashers_leave(segment);
    return before < most;
}

void hashers_leave(struct segment *segment)
{
    atomic_store(&own_slot(segment)->ticket, 0);
}

int64_t hashers_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += is_taken(segment, index);
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
