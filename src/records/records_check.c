/* records_check: that pieces, keys, values and sums fit together; for tests. */
#include "records/records_private.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_FREE = 1, HEAD_UNITS = 2, HEAD_WORDS = 2 };

struct records_census {
    uint64_t used_words, free_words; /* of pieces, by their heads */
    uint64_t reached_words;          /* of pieces that something leads to */
    uint64_t keys, values, ends;
    uint64_t away, away_bytes;
    bool has_hand;             /* it stands at the beginning of a piece */
    uint64_t *charged, *payed; /* by the number of a share's piece: bytes, and values */
    uint64_t paid[RECORDS_SPACES_MOST];
    uint64_t bytes[RECORDS_SPACES_MOST], counts[RECORDS_SPACES_MOST];
};

static void walk_pieces(const struct records *records, struct records_census *census)
{
    const struct records_head *head = records->head;
    uint32_t piece = head->buckets + head->bucket_mask + 1;
    for (uint32_t words; (words = (records->memory.words[piece] >> HEAD_UNITS) * HEAD_WORDS);
         piece += words) {
        *(records->memory.words[piece] & HEAD_FREE ? &census->free_words : &census->used_words) += words;
        census->has_hand = census->has_hand || (piece > head->fence && piece == head->hand);
    }
    assert(census->has_hand || !head->hand);
    assert((size_t)(piece + 1) * sizeof(uint32_t) <= records->mapping.size);
    uint64_t free_units = (uint64_t)head->pieces.free_units + head->contents.free_units;
    assert(free_units * HEAD_WORDS == census->free_words);
}

static void reach(const struct records *records, struct records_census *census, int space, uint32_t piece)
{
    size_t bytes = pieces_size(&records->memory, piece);
    census->bytes[space] += bytes;
    census->reached_words += bytes / sizeof(uint32_t);
}

/* A content apart counts for its namespace wherever it is. */
static void reach_content(const struct records *records, struct records_census *census, int space,
                          uint32_t piece)
{
    const struct value_piece *value = records_value(records, piece);
    size_t size = records_size(value);
    uint32_t number;
    if (!records_is_apart(value))
        return;
    assert(records_goes_apart(size, records_flags(value)));
    census->bytes[space] += records_apart_size(size);
    if (records_is_away(value)) {
        census->away++;
        census->away_bytes += size;
        return;
    }
    memcpy(&number, value->content, sizeof number);
    const struct content_piece *content = pieces_at(&records->memory, number);
    assert(number > records->head->fence && content->value == piece);
    assert(pieces_size(&records->memory, number) >= records_apart_size(size));
    census->reached_words += pieces_size(&records->memory, number) / sizeof(uint32_t);
}

static void charge(const struct records *records, struct records_census *census, uint32_t share,
                   uint64_t bytes, uint64_t values)
{
    for (; share; share = ((struct share_piece *)pieces_at(&records->memory, share))->parent) {
        census->charged[share] += bytes;
        census->payed[share] += values;
    }
}

static void reach_share(const struct records *records, struct records_census *census, uint32_t piece)
{
    const struct share_piece *share = pieces_at(&records->memory, piece);
    size_t bytes = pieces_size(&records->memory, piece);
    reach(records, census, (int)(share->place >> 16), piece);
    charge(records, census, piece, bytes, 0);
    if (!share->parent)
        census->paid[share->place >> 16] += undo_long(share->bytes);
}

/* Of keys and shares, which a bucket has. */
static bool is_share(const struct records *records, uint32_t piece)
{
    return (records_key(records, piece)->place & UINT16_MAX) == SHARE_SIZE;
}

static void check_shares(const struct records *records, const struct records_census *census)
{
    const struct records_head *head = records->head;
    for (uint32_t i = 0; i <= head->bucket_mask; i++)
        for (uint32_t key = records->memory.words[head->buckets + i]; key;
             key = records_key(records, key)->chain) {
            const struct share_piece *share = pieces_at(&records->memory, key);
            assert(!is_share(records, key) || (share->count && share->count == census->payed[key] &&
                                               undo_long(share->bytes) == census->charged[key]));
        }
}

