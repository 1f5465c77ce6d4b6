/* uploads: a ticket and the client of each worker that receives a file. */
#include "segment/counts/uploads.h"

static struct uploads_slot *uploads_own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->uploads->slots[segment_index(segment)];
}

enum uploads_entry uploads_enter(struct segment *segment, const struct uploads_shares *shares)
{
    struct uploads_slot *own = uploads_own_slot(segment);
    int64_t before = 0, of_client = 0;
    atomic_store(&own->client, shares->client);
    tickets_take(&own->ticket, &segment->uploads->next);
    for (int index = 0; index < processes_count(segment); index++) {
        const struct uploads_slot *slot = &segment->uploads->slots[index];
        if (!tickets_is_before(segment, index, &slot->ticket, &own->ticket))
            continue;
        before++;
        of_client += atomic_load(&slot->client) == shares->client;
    }
    bool is_client_full = shares->client && of_client >= shares->client_most;
    if (before < shares->most && !is_client_full)
        return UPLOADS_ENTERED;
    uploads_leave(segment);
    return is_client_full ? UPLOADS_CLIENT_FULL : UPLOADS_FULL;
}

void uploads_leave(struct segment *segment)
{
    tickets_leave(&uploads_own_slot(segment)->ticket);
}

int64_t uploads_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->uploads->slots[index].ticket);
    return count;
}

size_t uploads_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct uploads_board);
}

void uploads_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->uploads = memory;
}
