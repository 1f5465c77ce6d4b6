/* reads: places, tickets, and who gets no trial. */
#include "document/reads.h"

#include <unistd.h>

#include "base/clock.h"

/* Being given its ticket: before everybody else. */
static const uint64_t CHOOSING = 1;
enum { FIRST_TICKET = 2, NO_TRIAL_MS = 10000 };

static struct reads_place *own_place(const struct stamps *stamps)
{
    assert(stamps_index(stamps) != STAMPS_NO_INDEX);
    return &stamps->reads->places[stamps_index(stamps)];
}

/* A place that its process has left by dying counts no more. */
static bool is_taken(const struct stamps *stamps, int index)
{
    const struct reads_place *place = &stamps->reads->places[index];
    return atomic_load(&place->ticket) != 0 && stamps_entry_state(stamps, index) == ENTRY_HELD &&
           stamps_entry_pid(stamps, index) == atomic_load(&place->pid) &&
           stamps_entry_instance(stamps, index) == stamps_entry_instance(stamps, stamps_index(stamps));
}

static void take_place(struct stamps *stamps, const struct read_shares *shares)
{
    struct reads_place *place = own_place(stamps);
    atomic_store(&place->client, shares->client);
    atomic_store(&place->space, (uint32_t)shares->space);
    atomic_store(&place->pid, (uint32_t)getpid());
    atomic_store(&place->ticket, CHOOSING);
    atomic_store(&place->ticket, atomic_fetch_add(&stamps->reads->next, 1) + FIRST_TICKET);
}

void reads_leave(struct stamps *stamps)
{
    atomic_store(&own_place(stamps)->ticket, 0);
}

/* Who takes a ticket after ours sees our place; of who is being given one it is not known. */
static enum reads_entry judge(const struct stamps *stamps, const struct read_shares *shares)
{
    uint64_t own = atomic_load(&own_place(stamps)->ticket);
    int64_t of_space = 0, of_client = 0;
    for (int index = 0; index < stamps_entries(stamps); index++) {
        const struct reads_place *place = &stamps->reads->places[index];
        uint64_t ticket = atomic_load(&place->ticket);
        if (index == stamps_index(stamps) || !ticket || ticket >= own || !is_taken(stamps, index))
            continue;
        of_space += atomic_load(&place->space) == (uint32_t)shares->space;
        of_client += shares->client && atomic_load(&place->client) == shares->client;
    }
    if (shares->client_most && of_client >= shares->client_most)
        return READS_CLIENT_FULL;
    return shares->space_most && of_space >= shares->space_most ? READS_SPACE_FULL : READS_ENTERED;
}

/* --- trials --- */

static struct reads_suspect *suspect_of(const struct stamps *stamps, uint64_t client)
{
    return &stamps->reads->suspects[client % READS_SUSPECTS];
}

static bool has_trial(const struct stamps *stamps, const struct read_shares *shares)
{
    int64_t now_ms = clock_monotonic_ms();
    const struct reads_suspect *suspect = suspect_of(stamps, shares->client);
    if (shares->client && atomic_load(&suspect->client) == shares->client &&
        atomic_load(&suspect->until_ms) > now_ms)
        return false;
    return atomic_load(&stamps->reads->spaces_until_ms[shares->space]) <= now_ms;
}

static void suspect(struct stamps *stamps, const struct read_shares *shares, enum reads_entry why)
{
    int64_t until_ms = clock_monotonic_ms() + NO_TRIAL_MS;
    if (why == READS_SPACE_FULL) {
        atomic_store(&stamps->reads->spaces_until_ms[shares->space], until_ms);
        return;
    }
    atomic_store(&suspect_of(stamps, shares->client)->client, shares->client);
    atomic_store(&suspect_of(stamps, shares->client)->until_ms, until_ms);
}

enum reads_entry reads_enter(struct stamps *stamps, const struct read_shares *shares)
{
    take_place(stamps, shares);
    enum reads_entry entry = judge(stamps, shares);
    if (entry == READS_ENTERED)
        return entry;
    if (has_trial(stamps, shares))
        return READS_ON_TRIAL;
    reads_leave(stamps);
    return entry;
}

enum reads_entry reads_extend(struct stamps *stamps, const struct read_shares *shares, bool is_slow)
{
    enum reads_entry entry = judge(stamps, shares);
    if (entry == READS_ENTERED)
        return entry;
    if (is_slow)
        suspect(stamps, shares, entry);
    reads_leave(stamps);
    return entry;
}

int64_t reads_count(const struct stamps *stamps)
{
    int64_t count = 0;
    for (int index = 0; index < stamps_entries(stamps); index++)
        count += is_taken(stamps, index);
    return count;
}
