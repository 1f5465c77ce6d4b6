/* pieces: boundary tags.
 *
 *   piece in use:  head | words of the owner
 *   free piece:    head | next in list | previous in list | … | units (the last word)
 *
 * A head has the units above, and whether this piece and the one before it are free.  The last piece is
 * followed by the head of an empty one in use, so that nothing is ever joined with what lies behind. */
#include "records/pieces.h"

enum { IS_FREE = 1, IS_BEFORE_FREE = 2, FLAG_BITS = 2 };
enum { UNIT_WORDS = 2, UNIT_BYTES = 8, LEAST_UNITS = 2, FENCE_UNITS = 1, FEW = 32 };

static uint32_t units_of(const struct memory *memory, uint32_t piece)
{
    return memory->words[piece] >> FLAG_BITS;
}

static bool has(const struct memory *memory, uint32_t piece, uint32_t flag)
{
    return memory->words[piece] & flag;
}

static uint32_t after(const struct memory *memory, uint32_t piece)
{
    return piece + units_of(memory, piece) * UNIT_WORDS;
}

static uint32_t *next_of(const struct memory *memory, uint32_t piece)
{
    return &memory->words[piece + 1];
}

static uint32_t *previous_of(const struct memory *memory, uint32_t piece)
{
    return &memory->words[piece + 2];
}

static uint32_t highest(uint32_t number)
{
    return 31 - (uint32_t)__builtin_clz(number);
}

/* The list that a free piece of this size is in. */
static void find_list(uint32_t units, uint32_t *rank_r, uint32_t *list_r)
{
    uint32_t top = highest(units);
    bool is_small = units < PIECES_LISTS;
    *rank_r = is_small ? 0 : top - 3;
    *list_r = is_small ? units : units >> (top - 4) & (PIECES_LISTS - 1);
}

static void pieces_put(const struct memory *memory, struct pieces *pieces, uint32_t piece, uint32_t units)
{
    uint32_t rank, list;
    find_list(units, &rank, &list);
    uint32_t *first = &pieces->first[rank][list];
    undo_set(memory, next_of(memory, piece), *first);
    undo_set(memory, previous_of(memory, piece), 0);
    if (*first)
        undo_set(memory, previous_of(memory, *first), piece);
    undo_set(memory, first, piece);
    undo_set(memory, &pieces->lists[rank], pieces->lists[rank] | 1u << list);
    undo_set(memory, &pieces->ranks, pieces->ranks | 1u << rank);
    undo_set(memory, &memory->words[piece + units * UNIT_WORDS - 1], units);
    undo_set(memory, &pieces->free_units, pieces->free_units + units);
}

static void pull(const struct memory *memory, struct pieces *pieces, uint32_t piece)
{
    uint32_t rank, list, units = units_of(memory, piece);
    uint32_t next = *next_of(memory, piece), previous = *previous_of(memory, piece);
    find_list(units, &rank, &list);
    if (next)
        undo_set(memory, previous_of(memory, next), previous);
    if (previous)
        undo_set(memory, next_of(memory, previous), next);
    else
        undo_set(memory, &pieces->first[rank][list], next);
    if (!pieces->first[rank][list]) {
        undo_set(memory, &pieces->lists[rank], pieces->lists[rank] & ~(1u << list));
        if (!pieces->lists[rank])
            undo_set(memory, &pieces->ranks, pieces->ranks & ~(1u << rank));
    }
    undo_set(memory, &pieces->free_units, pieces->free_units - units);
}

void pieces_init(const struct memory *memory, struct pieces *pieces, uint32_t start, uint32_t count)
{
    uint32_t units = (count - 1) / UNIT_WORDS;
    uint32_t rank, list;
    assert(units >= LEAST_UNITS);
    find_list(units, &rank, &list);
    *pieces = (struct pieces){.ranks = 1u << rank, .free_units = units};
    pieces->lists[rank] = 1u << list;
    pieces->first[rank][list] = start;
    memory->words[start] = units << FLAG_BITS | IS_FREE;
    *next_of(memory, start) = *previous_of(memory, start) = 0;
    memory->words[start + units * UNIT_WORDS - 1] = units;
    memory->words[start + units * UNIT_WORDS] = IS_BEFORE_FREE;
}

