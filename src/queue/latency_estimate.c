/* latency_estimate: a hash table; an estimate is scaled by the ratio of a request's measured and estimated
 * time. */
#include "queue/latency_estimate.h"

#include <string.h>

#include "base/coding/hash.h"

/* The weight of an observation in the next estimate: it rises faster than it falls. */
enum { PART_SLOWER = 2, PART_QUICKER = 4 };

static uint64_t latency_estimate_hash_of(int ns, const char *operation)
{
    uint64_t hash = hash_more(HASH_START ^ (uint64_t)ns, bytes_of(operation));
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static int64_t clamp(int64_t task_us)
{
    return task_us < LATENCY_LEAST_US     ? LATENCY_LEAST_US
           : task_us > LATENCY_UNKNOWN_US ? LATENCY_UNKNOWN_US
                                          : task_us;
}

int64_t latency_estimate_us(const struct latency_estimate *latency_estimate, int ns, const char *operation)
{
    uint64_t name = latency_estimate_hash_of(ns, operation);
    const struct latency_slot *slot = &latency_estimate->slots[name % LATENCY_SLOTS];
    return slot->name == name ? slot->task_us : LATENCY_UNKNOWN_US;
}

static void learn(struct latency_estimate *latency_estimate, int ns, const char *operation, int64_t guess_us,
                  int64_t took_us)
{
    uint64_t name = latency_estimate_hash_of(ns, operation);
    struct latency_slot *slot = &latency_estimate->slots[name % LATENCY_SLOTS];
    if (slot->name != name) {
        *slot = (struct latency_slot){name, clamp(took_us < guess_us ? took_us : guess_us)};
        return;
    }
    int64_t seen_us = clamp((int64_t)((double)slot->task_us * (double)took_us / (double)guess_us));
    int64_t part = seen_us > slot->task_us ? PART_SLOWER : PART_QUICKER;
    slot->task_us += (seen_us - slot->task_us) / part;
}

static bool latency_estimate_is_among(const char *const *operations, size_t count, const char *operation)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(operations[i], operation) == 0)
            return true;
    return false;
}

void latency_estimate_learn(struct latency_estimate *latency_estimate, int ns, const char *const *operations,
                            size_t count, int64_t guess_us, int64_t took_us)
{
    assert(guess_us > 0 && took_us >= 0);
    for (size_t i = 0; i < count; i++)
        if (!latency_estimate_is_among(operations, i, operations[i]))
            learn(latency_estimate, ns, operations[i], guess_us, took_us);
}
