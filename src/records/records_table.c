/* records_table: keys and values, and what leads to them. */
#include "records/records_private.h"

#include <string.h>

#include "base/clock.h"

/* --- keys --- */

static uint64_t hash_of(const struct records *records, int space, struct bytes key)
{
    char text[RECORDS_KEY_MOST + 1];
    assert(key.size <= RECORDS_KEY_MOST);
    text[0] = (char)space;
    memcpy(text + 1, key.data, key.size);
    return siphash_short(&records->hash, (struct bytes){text, key.size + 1});
}

/* Marks use other bits of the hash than buckets do. */
static uint32_t mark_of(const struct records *records, int space, struct bytes key)
{
    return (uint32_t)(hash_of(records, space, key) >> 40) % RECORDS_MARKS;
}

uint64_t records_mark(const struct records *records, int space, struct bytes key)
{
    uint32_t mark = mark_of(records, space, key);
    return (uint64_t)mark << 32 | atomic_load(&records->head->changed[mark]);
}

/* For listeners, before the commit.  Of a deletion that is only remembered, nobody sees anything. */
static void note(struct records *records, const struct value_piece *value, struct bytes key)
{
    struct records_head *head = records->head;
    int space = records_value_space(value);
    if (value->kind & VALUE_DELETED)
        return;
    atomic_fetch_add(&head->changed[mark_of(records, space, key)], 1);
    records_ring_append(records, space, key);
    atomic_fetch_add(&head->changes, 1);
}

static uint32_t *bucket_of(const struct records *records, int space, struct bytes key)
{
    uint64_t hash = hash_of(records, space, key);
    return records->memory.words + records->head->buckets + (hash & records->head->bucket_mask);
}

uint32_t records_find(const struct records *records, int space, struct bytes key)
{
    uint32_t place = (uint32_t)space << 16 | (uint32_t)key.size;
    for (uint32_t piece = *bucket_of(records, space, key); piece;) {
        const struct key_piece *found = records_key(records, piece);
        if (found->place == place && memcmp(found->text, key.data, key.size) == 0)
            return piece;
        piece = found->chain;
    }
    return 0;
}

static int compare(int space, struct bytes text, const struct key_piece *key)
{
    int other = (int)(key->place >> 16);
    return space != other ? (space > other) - (space < other) : bytes_compare(text, records_key_text(key));
}

int records_compare_keys(const struct memory *memory, uint32_t a, uint32_t b)
{
    const struct key_piece *key = pieces_at(memory, a);
    return compare((int)(key->place >> 16), records_key_text(key), pieces_at(memory, b));
}

int records_probe(const struct memory *memory, const void *sought, uint32_t piece)
{
    const struct records_sought *wanted = sought;
    int order = compare(wanted->space, wanted->key, pieces_at(memory, piece));
    return order == 0 && wanted->is_after ? 1 : order;
}

int records_compare_ends(const struct memory *memory, uint32_t a, uint32_t b)
{
    const struct value_piece *one = pieces_at(memory, a), *other = pieces_at(memory, b);
    uint64_t end = undo_long(one->expires), other_end = undo_long(other->expires);
    return end != other_end ? (end > other_end) - (end < other_end) : (a > b) - (a < b);
}

static void count(struct records *records, int space, int64_t bytes, int values)
{
    struct records_space *sums = &records->head->space[space];
    undo_set_long(&records->memory, sums->bytes, undo_long(sums->bytes) + (uint64_t)bytes);
    undo_set(&records->memory, &sums->count, sums->count + (uint32_t)values);
}

/* A new piece, counted for the namespace; 0: no memory. */
static uint32_t take(struct records *records, int space, size_t bytes)
{
    uint32_t piece = pieces_take(&records->memory, &records->head->pieces, bytes);
    if (piece)
        count(records, space, (int64_t)pieces_size(&records->memory, piece), 0);
    return piece;
}

static void give(struct records *records, int space, uint32_t piece)
{
    count(records, space, -(int64_t)pieces_size(&records->memory, piece), 0);
    records_give_later(records, piece);
}

