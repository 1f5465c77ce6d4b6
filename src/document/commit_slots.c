/* commit_slots: a short list, searched from its beginning. */
#include "document/commit_slots.h"

struct commit_slots commit_slots_open(const struct segment *segment, int ns, struct arena *arena,
                                      size_t documents)
{
    const size_t most = 2 * documents;
    return (struct commit_slots){.segment = segment,
                                 .ns = ns,
                                 .list = ARENA_ARRAY(arena, uint32_t, most),
                                 .own = ARENA_ARRAY(arena, uint64_t, most),
                                 .moved = ARENA_ARRAY(arena, uint64_t, most)};
}

size_t commit_slots_find(const struct commit_slots *slots, uint32_t slot)
{
    size_t place = 0;
    while (place < slots->count && slots->list[place] != slot)
        place++;
    return place;
}

static void add_commit_slots(struct commit_slots *slots, uint32_t slot)
{
    if (commit_slots_find(slots, slot) == slots->count)
        slots->list[slots->count++] = slot;
}

/* Documents of a class are often neighbours. */
void commit_slots_add(struct commit_slots *slots, struct bytes class, uint32_t slot)
{
    add_commit_slots(slots, slot);
    if (!bytes_equal(slots->last_class, class))
        add_commit_slots(slots, slots_of_class(slots->segment, slots->ns, class));
    slots->last_class = class;
}
