/* reads: slots, tickets, and the clients and namespaces that get no trial. */
#include "segment/reads.h"

#include "base/clock.h"
#include "segment/processes.h"

enum { NO_TRIAL_MS = 10000 };

static struct reads_slot *own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->reads->slots[segment_index(segment)];
}

static void take_slot(struct segment *segment, const struct read_shares *shares)
{
    struct reads_slot *slot = own_slot(segment);
    atomic_store(&slot->client, shares->client);
    atomic_store(&slot->ns, (uint32_t)shares->ns);
    tickets_take(&slot->ticket, &segment->reads->next);
}

void reads_leave(struct segment *segment)
{
    tickets_leave(&own_slot(segment)->ticket);
}

static enum reads_entry judge(const struct segment *segment, const struct read_shares *shares)
{
    const struct tickets_slot *own = &own_slot(segment)->ticket;
    int64_t of_ns = 0, of_client = 0;
    for (int index = 0; index < processes_count(segment); index++) {
        const struct reads_slot *slot = &segment->reads->slots[index];
        if (!tickets_is_before(segment, index, &slot->ticket, own))
            continue;
        of_ns += atomic_load(&slot->ns) == (uint32_t)shares->ns;
        of_client += shares->client && atomic_load(&slot->client) == shares->client;
    }
    if (shares->client_most && of_client >= shares->client_most)
        return READS_CLIENT_FULL;
    return shares->ns_most && of_ns >= shares->ns_most ? READS_NAMESPACE_FULL : READS_ENTERED;
}

/* --- trials --- */

static struct reads_suspect *suspect_of(const struct segment *segment, uint64_t client)
{
    return &segment->reads->suspects[client % READS_SUSPECTS];
}

static bool has_trial(const struct segment *segment, const struct read_shares *shares)
{
    int64_t now_ms = clock_monotonic_ms();
    const struct reads_suspect *suspect = suspect_of(segment, shares->client);
    if (shares->client && atomic_load(&suspect->client) == shares->client &&
        atomic_load(&suspect->until_ms) > now_ms)
        return false;
    return atomic_load(&segment->reads->namespaces_until_ms[shares->ns]) <= now_ms;
}

static void suspect(struct segment *segment, const struct read_shares *shares, enum reads_entry why)
{
    int64_t until_ms = clock_monotonic_ms() + NO_TRIAL_MS;
    if (why == READS_NAMESPACE_FULL) {
        atomic_store(&segment->reads->namespaces_until_ms[shares->ns], until_ms);
        return;
    }
    atomic_store(&suspect_of(segment, shares->client)->client, shares->client);
    atomic_store(&suspect_of(segment, shares->client)->until_ms, until_ms);
}

enum reads_entry reads_enter(struct segment *segment, const struct read_shares *shares)
{
    take_slot(segment, shares);
    enum reads_entry entry = judge(segment, shares);
    if (entry == READS_ENTERED)
        return entry;
    if (has_trial(segment, shares))
        return READS_ON_TRIAL;
    reads_leave(segment);
    return entry;
}

enum reads_entry reads_extend(struct segment *segment, const struct read_shares *shares, bool is_slow)
{
    enum reads_entry entry = judge(segment, shares);
    if (entry == READS_ENTERED)
        return entry;
    if (is_slow)
        suspect(segment, shares, entry);
    reads_leave(segment);
    return entry;
}

int64_t reads_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->reads->slots[index].ticket);
    return count;
}

size_t reads_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct reads_board);
}

void reads_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->reads = memory;
}
