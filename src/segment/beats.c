/* beats: a pair of times for each database. */
#include "segment/beats.h"

#include "segment/lineage.h"

void beats_want(struct segment *segment, int ns, int64_t now_ms)
{
    atomic_store(&segment->beats->of[ns].wanted_ms, now_ms);
}

int64_t beats_wanted_ms(const struct segment *segment, int ns)
{
    return atomic_load(&segment->beats->of[ns].wanted_ms);
}

void beats_begin(struct segment *segment, uint64_t nonce)
{
    atomic_store(&segment->beats->nonce, nonce);
}

uint64_t beats_nonce(const struct segment *segment)
{
    uint64_t nonce = atomic_load(&segment->beats->nonce);
    return nonce ? nonce + lineage_drops(segment) : 0;
}

void beats_acknowledge(struct segment *segment, int ns, int64_t sent_ms)
{
    atomic_store(&segment->beats->of[ns].acknowledged_ms, sent_ms);
}

bool beats_prove(const struct segment *segment, int ns, uint64_t nonce, int64_t sent_ms)
{
    return nonce && nonce == beats_nonce(segment) &&
           sent_ms <= atomic_load(&segment->beats->of[ns].acknowledged_ms);
}

size_t beats_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct beats);
}

void beats_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->beats = memory;
}