static uint32_t units_for(size_t bytes)
{
    size_t units = (bytes + sizeof(uint32_t) + UNIT_BYTES - 1) / UNIT_BYTES;
    return units < LEAST_UNITS ? LEAST_UNITS : (uint32_t)units;
}

/* One of the list that also has smaller ones; 0: none of the first few. */
static uint32_t find_among(const struct memory *memory, const struct pieces *pieces, uint32_t units)
{
    uint32_t rank, list;
    find_list(units, &rank, &list);
    uint32_t piece = pieces->first[rank][list];
    for (int i = 0; piece && i < FEW; i++, piece = *next_of(memory, piece))
        if (units_of(memory, piece) >= units)
            return piece;
    return 0;
}

/* All pieces of its list, and of those after it, are large enough. */
static uint32_t rounded(uint32_t units)
{
    return units < PIECES_LISTS ? units : units + (1u << (highest(units) - 4)) - 1;
}

/* The first piece of the first list all of whose pieces are large enough; 0: there is none. */
static uint32_t pieces_find(const struct pieces *pieces, uint32_t units)
{
    uint32_t rank, list;
    find_list(rounded(units), &rank, &list);
    uint32_t lists = pieces->lists[rank] & ~0u << list;
    if (!lists) {
        uint32_t ranks = pieces->ranks & ~0u << (rank + 1);
        if (!ranks)
            return 0;
        rank = (uint32_t)__builtin_ctz(ranks);
        lists = pieces->lists[rank];
    }
    return pieces->first[rank][__builtin_ctz(lists)];
}

uint32_t pieces_take(const struct memory *memory, struct pieces *pieces, size_t bytes)
{
    if (bytes > UINT32_MAX / 2)
        return 0;
    uint32_t units = units_for(bytes), piece = pieces_find(pieces, units);
    if (!piece)
        piece = find_among(memory, pieces, units);
    if (!piece)
        return 0;
    uint32_t whole = units_of(memory, piece), left = whole - units, behind = after(memory, piece);
    pull(memory, pieces, piece);
    if (left >= LEAST_UNITS) {
        uint32_t rest = piece + units * UNIT_WORDS;
        undo_set(memory, &memory->words[rest], left << FLAG_BITS | IS_FREE);
        pieces_put(memory, pieces, rest, left);
    } else {
        units = whole;
        undo_set(memory, &memory->words[behind], memory->words[behind] & ~(uint32_t)IS_BEFORE_FREE);
        undo_note(memory, &memory->words[behind - 1]);
    }
    undo_note(memory, next_of(memory, piece)); /* these are its owner's now, who writes them without notes */
    undo_note(memory, previous_of(memory, piece));
    undo_set(memory, &memory->words[piece], units << FLAG_BITS | (memory->words[piece] & IS_BEFORE_FREE));
    return piece;
}

uint32_t pieces_give(const struct memory *memory, struct pieces *pieces, uint32_t piece)
{
    uint32_t units = units_of(memory, piece), behind = after(memory, piece);
    assert(!has(memory, piece, IS_FREE));
    if (has(memory, behind, IS_FREE)) {
        pull(memory, pieces, behind);
        units += units_of(memory, behind);
    }
    if (has(memory, piece, IS_BEFORE_FREE)) {
        piece -= memory->words[piece - 1] * UNIT_WORDS;
        pull(memory, pieces, piece);
        units += units_of(memory, piece);
    }
    behind = piece + units * UNIT_WORDS;
    undo_set(memory, &memory->words[piece], units << FLAG_BITS | IS_FREE);
    undo_set(memory, &memory->words[behind], memory->words[behind] | IS_BEFORE_FREE);
    pieces_put(memory, pieces, piece, units);
    return piece;
}

