/* records_unsaved: the list of the keys that are not on disk as they are in the memory. */
#include "records/records_private.h"

#include <string.h>

#include "records/records_save.h"

/* What waits for the disk may take this part of the memory: when the disk fails for long. */
enum { WAITING_PART = 8 };

/* The number of the change under way. */
static uint64_t begin_number(struct records *records)
{
    struct records_head *head = records->head;
    if (!records->saving) {
        records->saving = undo_long(head->save_number) + 1;
        undo_set_long(&records->memory, head->save_number, records->saving);
    }
    return records->saving;
}

/* Has the change under way listed another key? */
static bool is_further_key(const struct records *records, const struct key_piece *key)
{
    const struct records_head *head = records->head;
    struct key_piece *last = records_key(records, head->unsaved_last);
    return records->saving && head->unsaved_first && undo_long(records_number_of(last)) == records->saving &&
           (last->place != key->place || !bytes_equal(records_key_text(last), records_key_text(key)));
}

static void records_unsaved_append(struct records *records, uint32_t piece)
{
    struct records_head *head = records->head;
    struct key_piece *key = records_key(records, piece);
    if (is_further_key(records, key))
        undo_set_long(&records->memory, head->joined, records->saving);
    undo_set(&records->memory, &key->chain, 0);
    undo_set_long(&records->memory, records_number_of(key), begin_number(records));
    undo_set(&records->memory,
             head->unsaved_first ? &records_key(records, head->unsaved_last)->chain : &head->unsaved_first,
             piece);
    undo_set(&records->memory, &head->unsaved_last, piece);
    undo_set_long(&records->memory, head->unsaved_bytes,
                  undo_long(head->unsaved_bytes) + pieces_size(&records->memory, piece));
}

static bool list_key(struct records *records, int space, struct bytes text)
{
    bool is_bounded = undo_long(records->head->unsaved_bytes) < records->mapping.size / WAITING_PART;
    size_t need = sizeof(struct key_piece) + text.size;
    uint32_t piece = is_bounded ? pieces_take(&records->memory, &records->head->pieces, need) : 0;
    if (!piece) {
        records->lack = (struct room_lack){.bytes = is_bounded ? need : 0};
        return false;
    }
    struct key_piece *key = records_key(records, piece);
    *key = (struct key_piece){.place = (uint32_t)space << 16 | (uint32_t)text.size};
    memcpy(key->text, text.data, text.size);
    records_unsaved_append(records, piece);
    return true;
}

bool records_list_unsaved(struct records *records, uint32_t value)
{
    struct value_piece *owner = records_value(records, value);
    for (uint32_t key = owner->keys; key; key = records_key(records, key)->sibling)
        if (!list_key(records, records_value_space(records, owner),
                      records_key_text(records_key(records, key))))
            return false;
    if (records_is_apart(owner) && !records_is_away(owner))
        records_set_state(records, owner, VALUE_UNSAVED);
    return true;
}

void records_list_removed(struct records *records, uint32_t key)
{
    records_unsaved_append(records, key);
}

/* Most often there is nothing, which is seen without the lock. */
uint64_t records_save_number(struct records *records)
{
    const struct records_head *head = records->head;
    if (!records->folder || !*(const volatile uint32_t *)&head->unsaved_first || !records_enter(records))
        return 0;
    uint64_t number = head->unsaved_first ? undo_long(head->save_number) : 0;
    records_leave(records);
    return number;
}
