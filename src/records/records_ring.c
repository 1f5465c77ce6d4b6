/* records_ring: the keys that have changed, as a ring of words.  An entry is a word, the place of the key
 * (struct key_piece), and its text in whole words; positions count words since the memory was created.
 *
 * The words of an entry are written without notes of undo.h, the end of the ring with one: a change that is
 * taken back leaves nothing but words behind the end.  These were the oldest entries, so a quarter of the
 * ring is never read.  A change that would write more raises the floor instead, below which positions are
 * lost. */
#include "records/records_private.h"

#include <string.h>

enum {
    WORD = sizeof(uint32_t),
    SHARE = 32, /* of the memory */
    WORDS_LEAST = 1 << 14,
    WORDS_MOST = 1 << 21,
    WORDS_A_READ = 1 << 13
};
_Static_assert(WORDS_LEAST / 4 > 1 + RECORDS_KEY_MOST / WORD, "a key fits into what is never read");

uint32_t records_ring_words(size_t words)
{
    uint32_t most = WORDS_LEAST;
    while (most < WORDS_MOST && most * 2 <= words / SHARE)
        most *= 2;
    return most;
}

static uint32_t *ring_word(const struct records *records, uint64_t position)
{
    const struct changes_ring *ring = &records->head->ring;
    return records->memory.words + ring->first + (position & ring->mask);
}

static uint32_t words_of(uint32_t place)
{
    return 1 + ((place & UINT16_MAX) + WORD - 1) / WORD;
}

/* --- writing, under the lock --- */

void records_ring_append(struct records *records, int space, struct bytes key)
{
    struct changes_ring *ring = &records->head->ring;
    uint64_t end = undo_long(ring->end);
    uint32_t place = (uint32_t)space << 16 | (uint32_t)key.size, words = words_of(place);
    if (records->appended + words > (ring->mask + 1) / 4) {
        undo_set_long(&records->memory, ring->floor, end);
        return;
    }
    *ring_word(records, end) = place;
    for (uint32_t i = 1; i < words; i++) {
        size_t from = (size_t)(i - 1) * WORD, left = key.size - from;
        uint32_t word = 0;
        memcpy(&word, key.data + from, left < WORD ? left : WORD);
        *ring_word(records, end + i) = word;
    }
    records->appended += words;
    undo_set_long(&records->memory, ring->end, end + words);
}

/* --- reading, under the lock --- */

/* The key of an entry, which may go on at the start of the ring; with its size and position before it. */
static void copy_entry(const struct records *records, uint64_t position, struct builder *out)
{
    const struct changes_ring *ring = &records->head->ring;
    uint32_t place = *ring_word(records, position), size = place & UINT16_MAX;
    uint64_t next = position + words_of(place);
    size_t first = (size_t)((position + 1) & ring->mask), until_end = (ring->mask + 1 - first) * WORD;
    const char *text = (const char *)(records->memory.words + ring->first);
    size_t part = size < until_end ? size : until_end;
    builder_add(out, (const char *)&next, sizeof next);
    builder_add(out, (const char *)&size, sizeof size);
    builder_add(out, text + first * WORD, part);
    builder_add(out, text, size - part);
}

enum records_changes_end records_ring_read(const struct records *records, int space, uint64_t *position,
                                           struct builder *out)
{
    const struct changes_ring *ring = &records->head->ring;
    uint64_t end = undo_long(ring->end), kept = (uint64_t)(ring->mask + 1) / 4 * 3;
    uint64_t last = end - *position > WORDS_A_READ ? *position + WORDS_A_READ : end;
    if (*position > end || end - *position > kept || *position < undo_long(ring->floor)) {
        *position = end;
        return RECORDS_CHANGES_LOST;
    }
    while (*position < last) {
        uint32_t place = *ring_word(records, *position);
        assert(words_of(place) <= end - *position);
        if (space >= 0 && place >> 16 == (uint32_t)space)
            copy_entry(records, *position, out);
        *position += words_of(place);
    }
    return last == end ? RECORDS_CHANGES_ALL : RECORDS_CHANGES_MORE;
}
