/* records_content: values: made, changed and removed, with contents behind them or apart. */
#include "records/records_private.h"

#include <string.h>

enum { IN_PLACE_MOST = 1024 };

static struct content_piece *piece_at(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

/* Behind the value of a content apart. */
static uint32_t *records_content_place_of(struct value_piece *value)
{
    return (uint32_t *)(void *)value->content;
}

bool records_goes_apart(size_t size, uint32_t flags)
{
    return size >= RECORDS_APART_LEAST && flags & VALUE_PERSISTED && !(flags & VALUE_DELETED);
}

uint32_t records_digest(const struct records *records, struct bytes content)
{
    return (uint32_t)siphash_short(&records->hash, content);
}

uint32_t records_away_digest(const struct records *records, uint32_t piece)
{
    assert(records_is_away(records_value(records, piece)));
    return records_apart(records_value(records, piece));
}

/* --- pieces --- */

/* A piece above the fence; 0: no memory. */
static uint32_t take_apart(struct records *records, uint32_t value, struct bytes content)
{
    size_t need = sizeof(struct content_piece) + content.size;
    uint32_t piece = pieces_take(&records->memory, &records->head->contents, need);
    if (!piece) {
        records->lack = (struct room_lack){.bytes = need, .is_apart = true};
        return 0;
    }
    piece_at(records, piece)->value = value;
    memcpy(piece_at(records, piece)->text, content.data, content.size);
    return piece;
}

static void count_away(struct records *records, size_t size, int by)
{
    struct records_head *head = records->head;
    undo_set(&records->memory, &head->away, head->away + (uint32_t)by);
    undo_set_long(&records->memory, head->away_bytes,
                  undo_long(head->away_bytes) + (uint64_t)((int64_t)size * by));
}

/* The piece of the content, or that it is away. */
static void leave_apart(struct records *records, const struct value_piece *value)
{
    if (records_is_away(value))
        count_away(records, records_size(value), -1);
    else
        records_give_later(records, records_apart(value));
}

static void drop_content(struct records *records, int space, uint32_t piece)
{
    const struct value_piece *value = records_value(records, piece);
    if (!records_is_apart(value))
        return;
    leave_apart(records, value);
    records_count(records, space, -(int64_t)records_apart_size(records_size(value)), 0);
}

/* --- values --- */

/* One word, under the lock: whole without a note.  A change that is taken back leaves its number out. */
static uint32_t number_change(struct records *records)
{
    return *(volatile uint32_t *)&records->head->last_change = records->head->last_change + 1;
}

static uint32_t records_content_make(struct records *records, int space, uint32_t form, size_t bytes)
{
    uint32_t piece = records_take(records, space, sizeof(struct value_piece) + bytes);
    if (!piece)
        return 0;
    uint32_t now_s = (uint32_t)(records->now_ms / 1000);
    *records_value(records, piece) = (struct value_piece){.form = form,
                                                          .created_s = now_s,
                                                          .modified_s = now_s,
                                                          .accessed_s = now_s,
                                                          .change = number_change(records)};
    records_count(records, space, form & VALUE_APART ? (int64_t)records_apart_size(form & VALUE_SIZE) : 0, 1);
    return piece;
}

static uint32_t form_of(size_t size, enum records_type type, bool is_apart)
{
    return (uint32_t)size | (uint32_t)type << VALUE_TYPE_BIT | (is_apart ? VALUE_APART | VALUE_USED : 0);
}

uint32_t records_make_value(struct records *records, int space, struct bytes content, enum records_type type,
                            bool is_apart)
{
    uint32_t piece = records_content_make(records, space, form_of(content.size, type, is_apart),
                                          is_apart ? sizeof(uint32_t) : content.size);
    if (!piece)
        return 0;
    struct value_piece *value = records_value(records, piece);
    if (is_apart)
        return (*records_content_place_of(value) = take_apart(records, piece, content)) ? piece : 0;
    if (content.size)
        memcpy(value->content, content.data, content.size);
    return piece;
}

uint32_t records_make_away(struct records *records, int space, struct bytes content, enum records_type type)
{
    uint32_t piece =
        records_content_make(records, space, form_of(content.size, type, true), sizeof(uint32_t));
    if (!piece)
        return 0;
    *records_content_place_of(records_value(records, piece)) = records_digest(records, content);
    records_set_state(records, records_value(records, piece), VALUE_AWAY);
    count_away(records, content.size, 1);
    return piece;
}

/* In its place, when the piece fits. */
static void overwrite(struct records *records, char *place, struct bytes content)
{
    if (!content.size || memcmp(place, content.data, content.size) == 0)
        return;
    uint32_t words = (uint32_t)((content.size + sizeof(uint32_t) - 1) / sizeof(uint32_t));
    undo_note_words(&records->memory, (uint32_t *)(void *)place, words);
    memcpy(place, content.data, content.size);
}

static bool fits(const struct records *records, uint32_t piece, size_t bytes)
{
    return bytes <= IN_PLACE_MOST && pieces_size_of(bytes) == pieces_size(&records->memory, piece);
}

/* The value in another piece; its content is not set. */
static uint32_t move(struct records *records, int space, uint32_t piece, size_t bytes)
{
    uint32_t moved = records_take(records, space, sizeof(struct value_piece) + bytes);
    if (!moved)
        return 0;
    struct value_piece *copy = records_value(records, moved);
    *copy = *records_value(records, piece);
    for (uint32_t key = copy->keys; key; key = records_key(records, key)->sibling)
        undo_set(&records->memory, &records_key(records, key)->value, moved);
    if (copy->side)
        undo_set(&records->memory, &records_side(records, copy->side)->value, moved);
    records_give(records, space, piece);
    return moved;
}

static void set_form(struct records *records, uint32_t piece, size_t size, bool is_apart)
{
    struct value_piece *value = records_value(records, piece);
    undo_set(&records->memory, &value->form, form_of(size, records_type(value), is_apart));
}

static uint32_t set_behind(struct records *records, int space, uint32_t piece, struct bytes content)
{
    struct value_piece *value = records_value(records, piece);
    uint32_t moved = piece;
    if (fits(records, piece, sizeof *value + content.size)) {
        drop_content(records, space, piece);
        overwrite(records, value->content, content);
    } else {
        moved = move(records, space, piece, content.size);
        if (!moved)
            return 0;
        drop_content(records, space, piece);
        if (content.size)
            memcpy(records_value(records, moved)->content, content.data, content.size);
    }
    set_form(records, moved, content.size, false);
    return moved;
}

static uint32_t set_apart(struct records *records, int space, uint32_t piece, struct bytes content)
{
    struct value_piece *value = records_value(records, piece);
    bool was_apart = records_is_apart(value);
    uint32_t present = was_apart && !records_is_away(value) ? records_apart(value) : 0, moved = piece;
    if (present && fits(records, present, sizeof(struct content_piece) + content.size)) {
        overwrite(records, piece_at(records, present)->text, content);
        records_count(
            records, space,
            (int64_t)records_apart_size(content.size) - (int64_t)records_apart_size(records_size(value)), 0);
    } else {
        if (!was_apart && !(moved = move(records, space, piece, sizeof(uint32_t))))
            return 0;
        uint32_t taken = take_apart(records, moved, content);
        if (!taken)
            return 0;
        drop_content(records, space, piece);
        records_count(records, space, (int64_t)records_apart_size(content.size), 0);
        undo_set(&records->memory, records_content_place_of(records_value(records, moved)), taken);
    }
    set_form(records, moved, content.size, true);
    return moved;
}

uint32_t records_set_content(struct records *records, uint32_t piece, struct bytes content, bool is_apart)
{
    struct value_piece *value = records_value(records, piece);
    int space = records_value_space(records, value);
    for (uint32_t key = value->keys; key; key = records_key(records, key)->sibling)
        records_note_change(records, space, value, records_key_text(records_key(records, key)));
    undo_set(&records->memory, &value->modified_s, (uint32_t)(records->now_ms / 1000));
    undo_set(&records->memory, &value->change, number_change(records));
    uint32_t left =
        is_apart ? set_apart(records, space, piece, content) : set_behind(records, space, piece, content);
    if (left)
        records_set_state(records, records_value(records, left), VALUE_UNSAVED);
    return left;
}

void records_empty_content(struct records *records, uint32_t piece)
{
    drop_content(records, records_value_space(records, records_value(records, piece)), piece);
    set_form(records, piece, 0, false);
    records_set_state(records, records_value(records, piece), VALUE_UNSAVED);
}

void records_remove_value(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    int space = records_value_space(records, value);
    if (value->side) {
        records_leave_share(records, piece);
        bool has_no_end = records_set_expiry(records, piece, 0);
        assert(has_no_end);
        records_drop_lease(records, piece);
        records_give(records, space, value->side);
    }
    while (value->keys)
        records_remove_key(records, value->keys);
    drop_content(records, space, piece);
    records_count(records, space, 0, -1);
    records_give(records, space, piece);
}

/* --- away --- */

bool records_bring_content(struct records *records, uint32_t piece, struct bytes content)
{
    struct value_piece *value = records_value(records, piece);
    assert(records_is_away(value) && content.size == records_size(value));
    uint32_t taken = take_apart(records, piece, content);
    if (!taken)
        return false;
    count_away(records, content.size, -1);
    undo_set(&records->memory, records_content_place_of(value), taken);
    undo_set(&records->memory, &value->form, value->form | VALUE_USED);
    records_set_state(records, value, VALUE_SAVED);
    return true;
}

void records_give_up_content(struct records *records, uint32_t piece)
{
    struct value_piece *value = records_value(records, piece);
    struct bytes content = {records_content(records, value), records_size(value)};
    assert(records_is_apart(value) && records_state_of(value) == VALUE_SAVED);
    records_give_later(records, records_apart(value));
    undo_set(&records->memory, records_content_place_of(value), records_digest(records, content));
    records_set_state(records, value, VALUE_AWAY);
    count_away(records, content.size, 1);
}