static void reach_side(const struct records *records, struct records_census *census, int space,
                       uint32_t value)
{
    uint32_t piece = records_value(records, value)->side;
    const struct side_piece *side = records_side(records, piece);
    reach(records, census, space, piece);
    if (side->lease)
        reach(records, census, space, side->lease);
    census->ends += undo_long(side->expires) > 0;
    assert(side->value == value);
    if (!side->share)
        return;
    assert(side->charged == records_weigh(records, value));
    charge(records, census, side->share, side->charged, 1);
}

/* A value is counted with the key that stands first in its list. */
static void walk_key(const struct records *records, struct records_census *census, uint32_t piece)
{
    const struct key_piece *key = records_key(records, piece);
    const struct value_piece *value = records_value(records, key->value);
    int space = (int)(key->place >> 16);
    uint32_t sibling = value->keys;
    reach(records, census, space, piece);
    census->keys++;
    assert(records_value_space(records, value) == space &&
           records_find(records, space, records_key_text(key)) == piece);
    while (sibling && sibling != piece)
        sibling = records_key(records, sibling)->sibling;
    assert(sibling == piece);
    if (value->keys != piece)
        return;
    reach(records, census, space, key->value);
    reach_content(records, census, space, key->value);
    if (value->side)
        reach_side(records, census, space, key->value);
    census->values++;
    census->counts[space]++;
    assert(records_type(value) < RECORDS_TYPES);
    assert(!(records_flags(value) & VALUE_PERSISTED) || records->head->space[space].kind != SPACE_OPEN);
}

/* The branches of a tree, in order; how many. */
static uint64_t walk_order(const struct records *records, const struct ordering *order, uint32_t piece,
                           uint32_t *last)
{
    if (!piece)
        return 0;
    const uint32_t *branches = &records->memory.words[piece + 1 + order->branches];
    uint64_t count = walk_order(records, order, branches[0], last);
    assert(!*last || order->compare(&records->memory, *last, piece) < 0);
    *last = piece;
    return count + 1 + walk_order(records, order, branches[1], last);
}

void records_check(struct records *records)
{
    struct records_head *head = records->head;
    struct records_census census = {0};
    uint32_t last_key = 0, last_end = 0;
    bool is_in = records_enter(records);
    assert(is_in);
    walk_pieces(records, &census);
    census.charged = calloc(records->mapping.size / sizeof(uint32_t), sizeof *census.charged);
    census.payed = calloc(records->mapping.size / sizeof(uint32_t), sizeof *census.payed);
    assert(census.charged && census.payed);
    for (uint32_t i = 0; i <= head->bucket_mask; i++)
        for (uint32_t key = records->memory.words[head->buckets + i]; key;
             key = records_key(records, key)->chain)
            (is_share(records, key) ? reach_share : walk_key)(records, &census, key);
    check_shares(records, &census);
    free(census.charged);
    free(census.payed);
    uint64_t unsaved = 0;
    for (uint32_t key = head->unsaved_first; key; key = records_key(records, key)->chain)
        unsaved += pieces_size(&records->memory, key);
    assert(unsaved == undo_long(head->unsaved_bytes));
    census.reached_words += unsaved / sizeof(uint32_t) + HEAD_WORDS; /* the last: the fence */
    assert(census.away == head->away && census.away_bytes == undo_long(head->away_bytes));
    assert(census.reached_words == census.used_words);
    assert(walk_order(records, &records->keys, head->key_root, &last_key) == census.keys);
    assert(walk_order(records, &records->ends, head->end_root, &last_end) == census.ends);
    for (uint32_t i = 0; i < head->spaces; i++)
        assert(undo_long(head->space[i].bytes) == census.bytes[i] &&
               head->space[i].count == census.counts[i] && undo_long(head->space[i].paid) == census.paid[i]);
    records_leave(records);
}