bool records_add_key(struct records *records, uint32_t value, struct bytes text)
{
    struct value_piece *owner = records_value(records, value);
    int space = records_value_space(owner);
    uint32_t piece = take(records, space, sizeof(struct key_piece) + text.size);
    if (!piece)
        return false;
    struct key_piece *key = records_key(records, piece);
    uint32_t *bucket = bucket_of(records, space, text);
    *key = (struct key_piece){.chain = *bucket,
                              .value = value,
                              .sibling = owner->keys,
                              .place = (uint32_t)space << 16 | (uint32_t)text.size};
    memcpy(key->text, text.data, text.size);
    undo_set(&records->memory, bucket, piece);
    undo_set(&records->memory, &owner->keys, piece);
    order_add(&records->memory, &records->keys, piece);
    note(records, owner, text);
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
    unlink_from(records, bucket_of(records, space, records_key_text(key)), piece, true);
    struct value_piece *value = records_value(records, key->value);
    note(records, value, records_key_text(key));
    unlink_from(records, &value->keys, piece, false);
    if (!(value->kind & VALUE_PERSISTED)) {
        give(records, space, piece);
        return;
    }
    count(records, space, -(int64_t)pieces_size(&records->memory, piece), 0);
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

uint32_t records_make_value(struct records *records, int space, struct bytes content, enum records_type type)
{
    uint32_t piece = take(records, space, sizeof(struct value_piece) + content.size);
    if (!piece)
        return 0;
    struct value_piece *value = records_value(records, piece);
    uint32_t now_s = (uint32_t)(records->now_ms / 1000);
    *value = (struct value_piece){.size = (uint32_t)content.size,
                                  .kind = (uint32_t)type | (uint32_t)space << 16,
                                  .created_s = now_s,
                                  .modified_s = now_s,
                                  .accessed_s = now_s};
    if (content.size)
        memcpy(value->content, content.data, content.size);
    count(records, space, 0, 1);
    return piece;
}

void records_remove_value(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    while (value->keys)
        records_remove_key(records, value->keys);
    records_set_expiry(records, piece, 0);
    records_drop_lease(records, piece);
    count(records, records_value_space(value), 0, -1);
    give(records, records_value_space(value), piece);
}

void records_set_expiry(struct records *records, uint32_t piece, int64_t expires_ms)
{
    struct value_piece *value = records_value(records, piece);
    uint64_t before = undo_long(value->expires);
    if (before == (uint64_t)expires_ms)
        return;
    if (before)
        order_remove(&records->memory, &records->ends, piece);
    undo_set_long(&records->memory, value->expires, (uint64_t)expires_ms);
    if (expires_ms)
        order_add(&records->memory, &records->ends, piece);
}

/* In its place, when the piece fits: the words are noted one by one. */
static void overwrite(struct records *records, struct value_piece *value, struct bytes content)
{
    size_t whole = content.size / sizeof(uint32_t) * sizeof(uint32_t);
    uint32_t next = 0;
    for (size_t at = 0; at < whole; at += sizeof next) {
        memcpy(&next, content.data + at, sizeof next);
        undo_set(&records->memory, (uint32_t *)(void *)(value->content + at), next);
    }
    next = 0;
    memcpy(&next, content.data + whole, content.size - whole);
    if (whole < content.size)
        undo_set(&records->memory, (uint32_t *)(void *)(value->content + whole), next);
    undo_set(&records->memory, &value->size, (uint32_t)content.size);
}

enum { IN_PLACE_MOST = 1024 };

uint32_t records_set_content(struct records *records, uint32_t piece, struct bytes content)
{
    struct value_piece *value = records_value(records, piece);
    size_t need = sizeof *value + content.size;
    int space = records_value_space(value);
    for (uint32_t key = value->keys; key; key = records_key(records, key)->sibling)
        note(records, value, records_key_text(records_key(records, key)));
    undo_set(&records->memory, &value->modified_s, (uint32_t)(records->now_ms / 1000));
    if (content.size <= IN_PLACE_MOST && pieces_size_of(need) == pieces_size(&records->memory, piece)) {
        overwrite(records, value, content);
        return piece;
    }
    uint32_t moved = take(records, space, need);
    if (!moved)
        return 0;
    int64_t expires_ms = (int64_t)undo_long(value->expires);
    records_set_expiry(records, piece, 0);
    struct value_piece *copy = records_value(records, moved);
    memcpy(copy, value, sizeof *value);
    copy->size = (uint32_t)content.size;
    if (content.size)
        memcpy(copy->content, content.data, content.size);
    for (uint32_t key = copy->keys; key; key = records_key(records, key)->sibling)
        undo_set(&records->memory, &records_key(records, key)->value, moved);
    records_set_expiry(records, moved, expires_ms);
    give(records, space, piece);
    return moved;
}

uint32_t records_need_lease(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    if (value->lease)
        return value->lease;
    uint32_t lease = take(records, records_value_space(value), sizeof(struct lease_piece));
    if (!lease)
        return 0;
    *records_lease(records, lease) = (struct lease_piece){0};
    undo_set(&records->memory, &value->lease, lease);
    return lease;
}

void records_drop_lease(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    if (value->lease)
        give(records, records_value_space(value), value->lease);
    undo_set(&records->memory, &value->lease, 0);
}

int records_sweep(struct records *records, int most)
{
    int swept = 0;
    for (; swept < most; swept++) {
        uint32_t first = order_first(&records->memory, &records->ends);
        if (!first || undo_long(records_value(records, first)->expires) > (uint64_t)records->now_ms)
            break;
        records_remove_value(records, first);
        records_commit(records);
    }
    return swept;
}
