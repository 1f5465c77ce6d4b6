/* long_requests: slots, tickets, and the clients and namespaces that get no trial. */
#include "segment/counts/long_requests.h"

#include "base/clock.h"
#include "segment/processes.h"

enum { NO_TRIAL_MS = 10000 };

static struct long_requests_slot *long_requests_own_slot(const struct segment *segment)
{
    assert(segment_index(segment) != SEGMENT_NO_INDEX);
    return &segment->long_requests->slots[segment_index(segment)];
}

static void take_slot(struct segment *segment, const struct long_shares *shares)
{
    struct long_requests_slot *slot = long_requests_own_slot(segment);
    atomic_store(&slot->client, shares->client);
    atomic_store(&slot->account, shares->account);
    atomic_store(&slot->ns, (uint32_t)shares->ns);
    tickets_take(&slot->ticket, &segment->long_requests->next);
}

void long_requests_leave(struct segment *segment)
{
    tickets_leave(&long_requests_own_slot(segment)->ticket);
}

static enum long_requests_entry long_requests_judge(const struct segment *segment,
                                                    const struct long_shares *shares)
{
    const struct tickets_slot *own = &long_requests_own_slot(segment)->ticket;
    int64_t of_ns = 0, of_client = 0, of_account = 0;
    for (int index = 0; index < processes_count(segment); index++) {
        const struct long_requests_slot *slot = &segment->long_requests->slots[index];
        if (!tickets_is_before(segment, index, &slot->ticket, own))
            continue;
        of_ns += atomic_load(&slot->ns) == (uint32_t)shares->ns;
        of_client += shares->client && atomic_load(&slot->client) == shares->client;
        of_account += shares->account && atomic_load(&slot->account) == shares->account;
    }
    if (shares->client_most && (of_client >= shares->client_most || of_account >= shares->client_most))
        return LONG_REQUESTS_CLIENT_FULL;
    return shares->ns_most && of_ns >= shares->ns_most ? LONG_REQUESTS_NAMESPACE_FULL : LONG_REQUESTS_ENTERED;
}

/* --- trials --- */

static struct long_requests_suspect *suspect_of(const struct segment *segment, uint64_t client)
{
    return &segment->long_requests->suspects[client % LONG_REQUESTS_SUSPECTS];
}

static bool has_trial(const struct segment *segment, const struct long_shares *shares)
{
    int64_t now_ms = clock_monotonic_ms();
    const struct long_requests_suspect *suspect = suspect_of(segment, shares->client);
    if (shares->client && atomic_load(&suspect->client) == shares->client &&
        atomic_load(&suspect->until_ms) > now_ms)
        return false;
    return atomic_load(&segment->long_requests->namespaces_until_ms[shares->ns]) <= now_ms;
}

static void suspect(struct segment *segment, const struct long_shares *shares, enum long_requests_entry why)
{
    int64_t until_ms = clock_monotonic_ms() + NO_TRIAL_MS;
    if (why == LONG_REQUESTS_NAMESPACE_FULL) {
        atomic_store(&segment->long_requests->namespaces_until_ms[shares->ns], until_ms);
        return;
    }
    atomic_store(&suspect_of(segment, shares->client)->client, shares->client);
    atomic_store(&suspect_of(segment, shares->client)->until_ms, until_ms);
}

enum long_requests_entry long_requests_enter(struct segment *segment, const struct long_shares *shares)
{
    take_slot(segment, shares);
    enum long_requests_entry entry = long_requests_judge(segment, shares);
    if (entry == LONG_REQUESTS_ENTERED)
        return entry;
    if (has_trial(segment, shares))
        return LONG_REQUESTS_ON_TRIAL;
    long_requests_leave(segment);
    return entry;
}

enum long_requests_entry long_requests_extend(struct segment *segment, const struct long_shares *shares,
                                              bool is_slow)
{
    enum long_requests_entry entry = long_requests_judge(segment, shares);
    if (entry == LONG_REQUESTS_ENTERED)
        return entry;
    if (is_slow)
        suspect(segment, shares, entry);
    long_requests_leave(segment);
    return entry;
}

int64_t long_requests_count(const struct segment *segment)
{
    int64_t count = 0;
    for (int index = 0; index < processes_count(segment); index++)
        count += tickets_is_taken(segment, index, &segment->long_requests->slots[index].ticket);
    return count;
}

size_t long_requests_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct long_requests_board);
}

void long_requests_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->long_requests = memory;
}
