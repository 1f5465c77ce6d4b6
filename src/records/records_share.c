/* records_share: what callers have of a namespace.
 *
 * A value that counts for a payer says so in its side, with the bytes that it is charged.  A share is found
 * by its digest in the buckets of the keys, so that a command takes as long whatever there is; it goes with
 * the last value that counts for it.  What it takes itself counts for it too: many payers with a record each
 * get no more than one with many. */
#include "records/records_private.h"

#include <string.h>

static struct share_piece *share_at(const struct records *records, uint32_t share)
{
    return pieces_at(&records->memory, share);
}

static uint32_t *records_share_bucket_of(const struct records *records, uint64_t digest)
{
    return records->memory.words + records->head->buckets + (digest & records->head->bucket_mask);
}

/* 0: there is none. */
static uint32_t records_share_find(const struct records *records, int space, uint64_t digest)
{
    uint32_t place = (uint32_t)space << 16 | SHARE_SIZE;
    for (uint32_t piece = *records_share_bucket_of(records, digest); piece;) {
        const struct share_piece *share = share_at(records, piece);
        if (share->place == place && undo_long(share->digest) == digest)
            return piece;
        piece = share->chain;
    }
    return 0;
}

/* The share, its parent, and all shares of the namespace. */
static void charge(struct records *records, uint32_t share, int64_t bytes, int values)
{
    struct records_space *space = &records->head->space[share_at(records, share)->place >> 16];
    for (; share; share = share_at(records, share)->parent) {
        struct share_piece *sums = share_at(records, share);
        undo_set_long(&records->memory, sums->bytes, undo_long(sums->bytes) + (uint64_t)bytes);
        undo_set(&records->memory, &sums->count, sums->count + (uint32_t)values);
    }
    undo_set_long(&records->memory, space->paid, undo_long(space->paid) + (uint64_t)bytes);
}

/* Found or made; 0: no memory. */
static uint32_t need(struct records *records, int space, uint64_t digest, uint32_t parent)
{
    uint32_t piece = records_share_find(records, space, digest);
    if (piece || !(piece = records_take(records, space, sizeof(struct share_piece))))
        return piece;
    uint32_t *bucket = records_share_bucket_of(records, digest);
    *share_at(records, piece) = (struct share_piece){.chain = *bucket,
                                                     .parent = parent,
                                                     .place = (uint32_t)space << 16 | SHARE_SIZE,
                                                     .digest = {(uint32_t)digest, (uint32_t)(digest >> 32)}};
    undo_set(&records->memory, bucket, piece);
    charge(records, piece, (int64_t)pieces_size(&records->memory, piece), 0);
    return piece;
}

/* Removes the share if nothing counts for it, and then its parent. */
static void spare(struct records *records, uint32_t piece)
{
    while (piece && !share_at(records, piece)->count) {
        struct share_piece *share = share_at(records, piece);
        uint32_t parent = share->parent, *link = records_share_bucket_of(records, undo_long(share->digest));
        charge(records, piece, -(int64_t)pieces_size(&records->memory, piece), 0);
        assert(!undo_long(share->bytes));
        while (*link != piece)
            link = &share_at(records, *link)->chain;
        undo_set(&records->memory, link, share->chain);
        records_give(records, (int)(share->place >> 16), piece);
        piece = parent;
    }
}

size_t records_weigh(const struct records *records, uint32_t piece)
{
    const struct memory *memory = &records->memory;
    const struct value_piece *value = records_value(records, piece);
    size_t weight = pieces_size(memory, piece);
    for (uint32_t key = value->keys; key; key = records_key(records, key)->sibling)
        weight += pieces_size(memory, key);
    if (value->side)
        weight += pieces_size(memory, value->side);
    if (value->side && records_side(records, value->side)->lease)
        weight += pieces_size(memory, records_side(records, value->side)->lease);
    return records_is_apart(value) ? weight + records_apart_size(records_size(value)) : weight;
}

