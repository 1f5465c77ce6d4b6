/* streams: a ticket and the subjects of each worker that sends one. */
#include "segment/counts/streams.h"

static struct streams_slot *streams_own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->streams->slots[segment_index(segment)];
}

static int64_t count_before(const struct segment *segment, int place, uint64_t key)
{
    const struct tickets_slot *own = &streams_own_slot(segment)->ticket;
    int64_t before = 0;
    for (int index = 0; index < processes_count(segment); index++) {
        const struct streams_slot *slot = &segment->streams->slots[index];
        before +=
            tickets_is_before(segment, index, &slot->ticket, own) && atomic_load(&slot->keys[place]) == key;
    }
    return before;
}

bool streams_enter(struct segment *segment, const struct streams_subject subjects[STREAMS_SUBJECTS],
                   int *full_r)
{
    struct streams_slot *own = streams_own_slot(segment);
    for (int i = 0; i < STREAMS_SUBJECTS; i++)
        atomic_store(&own->keys[i], subjects[i].key);
    tickets_take(&own->ticket, &segment->streams->next);
    for (int i = 0; i < STREAMS_SUBJECTS; i++) {
        if (!subjects[i].key || !subjects[i].most ||
            count_before(segment, i, subjects[i].key) < subjects[i].most)
            continue;
        streams_leave(segment);
        *full_r = i;
        return false;
    }
    return true;
}

void streams_leave(struct segment *segment)
{
    tickets_leave(&streams_own_slot(segment)->ticket);
}

int64_t streams_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->streams->slots[index].ticket);
    return count;
}

size_t streams_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct streams_board);
}

void streams_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->streams = memory;
}
