/* undo: the memory of the records, and changes of it that happen whole or not at all, whoever dies.
 *
 * The holder of the lock changes words only through undo_set, which first notes what was there.  undo_commit
 * forgets the notes: this one store is the moment at which the change happens.  A holder that dies before
 * leaves its notes, and whoever takes the lock next writes them back, last one first.  Writing back can be
 * repeated, so the death of the one that repairs does no harm either.
 *
 * Memory that was taken in the same change may be written without a note: after the repair nothing refers to
 * it.  So a piece that was given back in a change must not be taken in it: pieces are given back last. */
#ifndef STAMPD_RECORDS_UNDO_H
#define STAMPD_RECORDS_UNDO_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/crash.h"

/* Notes of one change.  The most that a change writes: eight keys, each in and out of an order (twice the
 * depth of a tree each), and pieces taken and given back; a tenth of this. */
enum { UNDO_NOTES = 8191 };

struct undo_before {
    uint32_t word; /* its number, from the start of the memory */
    uint32_t before;
};

/* In the shared memory. */
struct undo {
    _Atomic uint32_t count;
    uint32_t reserved;
    struct undo_before notes[UNDO_NOTES];
};

/* Where the records lie, as this process sees them. */
struct memory {
    uint32_t *words; /* the start; word 0 belongs to nobody, so that number 0 is "none" */
    struct undo *undo;
};

/* Notes the word: from now on it may be written without undo_set. */
static inline void undo_note(const struct memory *memory, const uint32_t *word)
{
    struct undo *undo = memory->undo;
    uint32_t count = atomic_load_explicit(&undo->count, memory_order_relaxed);
    assert(count < UNDO_NOTES);
    undo->notes[count] = (struct undo_before){(uint32_t)(word - memory->words), *word};
    atomic_store_explicit(&undo->count, count + 1, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* the note, then the change */
    crash_at(CRASH_RECORDS_NOTED);
}

/* The same of several words, as one step. */
static inline void undo_note_words(const struct memory *memory, const uint32_t *words, uint32_t number)
{
    struct undo *undo = memory->undo;
    uint32_t count = atomic_load_explicit(&undo->count, memory_order_relaxed);
    uint32_t first = (uint32_t)(words - memory->words);
    assert(number <= UNDO_NOTES - count);
    for (uint32_t i = 0; i < number; i++)
        undo->notes[count + i] = (struct undo_before){first + i, words[i]};
    atomic_store_explicit(&undo->count, count + number, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* the notes, then the change */
    crash_at(CRASH_RECORDS_NOTED);
}

static inline void undo_set(const struct memory *memory, uint32_t *word, uint32_t value)
{
    if (*word == value)
        return;
    undo_note(memory, word);
    *(volatile uint32_t *)word = value;
}

/* A number of 64 bits in two words, the low one first. */
static inline void undo_set_long(const struct memory *memory, uint32_t word[2], uint64_t value)
{
    undo_set(memory, &word[0], (uint32_t)value);
    undo_set(memory, &word[1], (uint32_t)(value >> 32));
}

static inline uint64_t undo_long(const uint32_t word[2])
{
    return word[0] | (uint64_t)word[1] << 32;
}

static inline void undo_commit(const struct memory *memory)
{
    atomic_store_explicit(&memory->undo->count, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* nothing of the next change before */
    crash_at(CRASH_RECORDS_DONE);
}

/* Takes the change back. */
void undo_back(const struct memory *memory);

#endif
