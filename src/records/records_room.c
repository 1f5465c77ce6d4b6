/* records_room: makes room: removes what has expired, and gives up contents that the disk has.
 *
 * A hand goes round over the pieces above the fence, one after the other.  A content that was used since the
 * hand was there last is passed, another one is given up; what is free in one place grows until it is large
 * enough.  Below the fence nothing can be given up: the fence is raised, over the contents that lie beside
 * it. */
#include "records/records_private.h"

#include <string.h>

enum { STEPS_MOST = 256, TURNS_MOST = 3 };

/* The fence gives way by steps, which are smaller upwards: so it does not go up and down with each record. */
enum { DOWN_PART = 64, UP_PART = 512, UP_LEAST = 1024 };

static struct content_piece *content_at(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static void records_room_give_up(struct records *records, uint32_t piece)
{
    records_give_up_content(records, content_at(records, piece)->value);
    records_commit(records);
}

static bool is_given_up_easily(const struct value_piece *value)
{
    return records_state_of(value) == VALUE_SAVED && !(value->form & VALUE_USED);
}

/* --- the fence --- */

/* The hand stands at the beginning of a piece, also when that has been joined with what the fence left. */
static void mend_hand(struct records *records)
{
    struct records_head *head = records->head;
    uint32_t first = pieces_next(&records->memory, head->fence);
    bool is_lost = !first || head->hand < first ||
                   head->hand < first + pieces_size(&records->memory, first) / sizeof(uint32_t);
    if (is_lost)
        undo_set(&records->memory, &head->hand, 0);
}

static bool lower(struct records *records, size_t bytes)
{
    struct records_head *head = records->head;
    if (!pieces_lower(&records->memory, &head->pieces, &head->contents, &head->fence, bytes))
        return false;
    mend_hand(records);
    records_commit(records);
    return true;
}

static bool raise(struct records *records, size_t bytes)
{
    struct records_head *head = records->head;
    if (!pieces_raise(&records->memory, &head->pieces, &head->contents, &head->fence, bytes))
        return false;
    mend_hand(records);
    records_commit(records);
    return true;
}

static bool lower_for(struct records *records, size_t need)
{
    size_t step = records->mapping.size / DOWN_PART;
    return lower(records, need > step ? need : step);
}

bool records_widen(struct records *records)
{
    size_t need = pieces_room_for(records->lack.bytes);
    return lower_for(records, need) || lower(records, need);
}

/* --- above the fence --- */

static void records_room_pass(struct records *records, uint32_t piece)
{
    uint32_t next = pieces_next(&records->memory, piece);
    records->lack.turns += !next;
    *(volatile uint32_t *)&records->head->hand =
        next; /* one word, between two changes: whole without a note */
}

static enum room make_above(struct records *records, size_t need)
{
    struct records_head *head = records->head;
    if (lower_for(records, need))
        return ROOM_MADE;
    for (int i = 0; i < STEPS_MOST && records->lack.turns < TURNS_MOST; i++) {
        uint32_t piece = head->hand ? head->hand : pieces_next(&records->memory, head->fence);
        if (!piece)
            break;
        if (pieces_is_free(&records->memory, piece)) {
            if (pieces_size(&records->memory, piece) >= need)
                return ROOM_MADE;
            records_room_pass(records, piece);
            continue;
        }
        struct value_piece *value = records_value(records, content_at(records, piece)->value);
        if (is_given_up_easily(value)) {
            *(volatile uint32_t *)&head->hand = piece;
            records_room_give_up(records, piece); /* the hand stands before what is free now */
            continue;
        }
        *(volatile uint32_t *)&value->form = value->form & ~VALUE_USED;
        records_room_pass(records, piece);
    }
    bool is_over = records->lack.turns >= TURNS_MOST || !pieces_next(&records->memory, head->fence);
    return !is_over ? ROOM_MORE : lower(records, need) ? ROOM_MADE : ROOM_NONE;
}

/* --- below it --- */

/* A content that cannot be given up, to a place behind.  False: there is none. */
static bool move_away(struct records *records, uint32_t piece)
{
    struct content_piece *content = content_at(records, piece);
    struct value_piece *value = records_value(records, content->value);
    size_t bytes = sizeof *content + records_size(value);
    uint32_t moved = pieces_take(&records->memory, &records->head->contents, bytes);
    if (moved < piece) { /* none, or beside the fence too */
        records_abandon(records);
        return false;
    }
    memcpy(content_at(records, moved), content, bytes);
    records_give_later(records, piece);
    undo_set(&records->memory, (uint32_t *)(void *)value->content, moved);
    records_commit(records);
    return true;
}

/* The content that is the lowest one; 0: there is none. */
static uint32_t lowest(const struct records *records, size_t *free_r)
{
    uint32_t piece = pieces_next(&records->memory, records->head->fence);
    bool is_free = piece && pieces_is_free(&records->memory, piece);
    *free_r = is_free ? pieces_size(&records->memory, piece) : 0;
    return is_free ? pieces_next(&records->memory, piece) : piece;
}

static enum room make_below(struct records *records, size_t need)
{
    size_t step = records->mapping.size / UP_PART, is_free;
    step = step < UP_LEAST ? UP_LEAST : step;
    step = step < need ? need : step;
    for (int i = 0; i < STEPS_MOST; i++) {
        uint32_t piece = lowest(records, &is_free);
        if (is_free >= step)
            return raise(records, step) ? ROOM_MADE : ROOM_NONE;
        if (!piece)
            break;
        const struct value_piece *value = records_value(records, content_at(records, piece)->value);
        if (records_state_of(value) == VALUE_SAVED)
            records_room_give_up(records, piece);
        else if (!move_away(records, piece))
            break;
    }
    lowest(records, &is_free);
    return is_free >= need && raise(records, need) ? ROOM_MADE : ROOM_NONE;
}

enum room records_make_room(struct records *records)
{
    if (!records->lack.bytes)
        return ROOM_NONE;
    size_t need = pieces_room_for(records->lack.bytes);
    return records->lack.is_apart ? make_above(records, need) : make_below(records, need);
}

int records_sweep(struct records *records, int most)
{
    int swept = 0;
    for (; swept < most; swept++) {
        uint32_t first = order_first(&records->memory, &records->ends);
        if (!first || undo_long(records_side(records, first)->expires) > (uint64_t)records->now_ms)
            break;
        records_remove_value(records, records_side(records, first)->value);
        records_commit(records);
    }
    return swept;
}
