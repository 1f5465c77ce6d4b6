/* writer_queue: one word per slot: its owner, the owner's count of turns, and whether a process sleeps. */
#include "segment/writer_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "edge/futex.h"
#include "segment/processes.h"

/* 0: free; else 1 + index of the owner, its count of turns, and SLEEPERS if it must wake a process. */
enum { OWNER_BITS = 10, COUNT_BITS = 21 };
static const uint32_t SLEEPERS = UINT32_C(1) << 31;
_Static_assert(PROCESSES_MOST < 1 << OWNER_BITS && OWNER_BITS + COUNT_BITS == 31, "the parts fill the word");

struct held_slot {
    uint32_t slot, word;
};

struct writer_queue {
    struct arena *arena;
    struct segment *segment;
    struct held_slot *held; /* in the order of slots, except those taken because free */
    size_t count, capacity;
    uint32_t highest; /* slot held */
    int64_t overdue_ms;
};

struct writer_queue *writer_queue_create(struct arena *arena, struct segment *segment, int64_t overdue_ms)
{
    struct writer_queue *writer_queue = ARENA_NEW(arena, struct writer_queue);
    writer_queue->arena = arena;
    writer_queue->segment = segment;
    writer_queue->overdue_ms = overdue_ms;
    return writer_queue;
}

/* --- one turn ------------------------------------------------------------------------------------ */

static uint32_t owner_of(uint32_t word)
{
    return word & ((1 << OWNER_BITS) - 1);
}

_Atomic uint32_t *writer_queue_word(const struct segment *segment, uint32_t slot)
{
    assert(slot <= segment->slot_mask);
    return &segment->writer_queue[slot];
}

/* The word of our next turn; the count distinguishes it from our earlier ones. */
static uint32_t draw_word(const struct segment *segment)
{
    static uint32_t count;
    count = (count + 1) & ((1 << COUNT_BITS) - 1);
    return count << OWNER_BITS | (uint32_t)(segment_index(segment) + 1);
}

/* A change from `seen` to `next`. */
static bool writer_queue_change(_Atomic uint32_t *turn, uint32_t seen, uint32_t next)
{
    return atomic_compare_exchange_strong(turn, &seen, next);
}

/* Waits for the turn.  A process that has slept always wakes the next: others may sleep too. */
static bool writer_queue_await(const struct writer_queue *writer_queue, _Atomic uint32_t *turn, uint32_t word,
                               int64_t deadline_ms)
{
    uint32_t owner = 0; /* the owner's word, without SLEEPERS */
    int64_t overdue_ms = 0;
    for (;;) {
        uint32_t seen = atomic_load(turn);
        if (seen == 0) {
            if (writer_queue_change(turn, 0, word | SLEEPERS))
                return true;
            continue;
        }
        int64_t now_ms = clock_monotonic_ms();
        if ((seen & ~SLEEPERS) != owner) {
            owner = seen & ~SLEEPERS;
            overdue_ms = now_ms + writer_queue->overdue_ms;
        } else if (now_ms >= overdue_ms) {
            if (writer_queue_change(turn, seen, word | SLEEPERS))
                return true;
            continue;
        }
        if (now_ms >= deadline_ms) {
            futex_wake(turn); /* we may have been woken in another's place */
            return false;
        }
        if (seen & SLEEPERS || writer_queue_change(turn, seen, seen | SLEEPERS))
            futex_wait(turn, seen | SLEEPERS, (deadline_ms < overdue_ms ? deadline_ms : overdue_ms) - now_ms);
    }
}

static void give_writer_queue(_Atomic uint32_t *turn, uint32_t word)
{
    for (uint32_t seen = atomic_load(turn); (seen & ~SLEEPERS) == word; seen = atomic_load(turn)) {
        if (!writer_queue_change(turn, seen, 0))
            continue; /* a process has gone to sleep meanwhile */
        if (seen & SLEEPERS)
            futex_wake(turn);
        return;
    }
}

/* --- the turns of an operation ------------------------------------------------------------------- */

static void writer_queue_keep(struct writer_queue *writer_queue, uint32_t slot, uint32_t word)
{
    if (writer_queue->count == writer_queue->capacity) {
        size_t capacity = writer_queue->capacity ? writer_queue->capacity * 2 : 8;
        struct held_slot *held = ARENA_ARRAY(writer_queue->arena, struct held_slot, capacity);
        if (writer_queue->count)
            memcpy(held, writer_queue->held, writer_queue->count * sizeof *held);
        writer_queue->held = held;
        writer_queue->capacity = capacity;
    }
    writer_queue->held[writer_queue->count++] = (struct held_slot){slot, word};
    if (slot > writer_queue->highest)
        writer_queue->highest = slot;
}

static int compare_slots(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

void writer_queue_take(struct writer_queue *writer_queue, const uint32_t *slots, size_t count,
                       int64_t deadline_ms)
{
    uint32_t *sorted = ARENA_ARRAY(writer_queue->arena, uint32_t, count);
    memcpy(sorted, slots, count * sizeof *slots);
    qsort(sorted, count, sizeof *sorted, compare_slots);
    for (size_t i = 0; i < count; i++) {
        if (writer_queue_has(writer_queue, sorted[i]))
            continue;
        _Atomic uint32_t *turn = writer_queue_word(writer_queue->segment, sorted[i]);
        uint32_t word = draw_word(writer_queue->segment);
        bool may_wait = !writer_queue->count || sorted[i] > writer_queue->highest;
        if (!writer_queue_change(turn, 0, word) &&
            !(may_wait && writer_queue_await(writer_queue, turn, word, deadline_ms)))
            continue;
        writer_queue_keep(writer_queue, sorted[i], word);
        crash_at(CRASH_TURN_TAKEN);
    }
}

bool writer_queue_has(const struct writer_queue *writer_queue, uint32_t slot)
{
    for (size_t i = 0; i < writer_queue->count; i++)
        if (writer_queue->held[i].slot == slot)
            return true;
    return false;
}

void writer_queue_give(struct writer_queue *writer_queue)
{
    while (writer_queue->count) {
        const struct held_slot *held = &writer_queue->held[--writer_queue->count];
        give_writer_queue(writer_queue_word(writer_queue->segment, held->slot), held->word);
    }
    writer_queue->highest = 0;
}

void writer_queue_recover(struct segment *segment, int index)
{
    for (uint32_t slot = 0; slot <= segment->slot_mask; slot++) {
        _Atomic uint32_t *turn = writer_queue_word(segment, slot);
        uint32_t seen = atomic_load(turn);
        if (owner_of(seen) == (uint32_t)(index + 1))
            give_writer_queue(turn, seen & ~SLEEPERS);
    }
}

size_t writer_queue_size(const struct board_sizes *sizes)
{
    return sizes->slots * sizeof(_Atomic uint32_t);
}

void writer_queue_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->writer_queue = memory;
}