static void set_charged(struct records *records, struct side_piece *side, uint32_t share, uint32_t charged)
{
    undo_set(&records->memory, &side->share, share);
    undo_set(&records->memory, &side->charged, charged);
}

void records_leave_share(struct records *records, uint32_t piece)
{
    const struct value_piece *value = records_value(records, piece);
    struct side_piece *side = value->side ? records_side(records, value->side) : NULL;
    uint32_t share = side ? side->share : 0;
    if (!share)
        return;
    charge(records, share, -(int64_t)side->charged, -1);
    set_charged(records, side, 0, 0);
    spare(records, share);
}

static void weigh_again(struct records *records, uint32_t piece, uint32_t share)
{
    struct side_piece *side = records_side(records, records_value(records, piece)->side);
    size_t weight = records_weigh(records, piece);
    charge(records, share, (int64_t)weight - (int64_t)side->charged, 0);
    set_charged(records, side, share, (uint32_t)weight);
}

bool records_settle_share(struct records *records, uint32_t piece, const struct records_payer *payer,
                          bool is_taken)
{
    const struct value_piece *value = records_value(records, piece);
    uint32_t present = value->side ? records_side(records, value->side)->share : 0;
    if (!present && !(payer && is_taken))
        return true;
    if (!is_taken) {
        weigh_again(records, piece, present);
        return true;
    }
    if (!payer) {
        records_leave_share(records, piece);
        records_spare_side(records, piece);
        return true;
    }
    int space = records_value_space(records, value);
    uint32_t rule = need(records, space, payer->rule, 0);
    uint32_t caller = rule ? need(records, space, payer->caller, rule) : 0;
    if (!caller || !records_need_side(records, piece))
        return false;
    if (caller != present) {
        charge(records, caller, 0, 1);
        records_leave_share(records, piece);
    }
    weigh_again(records, piece, caller);
    return true;
}

bool records_find_payer(const struct records *records, uint32_t piece, struct records_payer *payer_r)
{
    const struct value_piece *value = records_value(records, piece);
    uint32_t share = value->side ? records_side(records, value->side)->share : 0;
    *payer_r = (struct records_payer){0};
    if (!share)
        return false;
    payer_r->caller = undo_long(share_at(records, share)->digest);
    payer_r->rule = undo_long(share_at(records, share_at(records, share)->parent)->digest);
    return true;
}

/* --- limits --- */

void records_read_share(const struct records *records, int space, uint64_t digest, uint64_t *bytes_r,
                        uint64_t *values_r)
{
    uint32_t piece = records_share_find(records, space, digest);
    *bytes_r = piece ? undo_long(share_at(records, piece)->bytes) : 0;
    *values_r = piece ? share_at(records, piece)->count : 0;
}

static struct share_sums sum(const struct records *records, int space, const struct records_payer *payer)
{
    struct share_sums sums = {.paid = undo_long(records->head->space[space].paid)};
    records_read_share(records, space, payer->caller, &sums.caller_bytes, &sums.caller_records);
    records_read_share(records, space, payer->rule, &sums.rule_bytes, &sums.rule_records);
    return sums;
}

void records_note_shares(struct records *records, int space, const struct records_payer *payer)
{
    records->shares = sum(records, space, payer);
}

static bool is_beyond(uint64_t now, uint64_t before, uint64_t most)
{
    return most && now > most && now > before;
}

bool records_is_beyond_share(const struct records *records, int space, const struct records_payer *payer)
{
    const struct share_sums *before = &records->shares, now = sum(records, space, payer);
    return is_beyond(now.caller_bytes, before->caller_bytes, payer->caller_bytes) ||
           is_beyond(now.caller_records, before->caller_records, payer->caller_records) ||
           is_beyond(now.rule_bytes, before->rule_bytes, payer->rule_bytes) ||
           is_beyond(now.rule_records, before->rule_records, payer->rule_records) ||
           is_beyond(now.paid, before->paid, payer->payers_bytes);
}
