/* hashers: a ticket for each worker that computes. */
#include "segment/counts/hashers.h"

#include "base/clock.h"

enum { STEP_MS = 5 };

static struct tickets_slot *hashers_own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->hashers->slots[segment_index(segment)];
}

static int64_t count_before(const struct segment *segment, const struct tickets_slot *slots,
                            const struct tickets_slot *own)
{
    int64_t before = 0;
    for (int index = 0; index < processes_count(segment); index++)
        before += tickets_is_before(segment, index, &slots[index], own);
    return before;
}

static bool enter_now(struct segment *segment, int64_t most)
{
    struct tickets_slot *own = hashers_own_slot(segment);
    tickets_take(own, &segment->hashers->next);
    bool has_place = count_before(segment, segment->hashers->slots, own) < most;
    if (!has_place)
        hashers_leave(segment);
    return has_place;
}

static bool is_anybody_waiting(const struct segment *segment)
{
    for (int index = 0; index < processes_count(segment); index++)
        if (tickets_is_taken(segment, index, &segment->hashers->waiting[index]))
            return true;
    return false;
}

/* Those who wait enter in the order in which they came. */
static bool wait_and_enter(struct segment *segment, const struct hashers_room *room)
{
    struct tickets_slot *own = &segment->hashers->waiting[segment_index(segment)];
    int64_t until_ms = clock_monotonic_ms() + room->wait_ms;
    tickets_take(own, &segment->hashers->next);
    int64_t before = count_before(segment, segment->hashers->waiting, own);
    bool may_wait = before < room->waiting_most, has_entered = false;
    while (may_wait && !(has_entered = !before && enter_now(segment, room->most)) &&
           clock_monotonic_ms() < until_ms) {
        clock_sleep_ms(STEP_MS);
        before = count_before(segment, segment->hashers->waiting, own);
    }
    tickets_leave(own);
    return has_entered;
}

bool hashers_enter(struct segment *segment, const struct hashers_room *room, bool may_wait)
{
    if (!is_anybody_waiting(segment) && enter_now(segment, room->most))
        return true;
    return may_wait && wait_and_enter(segment, room);
}

void hashers_leave(struct segment *segment)
{
    tickets_leave(hashers_own_slot(segment));
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