size_t pieces_size(const struct memory *memory, uint32_t piece)
{
    return (size_t)units_of(memory, piece) * UNIT_BYTES;
}

size_t pieces_size_of(size_t bytes)
{
    return (size_t)units_for(bytes) * UNIT_BYTES;
}

size_t pieces_room_for(size_t bytes)
{
    return (size_t)rounded(units_for(bytes)) * UNIT_BYTES;
}

uint32_t pieces_next(const struct memory *memory, uint32_t piece)
{
    uint32_t next = after(memory, piece);
    return units_of(memory, next) ? next : 0;
}

bool pieces_is_free(const struct memory *memory, uint32_t piece)
{
    return has(memory, piece, IS_FREE);
}

/* --- the fence --- */

void pieces_divide(const struct memory *memory, struct pieces *below, struct pieces *above, uint32_t *fence,
                   uint32_t start, uint32_t count)
{
    pieces_init(memory, below, start, count - FENCE_UNITS * UNIT_WORDS);
    *above = (struct pieces){0};
    *fence = after(memory, start);
    memory->words[*fence] = FENCE_UNITS << FLAG_BITS | IS_BEFORE_FREE;
    memory->words[after(memory, *fence)] = 0;
}

/* How many units of a free piece go to the other side: those that are wanted, and what is too little to
 * remain.  0: it is too small. */
static uint32_t pieces_cut(uint32_t whole, size_t bytes)
{
    size_t units = (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
    units = units < LEAST_UNITS ? LEAST_UNITS : units;
    return whole < units ? 0 : whole - units < LEAST_UNITS ? whole : (uint32_t)units;
}

bool pieces_lower(const struct memory *memory, struct pieces *below, struct pieces *above, uint32_t *fence,
                  size_t bytes)
{
    uint32_t whole = has(memory, *fence, IS_BEFORE_FREE) ? memory->words[*fence - 1] : 0;
    uint32_t units = pieces_cut(whole, bytes), left = whole - units;
    if (!units)
        return false;
    uint32_t piece = *fence - whole * UNIT_WORDS, next = *fence - units * UNIT_WORDS;
    uint32_t opened = next + FENCE_UNITS * UNIT_WORDS;
    pull(memory, below, piece);
    if (left) {
        undo_set(memory, &memory->words[piece], left << FLAG_BITS | IS_FREE);
        pieces_put(memory, below, piece, left);
    }
    undo_set(memory, &memory->words[next],
             (uint32_t)FENCE_UNITS << FLAG_BITS | (left ? (uint32_t)IS_BEFORE_FREE : 0));
    undo_set(memory, &memory->words[opened], units << FLAG_BITS);
    undo_set(memory, fence, next);
    pieces_give(memory, above, opened);
    return true;
}

bool pieces_raise(const struct memory *memory, struct pieces *below, struct pieces *above, uint32_t *fence,
                  size_t bytes)
{
    uint32_t piece = after(memory, *fence), former = *fence;
    uint32_t whole = has(memory, piece, IS_FREE) ? units_of(memory, piece) : 0;
    uint32_t units = pieces_cut(whole, bytes), left = whole - units;
    if (!units)
        return false;
    uint32_t next = former + units * UNIT_WORDS, rest = next + FENCE_UNITS * UNIT_WORDS;
    uint32_t behind = after(memory, piece);
    pull(memory, above, piece);
    if (left) {
        undo_set(memory, &memory->words[rest], left << FLAG_BITS | IS_FREE);
        pieces_put(memory, above, rest, left);
    } else {
        undo_set(memory, &memory->words[behind], memory->words[behind] & ~(uint32_t)IS_BEFORE_FREE);
    }
    undo_set(memory, &memory->words[next], (uint32_t)FENCE_UNITS << FLAG_BITS);
    undo_set(memory, &memory->words[former],
             units << FLAG_BITS | (memory->words[former] & (uint32_t)IS_BEFORE_FREE));
    undo_set(memory, fence, next);
    pieces_give(memory, below, former);
    return true;
}
