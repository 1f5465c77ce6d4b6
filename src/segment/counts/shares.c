/* shares: for each kind a ticket and the subjects of each worker that does it. */
#include "segment/counts/shares.h"

static struct shares_slot *shares_own_slot(const struct segment *segment, enum shares_kind kind)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->shares[kind].slots[segment_index(segment)];
}

static int64_t count_before(const struct segment *segment, enum shares_kind kind, int place, uint64_t key)
{
    const struct tickets_slot *own = &shares_own_slot(segment, kind)->ticket;
    int64_t before = 0;
    for (int index = 0; index < processes_count(segment); index++) {
        const struct shares_slot *slot = &segment->shares[kind].slots[index];
        before +=
            tickets_is_before(segment, index, &slot->ticket, own) && atomic_load(&slot->keys[place]) == key;
    }
    return before;
}

bool shares_enter(struct segment *segment, enum shares_kind kind,
                  const struct shares_subject subjects[SHARES_SUBJECTS], int *full_r)
{
    struct shares_slot *own = shares_own_slot(segment, kind);
    for (int i = 0; i < SHARES_SUBJECTS; i++)
        atomic_store(&own->keys[i], subjects[i].key);
    tickets_take(&own->ticket, &segment->shares[kind].next);
    for (int i = 0; i < SHARES_SUBJECTS; i++) {
        if (!subjects[i].key || !subjects[i].most ||
            count_before(segment, kind, i, subjects[i].key) < subjects[i].most)
            continue;
        shares_leave(segment, kind);
        *full_r = i;
        return false;
    }
    return true;
}

void shares_leave(struct segment *segment, enum shares_kind kind)
{
    tickets_leave(&shares_own_slot(segment, kind)->ticket);
}

int64_t shares_count(const struct segment *segment, enum shares_kind kind)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->shares[kind].slots[index].ticket);
    return count;
}

size_t shares_size(const struct board_sizes *sizes UNUSED)
{
    return SHARES_KINDS * sizeof(struct shares_board);
}

void shares_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->shares = memory;
}
