/* activity: a ring of samples, each with its number. */
#include "segment/counts/activity.h"

#include <string.h>

enum {
    ACTIVITY_WORDS = sizeof(struct activity_sample) / sizeof(uint64_t),
    NUMBER_WORD = offsetof(struct activity_sample, number) / sizeof(uint64_t),
};
_Static_assert(NUMBER_WORD == 0, "a sample begins with its number");

bool activity_take_turn(struct segment *segment, int64_t now_ms)
{
    struct activity_board *board = segment->activity;
    int64_t next_ms = atomic_load(&board->next_ms);
    /* A turn that is too far away is of a clock that has begun again. */
    if (next_ms && now_ms < next_ms && next_ms - now_ms <= ACTIVITY_EVERY_MS)
        return false;
    return atomic_compare_exchange_strong(&board->next_ms, &next_ms, now_ms + ACTIVITY_EVERY_MS);
}

void activity_add(struct segment *segment, const struct activity_sample *sample)
{
    uint64_t words[ACTIVITY_WORDS];
    memcpy(words, sample, sizeof words);
    uint64_t number = atomic_fetch_add(&segment->activity->count, 1) + 1;
    struct activity_entry *entry = &segment->activity->entries[number % ACTIVITY_KEPT];
    atomic_store(&entry->words[NUMBER_WORD], 0);
    for (size_t i = NUMBER_WORD + 1; i < ACTIVITY_WORDS; i++)
        atomic_store(&entry->words[i], words[i]);
    atomic_store(&entry->words[NUMBER_WORD], number);
}

uint64_t activity_newest(const struct segment *segment)
{
    return atomic_load(&segment->activity->count);
}

bool activity_read(const struct segment *segment, uint64_t number, struct activity_sample *sample_r)
{
    const struct activity_entry *entry = &segment->activity->entries[number % ACTIVITY_KEPT];
    uint64_t words[ACTIVITY_WORDS];
    if (!number || atomic_load(&entry->words[NUMBER_WORD]) != number)
        return false;
    words[NUMBER_WORD] = number;
    for (size_t i = NUMBER_WORD + 1; i < ACTIVITY_WORDS; i++)
        words[i] = atomic_load(&entry->words[i]);
    memcpy(sample_r, words, sizeof words);
    return atomic_load(&entry->words[NUMBER_WORD]) == number;
}

size_t activity_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct activity_board);
}

void activity_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->activity = memory;
}
