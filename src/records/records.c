/* records: the frame of every command: enter, sweep, change, commit. */
#include "records/records.h"

#include "records/records_private.h"

enum { SWEPT_EACH = 4, SWEPT_FOR_ROOM = 1000 };

static bool is_expired(const struct records *records, uint32_t value)
{
    uint64_t expires = undo_long(records_value(records, value)->expires);
    return expires && expires <= (uint64_t)records->now_ms;
}

static bool is_over(const struct records *records, int space, size_t quota)
{
    return quota && undo_long(records->head->space[space].bytes) > quota;
}

static void listen(const struct records *records, int space, struct bytes key, struct records_found *found_r)
{
    found_r->mark = records_mark(records, space, key);
    found_r->position = undo_long(records->head->ring.end);
}

/* One try at a change; abandoned unless it succeeds. */
static enum records_outcome try_change(struct records *records, struct bytes ns, size_t quota,
                                       const struct records_command *command, struct records_found *found_r)
{
    bool may_make = command->is_listened || command->deed == RECORDS_SET || command->deed == RECORDS_DELETE ||
                    command->may_overwrite;
    uint32_t left = 0;
    if (command->is_persisted && !records->folder)
        return RECORDS_NO_DISK;
    int space = records_find_space(records, ns, may_make);
    if (space < 0)
        return may_make ? RECORDS_OUT_OF_MEMORY : RECORDS_NOT_FOUND;
    uint32_t key = records_find(records, space, command->key);
    uint32_t value = key ? records_key(records, key)->value : 0;
    if (value && is_expired(records, value)) {
        records_remove_value(records, value);
        records_commit(records);
        key = value = 0;
    }
    uint64_t before = undo_long(records->head->space[space].bytes);
    enum records_outcome outcome = command->deed == RECORDS_GET
                                       ? records_get(records, value, command, found_r)
                                       : records_change(records, space, key, value, command, &left);
    bool has_grown = undo_long(records->head->space[space].bytes) > before;
    if (outcome == RECORDS_OK && has_grown && is_over(records, space, quota))
        outcome = RECORDS_OUT_OF_MEMORY;
    bool is_absence =
        command->deed == RECORDS_DELETE || (command->deed == RECORDS_GET && command->is_listened);
    bool is_kept = outcome == RECORDS_OK || (outcome == RECORDS_NOT_FOUND && is_absence);
    if (!is_kept) {
        records_abandon(records);
        if (value && (outcome == RECORDS_NOT_FREE || outcome == RECORDS_OLDER || outcome == RECORDS_LOCKED))
            records_describe(records, value, command->key, false, found_r);
        return outcome;
    }
    if (left)
        records_describe(records, left, command->key,
                         command->deed == RECORDS_ADD || command->deed == RECORDS_NOT, found_r);
    if (command->is_listened)
        listen(records, space, command->key, found_r);
    records_commit(records);
    found_r->saving = command->deed == RECORDS_GET && !command->lease_ms ? 0 : records->saving;
    return outcome;
}

enum records_outcome records_run(struct records *records, struct bytes ns, size_t quota,
                                 const struct records_command *command, struct records_found *found_r)
{
    *found_r = (struct records_found){0};
    if (!records_enter(records))
        return RECORDS_BUSY;
    if (command->deed != RECORDS_GET)
        records_sweep(records, SWEPT_EACH);
    enum records_outcome outcome = try_change(records, ns, quota, command, found_r);
    while (outcome == RECORDS_OUT_OF_MEMORY && records_sweep(records, SWEPT_FOR_ROOM))
        outcome = try_change(records, ns, quota, command, found_r);
    if (outcome == RECORDS_OUT_OF_MEMORY)
        atomic_fetch_add_explicit(&records->head->refused, 1, memory_order_relaxed);
    records_leave(records);
    return outcome;
}

enum records_outcome records_next(struct records *records, struct bytes ns, struct bytes from,
                                  struct bytes after, struct bytes to, struct records_found *found_r)
{
    *found_r = (struct records_found){0};
    if (!records_enter(records))
        return RECORDS_BUSY;
    enum records_outcome outcome = RECORDS_NOT_FOUND;
    struct records_sought sought = {records_find_space(records, ns, false), from, false};
    if (after.data)
        sought = (struct records_sought){sought.space, after, true};
    for (int i = 0; sought.space >= 0; i++) {
        uint32_t piece = order_find(&records->memory, &records->keys, records_probe, &sought);
        const struct key_piece *key = piece ? records_key(records, piece) : NULL;
        if (!key || key->place >> 16 != (uint32_t)sought.space ||
            (to.data && bytes_compare(records_key_text(key), to) > 0))
            break;
        const struct value_piece *value = records_value(records, key->value);
        bool is_there = !(value->kind & VALUE_DELETED) && !is_expired(records, key->value);
        outcome = is_there ? RECORDS_OK : RECORDS_BUSY;
        if (is_there || i == RECORDS_STEPS) {
            records_describe(records, key->value, records_key_text(key), false, found_r);
            break;
        }
        outcome = RECORDS_NOT_FOUND;
        sought = (struct records_sought){sought.space, records_key_text(key), true};
    }
    records_leave(records);
    return outcome;
}

void records_sum(struct records *records, struct bytes ns, struct records_sums *sums_r)
{
    struct records_head *head = records->head;
    *sums_r = (struct records_sums){.capacity = records->mapping.size,
                                    .refused = atomic_load_explicit(&head->refused, memory_order_relaxed)};
    if (!records_enter(records))
        return;
    int space = ns.data ? records_find_space(records, ns, false) : -1;
    sums_r->unsaved = undo_long(head->unsaved_bytes);
    for (int i = 0; i < (int)head->spaces; i++)
        if (!ns.data || i == space) {
            sums_r->bytes += undo_long(head->space[i].bytes);
            sums_r->records += head->space[i].count;
        }
    records_leave(records);
}
