/* pieces: divides the memory of the records into pieces of any size, and joins those that are free again.
 *
 * Two levels of lists of free pieces, by the logarithm of the size and four more bits (TLSF): both taking and
 * giving back are a few words, whatever there is.  A piece is known by the number of its first word, its
 * head: sizes are in units of two words.  All changes are notes of undo.h. */
#ifndef STAMPD_RECORDS_PIECES_H
#define STAMPD_RECORDS_PIECES_H

#include "records/undo.h"

enum { PIECES_RANKS = 29, PIECES_LISTS = 16 };

/* In the shared memory. */
struct pieces {
    uint32_t ranks;               /* bits: ranks with a free piece */
    uint32_t lists[PIECES_RANKS]; /* bits: their lists with one */
    uint32_t first[PIECES_RANKS][PIECES_LISTS];
    uint32_t free_units;
};

/* Makes the words from `start` on, `count` of them, one free piece.  Zeroed pieces only; without notes. */
void pieces_init(const struct memory *memory, struct pieces *pieces, uint32_t start, uint32_t count);
/* A piece for so many bytes; 0: there is no room.  Its words are not zeroed. */
MUST_USE uint32_t pieces_take(const struct memory *memory, struct pieces *pieces, size_t bytes);
void pieces_give(const struct memory *memory, struct pieces *pieces, uint32_t piece);
/* Bytes that a piece takes from the memory, its head included. */
size_t pieces_size(const struct memory *memory, uint32_t piece);
/* What pieces_take uses for so many bytes, when it finds a piece that fits. */
size_t pieces_size_of(size_t bytes);

/* The words of a piece for its owner. */
static inline void *pieces_at(const struct memory *memory, uint32_t piece)
{
    return memory->words + piece + 1;
}

#endif
