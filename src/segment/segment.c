/* segment: the handle of a process. */
#include "segment/segment.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(uint64_t) == sizeof(long long),
               "64-bit atomics without locks");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && sizeof(uint32_t) == sizeof(int), "32-bit atomics without locks");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4,
               "atomics as large as their values");

int segment_index(const struct segment *segment)
{
    return segment->index;
}

static const struct mapping_head *head_of(const struct segment *segment)
{
    return segment->mapping.memory;
}

uint32_t segment_installation(const struct segment *segment)
{
    return head_of(segment)->installation;
}

uint64_t segment_generation(const struct segment *segment)
{
    return head_of(segment)->generation;
}

uint64_t segment_seed(const struct segment *segment)
{
    return head_of(segment)->seed;
}

struct shared_cache *segment_shared_cache(const struct segment *segment)
{
    return segment->shared_cache;
}
