/* slots: the steps of freshness.md. */
#include "segment/slots.h"

#include <xxhash.h>

#include "base/crash.h"

_Static_assert(sizeof(struct slot) == 64, "a slot is one cache line");
_Static_assert(SLOTS_WORDS * 64 == PROCESSES_MOST && SLOTS_WORDS == 7,
               "the stamp and all bits share the line");

size_t slots_size(const struct board_sizes *sizes)
{
    return sizeof(struct slots_head) + sizes->slots * sizeof(struct slot);
}

void slots_init(struct segment *segment, void *memory, const struct board_sizes *sizes)
{
    struct slots_head *head = memory;
    segment->slots = head->slots;
    segment->words = &head->words;
    segment->proof_until_ms = &head->proof_until_ms;
    segment->slot_mask = sizes->slots - 1;
}

bool slots_agree(struct segment *segment)
{
    struct slots_head *head = (struct slots_head *)(void *)((char *)segment->slots - sizeof *head);
    uint32_t present = 0, count = segment->slot_mask + 1;
    return atomic_compare_exchange_strong(&head->count, &present, count) || present == count;
}

void slots_need_lease(struct segment *segment)
{
    int64_t none = 0;
    (void)atomic_compare_exchange_strong(segment->proof_until_ms, &none, SLOTS_PROVE_NOTHING);
}

void slots_prove_until(struct segment *segment, int64_t until_ms)
{
    atomic_store(segment->proof_until_ms, until_ms);
}

bool slots_have_lost_lease(const struct segment *segment)
{
    return atomic_load(segment->proof_until_ms) == SLOTS_LEASE_LOST;
}

bool slots_have_lease(const struct segment *segment)
{
    int64_t until_ms = atomic_load(segment->proof_until_ms);
    return !until_ms || until_ms > SLOTS_LEASE_LOST;
}

/* The hash of one part seeds the next: no separator to confuse, nothing to copy, any length. */
uint64_t slots_seed(const struct segment *segment, int ns, struct bytes class)
{
    static const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t seed = segment_seed(segment) + ((uint64_t)ns + 1) * spread;
    return XXH3_64bits_withSeed(class.data, class.size, seed);
}

uint64_t slots_hash(const struct segment *segment, int ns, struct bytes class, struct bytes id)
{
    return slots_hash_text(slots_seed(segment, ns, class), id);
}

uint32_t slots_of_class(const struct segment *segment, int ns, struct bytes class)
{
    return slots_index(segment, slots_hash(segment, ns, class, NO_BYTES)); /* no document has an empty id */
}

uint64_t slots_hash_text(uint64_t seed, struct bytes text)
{
    return XXH3_64bits_withSeed(text.data, text.size, seed);
}

static _Atomic uint64_t *own_word(const struct segment *segment, uint32_t slot)
{
    assert(slot <= segment->slot_mask);
    return &segment->slots[slot].mark[segment->index / 64];
}

static uint64_t own_bit(const struct segment *segment)
{
    return UINT64_C(1) << (segment->index % 64);
}

void slots_begin(struct segment *segment, int ns)
{
    assert(ns >= 0 &&
           processes_namespace(segment, segment->index) < 0); /* at most one commit in flight or in doubt */
    processes_set_namespace(segment, segment->index, ns);
}

void slots_mark(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *own_r)
{
    uint64_t bit = own_bit(segment);
    assert(processes_namespace(segment, segment->index) >= 0);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_or(own_word(segment, slots[i]), bit);
        crash_at(CRASH_COMMIT_MARK);
    }
    for (size_t i = 0; i < count; i++)
        own_r[i] = atomic_load(&segment->slots[slots[i]].stamp);
    atomic_thread_fence(memory_order_seq_cst); /* before the bytes of COMMIT leave */
}

void slots_publish(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *moved_r)
{
    for (size_t i = 0; i < count; i++) {
        assert(slots[i] <= segment->slot_mask);
        uint64_t moved = atomic_fetch_add(&segment->slots[slots[i]].stamp, 1);
        if (moved_r)
            moved_r[i] = moved;
        crash_at(CRASH_PUBLISH);
    }
}

void slots_unmark(struct segment *segment, const uint32_t *slots, size_t count)
{
    uint64_t bit = own_bit(segment);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_and(own_word(segment, slots[i]), ~bit);
        crash_at(CRASH_UNMARK);
    }
}

void slots_end(struct segment *segment)
{
    processes_set_namespace(segment, segment->index, -1);
}

void slots_move_all(struct segment *segment)
{
    for (size_t slot = 0; slot <= segment->slot_mask; slot++)
        atomic_fetch_add(&segment->slots[slot].stamp, 1);
}

size_t slots_sweep(struct segment *segment)
{
    uint64_t bit = own_bit(segment);
    size_t repaired = 0;
    for (size_t slot = 0; slot <= segment->slot_mask; slot++) {
        _Atomic uint64_t *word = own_word(segment, (uint32_t)slot);
        if (!(atomic_load(word) & bit))
            continue;
        atomic_fetch_add(&segment->slots[slot].stamp,
                         1); /* first: a process that sees the bit cleared sees the stamp moved */
        crash_at(CRASH_RECOVERY_MOVED);
        atomic_fetch_and(word, ~bit);
        crash_at(CRASH_RECOVERY_UNMARKED);
        repaired++;
    }
    crash_at(CRASH_RECOVERY_SWEPT);
    processes_set_namespace(segment, segment->index, -1);
    crash_at(CRASH_RECOVERY_ENDED);
    return repaired;
}
