/* records_table: keys and values, and what leads to them. */
#include "records/records_private.h"

#include <string.h>

#include "base/clock.h"

/* --- keys --- */

/* A command needs the hash of its key up to four times. */
static uint64_t records_table_hash_of(const struct records *records, int space, struct bytes key)
{
    struct hashed_key *last = records->hashed;
    assert(key.size <= RECORDS_KEY_MOST);
    if (last->size == key.size + 1 && last->text[0] == (char)space &&
        memcmp(last->text + 1, key.data, key.size) == 0)
        return last->hash;
    last->size = key.size + 1;
    last->text[0] = (char)space;
    memcpy(last->text + 1, key.data, key.size);
    return last->hash = siphash_short(&records->hash, (struct bytes){last->text, last->size});
}

/* Marks use other bits of the hash than buckets do. */
static uint32_t mark_of(const struct records *records, int space, struct bytes key)
{
    return (uint32_t)(records_table_hash_of(records, space, key) >> 40) % RECORDS_MARKS;
}

uint64_t records_mark(const struct records *records, int space, struct bytes key)
{
    uint32_t mark = mark_of(records, space, key);
    return (uint64_t)mark << 32 | atomic_load(&records->head->changed[mark]);
}

void records_note_change(struct records *records, int space, const struct value_piece *value,
                         struct bytes key)
{
    struct records_head *head = records->head;
    if (records_flags(value) & VALUE_DELETED)
        return;
    _Atomic uint32_t *changed = &head->changed[mark_of(records, space, key)];
    /* under the lock nobody else writes them */
    atomic_store_explicit(changed, atomic_load_explicit(changed, memory_order_relaxed) + 1,
                          memory_order_release);
    records_ring_append(records, space, key);
    atomic_store_explicit(&head->changes, atomic_load_explicit(&head->changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

static uint32_t *records_table_bucket_of(const struct records *records, int space, struct bytes key)
{
    uint64_t hash = records_table_hash_of(records, space, key);
    return records->memory.words + records->head->buckets + (hash & records->head->bucket_mask);
}

uint32_t records_find(const struct records *records, int space, struct bytes key)
{
    uint32_t place = (uint32_t)space << 16 | (uint32_t)key.size;
    for (uint32_t piece = *records_table_bucket_of(records, space, key); piece;) {
        const struct key_piece *found = records_key(records, piece);
        if (found->place == place && memcmp(found->text, key.data, key.size) == 0)
            return piece;
        piece = found->chain;
    }
    return 0;
}

static int records_table_compare(int space, struct bytes text, const struct key_piece *key)
{
    int other = (int)(key->place >> 16);
    return space != other ? (space > other) - (space < other) : bytes_compare(text, records_key_text(key));
}

int records_compare_keys(const struct memory *memory, uint32_t a, uint32_t b)
{
    const struct key_piece *key = pieces_at(memory, a);
    return records_table_compare((int)(key->place >> 16), records_key_text(key), pieces_at(memory, b));
}

int records_probe(const struct memory *memory, const void *sought, uint32_t piece)
{
    const struct records_sought *wanted = sought;
    int order = records_table_compare(wanted->space, wanted->key, pieces_at(memory, piece));
    return order == 0 && wanted->is_after ? 1 : order;
}

int records_compare_ends(const struct memory *memory, uint32_t a, uint32_t b)
{
    const struct side_piece *one = pieces_at(memory, a), *other = pieces_at(memory, b);
    uint64_t end = undo_long(one->expires), other_end = undo_long(other->expires);
    return end != other_end ? (end > other_end) - (end < other_end) : (a > b) - (a < b);
}

void records_count(struct records *records, int space, int64_t bytes, int values)
{
    struct records_space *sums = &records->head->space[space];
    undo_set_long(&records->memory, sums->bytes, undo_long(sums->bytes) + (uint64_t)bytes);
    undo_set(&records->memory, &sums->count, sums->count + (uint32_t)values);
}

uint32_t records_take(struct records *records, int space, size_t bytes)
{
    uint32_t piece = pieces_take(&records->memory, &records->head->pieces, bytes);
    if (piece)
        records_count(records, space, (int64_t)pieces_size(&records->memory, piece), 0);
    else
        records->lack = (struct room_lack){.bytes = bytes};
    return piece;
}

void records_give(struct records *records, int space, uint32_t piece)
{
    records_count(records, space, -(int64_t)pieces_size(&records->memory, piece), 0);
    records_give_later(records, piece);
}

bool records_add_key(struct records *records, int space, uint32_t value, struct bytes text)
{
    struct value_piece *owner = records_value(records, value);
    uint32_t piece = records_take(records, space, sizeof(struct key_piece) + text.size);
    if (!piece)
        return false;
    struct key_piece *key = records_key(records, piece);
    uint32_t *bucket = records_table_bucket_of(records, space, text);
    *key = (struct key_piece){.chain = *bucket,
                              .value = value,
                              .sibling = owner->keys,
                              .place = (uint32_t)space << 16 | (uint32_t)text.size};
    memcpy(key->text, text.data, text.size);
    undo_set(&records->memory, bucket, piece);
    undo_set(&records->memory, &owner->keys, piece);
    order_add(&records->memory, &records->keys, piece);
    records_note_change(records, space, owner, text);
    return true;
}

/* Takes the piece out of a list that begins with this link. */
static void unlink_from(struct records *records, uint32_t *link, uint32_t piece, bool is_bucket)
{
    while (*link != piece) {
        assert(*link);
        struct key_piece *key = records_key(records, *link);
        link = is_bucket ? &key->chain : &key->sibling;
    }
    struct key_piece *key = records_key(records, piece);
    undo_set(&records->memory, link, is_bucket ? key->chain : key->sibling);
}

void records_remove_key(struct records *records, uint32_t piece)
{
    struct key_piece *key = records_key(records, piece);
    int space = (int)(key->place >> 16);
    order_remove(&records->memory, &records->keys, piece);
    unlink_from(records, records_table_bucket_of(records, space, records_key_text(key)), piece, true);
    struct value_piece *value = records_value(records, key->value);
    records_note_change(records, space, value, records_key_text(key));
    unlink_from(records, &value->keys, piece, false);
    if (!(records_flags(value) & VALUE_PERSISTED)) {
        records_give(records, space, piece);
        return;
    }
    records_count(records, space, -(int64_t)pieces_size(&records->memory, piece), 0);
    records_list_removed(records, piece);
}

size_t records_count_keys(const struct records *records, uint32_t value)
{
    size_t keys = 0;
    for (uint32_t key = records_value(records, value)->keys; key; key = records_key(records, key)->sibling)
        keys++;
    return keys;
}

/* --- values --- */

void records_set_flags(struct records *records, uint32_t piece, uint32_t flags)
{
    struct value_piece *value = records_value(records, piece);
    undo_set(&records->memory, &value->timestamp[1], (value->timestamp[1] & ~(uint32_t)VALUE_FLAGS) | flags);
}

void records_set_type(struct records *records, uint32_t piece, enum records_type type)
{
    struct value_piece *value = records_value(records, piece);
    uint32_t rest = value->form & ~((uint32_t)VALUE_TYPE << VALUE_TYPE_BIT);
    undo_set(&records->memory, &value->form, rest | (uint32_t)type << VALUE_TYPE_BIT);
}

void records_set_timestamp(struct records *records, uint32_t piece, uint64_t timestamp_us)
{
    struct value_piece *value = records_value(records, piece);
    assert(timestamp_us <= VALUE_TIMESTAMP);
    undo_set_long(&records->memory, value->timestamp,
                  (undo_long(value->timestamp) & ~VALUE_TIMESTAMP) | timestamp_us);
}

/* --- sides --- */

uint32_t records_need_side(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    if (value->side)
        return value->side;
    uint32_t side = records_take(records, records_value_space(records, value), sizeof(struct side_piece));
    if (!side)
        return 0;
    *records_side(records, side) = (struct side_piece){.value = piece};
    undo_set(&records->memory, &value->side, side);
    return side;
}

bool records_set_expiry(struct records *records, uint32_t piece, int64_t expires_ms)
{
    uint64_t before = (uint64_t)records_end(records, records_value(records, piece));
    if (before == (uint64_t)expires_ms)
        return true;
    uint32_t side = records_need_side(records, piece);
    if (!side)
        return false;
    if (before)
        order_remove(&records->memory, &records->ends, side);
    undo_set_long(&records->memory, records_side(records, side)->expires, (uint64_t)expires_ms);
    if (expires_ms)
        order_add(&records->memory, &records->ends, side);
    return true;
}

bool records_set_touch(struct records *records, uint32_t piece, uint32_t touch_s)
{
    if (!touch_s && !records_value(records, piece)->side)
        return true;
    uint32_t side = records_need_side(records, piece);
    if (side)
        undo_set(&records->memory, &records_side(records, side)->touch_s, touch_s);
    return side;
}

void records_spare_side(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    const struct side_piece *side = value->side ? records_side(records, value->side) : NULL;
    if (!side || undo_long(side->expires) || side->touch_s || side->lease || side->share)
        return;
    records_give(records, records_value_space(records, value), value->side);
    undo_set(&records->memory, &value->side, 0);
}

uint32_t records_need_lease(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    uint32_t side = records_need_side(records, piece);
    if (!side || records_side(records, side)->lease)
        return side ? records_side(records, side)->lease : 0;
    uint32_t lease = records_take(records, records_value_space(records, value), sizeof(struct lease_piece));
    if (!lease)
        return 0;
    *records_lease(records, lease) = (struct lease_piece){0};
    undo_set(&records->memory, &records_side(records, side)->lease, lease);
    return lease;
}

void records_drop_lease(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    struct side_piece *side = value->side ? records_side(records, value->side) : NULL;
    if (!side || !side->lease)
        return;
    records_give(records, records_value_space(records, value), side->lease);
    undo_set(&records->memory, &side->lease, 0);
}
