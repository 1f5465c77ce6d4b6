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
/* Returns the free piece that it is part of now. */
uint32_t pieces_give(const struct memory *memory, struct pieces *pieces, uint32_t piece);
/* Bytes that a piece takes from the memory, its head included. */
size_t pieces_size(const struct memory *memory, uint32_t piece);
/* What pieces_take uses for so many bytes, when it finds a piece that fits. */
size_t pieces_size_of(size_t bytes);

/* Two heaps side by side, each with pieces of its own: nothing is joined across the fence between them, which
 * is a piece that nobody gives back.  It moves over what is free on one of its sides: a change of its own, in
 * which nothing else is taken or given. */

/* As pieces_init; all is below the fence. */
void pieces_divide(const struct memory *memory, struct pieces *below, struct pieces *above, uint32_t *fence,
                   uint32_t start, uint32_t count);
/* Moves the fence so that the heap above, or below, has a piece for so many bytes more beside it.  False:
 * there is nothing free of this size before it, or behind it. */
MUST_USE bool pieces_lower(const struct memory *memory, struct pieces *below, struct pieces *above,
                           uint32_t *fence, size_t bytes);
MUST_USE bool pieces_raise(const struct memory *memory, struct pieces *below, struct pieces *above,
                           uint32_t *fence, size_t bytes);
/* Bytes that must be free in one place so that pieces_take is sure to find a piece for so many. */
size_t pieces_room_for(size_t bytes);

/* From piece to piece: the next one, 0: it was the last one of the memory. */
uint32_t pieces_next(const struct memory *memory, uint32_t piece);
bool pieces_is_free(const struct memory *memory, uint32_t piece);

/* The words of a piece for its owner. */
static inline void *pieces_at(const struct memory *memory, uint32_t piece)
{
    return memory->words + piece + 1;
}

#endif
