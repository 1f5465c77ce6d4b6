/* turns: a word a slot: who holds it, which of his turns it is, and whether somebody sleeps. */
#include "document/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "edge/futex.h"

/* 0: free; else 1 + index of the owner, his count of turns, and SLEEPERS when he has to wake somebody. */
enum { OWNER_BITS = 10, COUNT_BITS = 21 };
static const uint32_t SLEEPERS = UINT32_C(1) << 31;
_Static_assert(STAMPS_PROCESSES < 1 << OWNER_BITS && OWNER_BITS + COUNT_BITS == 31,
               "the parts fill the word");

struct held {
    uint32_t slot, word;
};

struct turns {
    struct arena *arena;
    struct stamps *stamps;
    struct held *held; /* in the order of slots, but for those that were free */
    size_t count, capacity;
    uint32_t highest; /* slot held */
    int64_t overdue_ms;
};

struct turns *turns_create(struct arena *arena, struct stamps *stamps, int64_t overdue_ms)
{
    struct turns *turns = ARENA_NEW(arena, struct turns);
    turns->arena = arena;
    turns->stamps = stamps;
    turns->overdue_ms = overdue_ms;
    return turns;
}

/* --- one turn ------------------------------------------------------------------------------------ */

static uint32_t owner_of(uint32_t word)
{
    return word & ((1 << OWNER_BITS) - 1);
}

/* The word of our next turn; a count tells it from our former ones. */
static uint32_t draw_word(const struct stamps *stamps)
{
    static uint32_t count;
    count = (count + 1) & ((1 << COUNT_BITS) - 1);
    return count << OWNER_BITS | (uint32_t)(stamps_index(stamps) + 1);
}

/* A change from `seen` to `next`. */
static bool change(_Atomic uint32_t *turn, uint32_t seen, uint32_t next)
{
    return atomic_compare_exchange_strong(turn, &seen, next);
}

/* Waits for the turn.  Who has slept wakes the next in any case: others may sleep too. */
static bool await(const struct turns *turns, _Atomic uint32_t *turn, uint32_t word, int64_t deadline_ms)
{
    uint32_t owner = 0; /* his word, without SLEEPERS */
    int64_t overdue_ms = 0;
    for (;;) {
        uint32_t seen = atomic_load(turn);
        if (seen == 0) {
            if (change(turn, 0, word | SLEEPERS))
                return true;
            continue;
        }
        int64_t now_ms = clock_monotonic_ms();
        if ((seen & ~SLEEPERS) != owner) {
            owner = seen & ~SLEEPERS;
            overdue_ms = now_ms + turns->overdue_ms;
        } else if (now_ms >= overdue_ms) {
            if (change(turn, seen, word | SLEEPERS))
                return true;
            continue;
        }
        if (now_ms >= deadline_ms) {
            futex_wake(turn); /* we may have been woken in another's place */
            return false;
        }
        if (seen & SLEEPERS || change(turn, seen, seen | SLEEPERS))
            futex_wait(turn, seen | SLEEPERS, (deadline_ms < overdue_ms ? deadline_ms : overdue_ms) - now_ms);
    }
}

static void give(_Atomic uint32_t *turn, uint32_t word)
{
    for (uint32_t seen = atomic_load(turn); (seen & ~SLEEPERS) == word; seen = atomic_load(turn)) {
        if (!change(turn, seen, 0))
            continue; /* somebody has gone to sleep meanwhile */
        if (seen & SLEEPERS)
            futex_wake(turn);
        return;
    }
}

/* --- the turns of an operation ------------------------------------------------------------------- */

static void keep(struct turns *turns, uint32_t slot, uint32_t word)
{
    if (turns->count == turns->capacity) {
        size_t capacity = turns->capacity ? turns->capacity * 2 : 8;
        struct held *held = ARENA_ARRAY(turns->arena, struct held, capacity);
        if (turns->count)
            memcpy(held, turns->held, turns->count * sizeof *held);
        turns->held = held;
        turns->capacity = capacity;
    }
    turns->held[turns->count++] = (struct held){slot, word};
    if (slot > turns->highest)
        turns->highest = slot;
}

static int compare_slots(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

void turns_take(struct turns *turns, const uint32_t *slots, size_t count, int64_t deadline_ms)
{
    uint32_t *sorted = ARENA_ARRAY(turns->arena, uint32_t, count);
    memcpy(sorted, slots, count * sizeof *slots);
    qsort(sorted, count, sizeof *sorted, compare_slots);
    for (size_t i = 0; i < count; i++) {
        if (turns_has(turns, sorted[i]))
            continue;
        _Atomic uint32_t *turn = stamps_turn(turns->stamps, sorted[i]);
        uint32_t word = draw_word(turns->stamps);
        bool may_wait = !turns->count || sorted[i] > turns->highest;
        if (!change(turn, 0, word) && !(may_wait && await(turns, turn, word, deadline_ms)))
            continue;
        keep(turns, sorted[i], word);
        crash_at(CRASH_TURN_TAKEN);
    }
}

bool turns_has(const struct turns *turns, uint32_t slot)
{
    for (size_t i = 0; i < turns->count; i++)
        if (turns->held[i].slot == slot)
            return true;
    return false;
}

void turns_give(struct turns *turns)
{
    while (turns->count) {
        const struct held *held = &turns->held[--turns->count];
        give(stamps_turn(turns->stamps, held->slot), held->word);
    }
    turns->highest = 0;
}

void turns_recover(struct stamps *stamps, int index)
{
    for (uint32_t slot = 0; slot <= stamps->slot_mask; slot++) {
        _Atomic uint32_t *turn = stamps_turn(stamps, slot);
        uint32_t seen = atomic_load(turn);
        if (owner_of(seen) == (uint32_t)(index + 1))
            give(turn, seen & ~SLEEPERS);
    }
}
