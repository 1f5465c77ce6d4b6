/* records: the frame of every command: enter, sweep, change, commit. */
#include "records/records.h"

#include "base/clock.h"
#include "base/log.h"
#include "records/records_private.h"
#include "records/records_save.h"

enum { SWEPT_EACH = 4, SWEPT_FOR_ROOM = 1000, TRIES_MOST = 100 };
/* A content that takes a larger part of the memory is read for a GET without taking the place of others. */
enum { LARGE_PART = 8 };
/* An outcome of a try: the content is to be read first. */
#define AWAY RECORDS_OUTCOMES

static bool is_expired(const struct records *records, uint32_t value)
{
    int64_t expires = records_end(records, records_value(records, value));
    return expires && expires <= records->now_ms;
}

/* Has the namespace, which had so many bytes and values, grown beyond what it may have? */
static bool records_is_over(const struct records *records, int space, size_t quota, uint64_t records_most,
                            uint64_t bytes, uint32_t count)
{
    const struct records_space *now = &records->head->space[space];
    return (quota && undo_long(now->bytes) > quota && undo_long(now->bytes) > bytes) ||
           (records_most && now->count > records_most && now->count > count);
}

/* Does the command need the content, or write the record to the disk again? */
static bool needs_content(const struct records_command *command)
{
    bool is_probe = command->deed == RECORDS_GET && command->is_probe && !command->lease_ms;
    return !is_probe && command->deed != RECORDS_SET && command->deed != RECORDS_DELETE;
}

static bool is_plain_get(const struct records_command *command)
{
    return command->deed == RECORDS_GET && !command->lease_ms;
}

/* A record without a side has neither an end nor a lease: a GET of it only notes the second. */
static void read_clock(struct records *records, uint32_t value)
{
    bool is_timed =
        value && (records_value(records, value)->side || records_is_away(records_value(records, value)));
    records->now_ms = is_timed ? clock_present_ms() : clock_present_tick_ms();
}

/* The content of a value that is away: into the memory, if it is to be changed or there is room.  AWAY: it is
 * to be read first. */
static enum records_outcome bring(struct records *records, uint32_t value,
                                  const struct records_command *command, struct records_found *found_r)
{
    if (!records_find_read(records, value)) {
        records_note_away(records, value);
        return AWAY;
    }
    struct bytes content = records->read.content;
    if (!content.data) {
        if (records->read.problem) /* not before: of another version it would be none */
            log_often(LOG_LEVEL_WARNING, "records-read", "the content of a record on disk is not read: %s",
                      records->read.problem);
        records_describe(records, value, command->key, false, found_r);
        return RECORDS_NOT_READ;
    }
    bool is_large = content.size > records->mapping.size / LARGE_PART;
    for (int i = 0; i < 2 && !(is_large && is_plain_get(command)); i++) {
        if (records_bring_content(records, value, content)) {
            bool is_touched = records_flags(records_value(records, value)) & VALUE_TOUCHED;
            if (is_touched && !records_list_unsaved(records, value))
                log_debug("the end of a record waits for its next change");
            records_commit(records);
            return RECORDS_OK;
        }
        records_abandon(records);
        if (!is_plain_get(command) || records_make_room(records) != ROOM_MADE)
            break;
    }
    return is_plain_get(command) ? RECORDS_OK : RECORDS_OUT_OF_MEMORY;
}

static void listen(const struct records *records, int space, struct bytes key, struct records_found *found_r)
{
    found_r->mark = records_mark(records, space, key);
    found_r->position = undo_long(records->head->ring.end);
}

/* For a command with terms: what it finds, and what its payer has. */
static void note_before(struct records *records, int space, uint32_t value, const struct records_payer *payer)
{
    bool is_there = value && !(records_flags(records_value(records, value)) & VALUE_DELETED);
    records->weight = is_there ? records_weigh(records, value) : 0;
    if (payer)
        records_note_shares(records, space, payer);
}

/* A change, and what it leaves in `found_r`; true: it is kept. */
static bool change_records(struct records *records, int space, uint32_t key, uint32_t value, size_t quota,
                           const struct records_command *command, enum records_outcome *outcome_r,
                           struct records_found *found_r)
{
    uint32_t left = 0;
    const struct records_space *sums = &records->head->space[space];
    uint64_t bytes = undo_long(sums->bytes);
    uint32_t count = sums->count;
    if (command->payer || command->ends_by_ms)
        note_before(records, space, value, command->payer);
    enum records_outcome outcome = command->deed == RECORDS_GET
                                       ? records_get(records, value, command, found_r)
                                       : records_change(records, space, key, value, command, &left);
    bool may_grow = outcome == RECORDS_OK || outcome == RECORDS_NOT_FOUND; /* a deletion is remembered */
    bool is_refused = may_grow && records_is_over(records, space, quota, command->records_most, bytes, count);
    if (is_refused)
        outcome = RECORDS_OUT_OF_MEMORY;
    else if (command->payer && may_grow && records_is_beyond_share(records, space, command->payer)) {
        outcome = RECORDS_OUT_OF_SHARE;
        is_refused = true;
    }
    if (is_refused)
        records->lack.bytes = 0;
    *outcome_r = outcome;
    bool is_absence =
        command->deed == RECORDS_DELETE || (command->deed == RECORDS_GET && command->is_listened);
    if (outcome != RECORDS_OK && !(outcome == RECORDS_NOT_FOUND && is_absence))
        return false;
    if (left)
        records_describe(records, left, command->key,
                         command->deed == RECORDS_ADD || command->deed == RECORDS_NOT, found_r);
    if (command->is_listened)
        listen(records, space, command->key, found_r);
    return true;
}

/* What the command has met, after it was taken back; AWAY: its content is to be read first. */
static enum records_outcome describe_met(struct records *records, uint32_t value,
                                         const struct records_command *command, enum records_outcome outcome,
                                         struct records_found *found_r)
{
    struct bytes key = command->key;
    bool is_shown = command->shows_present && (outcome == RECORDS_NOT_FREE || outcome == RECORDS_OTHER_STAMP);
    if (outcome == RECORDS_NOT_FREE) {
        value = records->obstacle.value;
        key = records->obstacle.key;
    }
    if (is_shown && records_is_away(records_value(records, value))) {
        if (!records_find_read(records, value)) {
            records_note_away(records, value);
            return AWAY;
        }
        is_shown = records->read.content.data != NULL;
    }
    records_describe(records, value, key, is_shown, found_r);
    return outcome;
}

/* One try at a command; abandoned unless it succeeds. */
static enum records_outcome try_command(struct records *records, struct bytes ns, size_t quota,
                                        const struct records_command *command, struct records_found *found_r)
{
    bool may_make = command->is_listened || command->deed == RECORDS_SET || command->deed == RECORDS_DELETE ||
                    command->may_overwrite;
    enum records_outcome outcome;
    records->lack.bytes = 0;
    if (command->is_persisted && (!records->folder || (command->is_encrypted && !records->seal)))
        return RECORDS_NO_DISK;
    int space = records_space_for(records, ns, command->is_encrypted, command->is_persisted, may_make);
    if (space < 0)
        return may_make ? RECORDS_OUT_OF_MEMORY : RECORDS_NOT_FOUND;
    uint32_t key = records_find(records, space, command->key);
    uint32_t value = key ? records_key(records, key)->value : 0;
    if (is_plain_get(command))
        read_clock(records, value);
    if (value && is_expired(records, value)) {
        records_remove_value(records, value);
        records_commit(records);
        key = value = 0;
    }
    if (value && records_is_away(records_value(records, value)) && needs_content(command) &&
        (outcome = bring(records, value, command, found_r)) != RECORDS_OK)
        return outcome;
    bool is_kept = change_records(records, space, key, value, quota, command, &outcome, found_r);
    if (!is_kept) {
        records_abandon(records);
        bool is_met =
            outcome == RECORDS_NOT_FREE || (value && (outcome == RECORDS_OLDER || outcome == RECORDS_LOCKED ||
                                                      outcome == RECORDS_OTHER_STAMP));
        return is_met ? describe_met(records, value, command, outcome, found_r) : outcome;
    }
    records_commit(records);
    found_r->saving = is_plain_get(command) ? 0 : records->saving;
    return outcome;
}

/* --- tries --- */

enum again { GIVE_UP, TRY_AGAIN, LEFT /* the lock was not had again */ };

/* Until what waits for the disk is saved, its contents cannot be given up. */
static bool is_room_unsaved(const struct records *records)
{
    return records->lack.bytes && records->folder && records->head->unsaved_first;
}

static enum again save_waiting(struct records *records)
{
    uint64_t number = undo_long(records->head->save_number);
    if (!is_room_unsaved(records))
        return GIVE_UP;
    records_leave(records);
    bool is_saved = records_save(records, number);
    return !records_enter(records) ? LEFT : is_saved ? TRY_AGAIN : GIVE_UP;
}

static enum again make_room_records(struct records *records, bool *has_saved)
{
    enum room room;
    if (records_sweep(records, SWEPT_FOR_ROOM))
        return TRY_AGAIN;
    while ((room = records_make_room(records)) == ROOM_MORE) {
        records_leave(records); /* let others in */
        if (!records_enter(records))
            return LEFT;
    }
    if (room == ROOM_MADE || *has_saved)
        return room == ROOM_MADE ? TRY_AGAIN : GIVE_UP;
    *has_saved = true;
    return save_waiting(records);
}

static enum again records_read_content(struct records *records)
{
    records_leave(records);
    records_fetch_content(records);
    return records_enter(records) ? TRY_AGAIN : LEFT;
}

static bool lacks_room(enum records_outcome outcome)
{
    return outcome == RECORDS_OUT_OF_MEMORY || outcome == RECORDS_OUT_OF_SHARE;
}

static bool is_to_read(const struct records *records, enum records_outcome outcome)
{
    return outcome == AWAY && !records->read.is_elsewhere;
}

enum records_outcome records_run(struct records *records, struct bytes ns, size_t quota,
                                 const struct records_command *command, struct records_found *found_r)
{
    *found_r = (struct records_found){0};
    if (!(is_plain_get(command) ? records_enter_untimed(records) : records_enter(records)))
        return RECORDS_BUSY;
    if (records_are_spread(records, ns)) {
        records_leave(records);
        return RECORDS_ELSEWHERE;
    }
    if (command->deed != RECORDS_GET)
        records_sweep(records, SWEPT_EACH);
    bool has_saved = command->patience != RECORDS_WAITS;
    records->read.has_ended = false;
    enum records_outcome outcome = try_command(records, ns, quota, command, found_r);
    enum again again = TRY_AGAIN;
    for (int tries = 0; (lacks_room(outcome) || is_to_read(records, outcome)) && tries < TRIES_MOST;
         tries++) {
        again = outcome == AWAY ? records_read_content(records) : make_room_records(records, &has_saved);
        if (again != TRY_AGAIN)
            break;
        outcome = try_command(records, ns, quota, command, found_r);
    }
    if (again == LEFT)
        return RECORDS_BUSY;
    if (outcome == RECORDS_OUT_OF_MEMORY && command->patience == RECORDS_REPORTS && is_room_unsaved(records))
        found_r->saving = undo_long(records->head->save_number);
    else if (lacks_room(outcome))
        atomic_fetch_add_explicit(outcome == RECORDS_OUT_OF_SHARE ? &records->head->refused_shares
                                                                  : &records->head->refused,
                                  1, memory_order_relaxed);
    records_leave(records);
    if (outcome != AWAY)
        return outcome;
    found_r->is_away = records->read.is_elsewhere;
    return RECORDS_BUSY;
}

enum records_outcome records_next(struct records *records, struct bytes ns, bool is_encrypted,
                                  struct bytes from, struct bytes after, struct bytes to,
                                  struct records_found *found_r)
{
    *found_r = (struct records_found){0};
    if (!records_enter(records))
        return RECORDS_BUSY;
    enum records_outcome outcome = records_are_spread(records, ns) ? RECORDS_ELSEWHERE : RECORDS_NOT_FOUND;
    if (outcome == RECORDS_ELSEWHERE) {
        records_leave(records);
        return outcome;
    }
    struct records_sought sought = {records_space_for(records, ns, is_encrypted, false, false), from, false};
    if (after.data)
        sought = (struct records_sought){sought.space, after, true};
    for (int i = 0; sought.space >= 0; i++) {
        uint32_t piece = order_find(&records->memory, &records->keys, records_probe, &sought);
        const struct key_piece *key = piece ? records_key(records, piece) : NULL;
        if (!key || key->place >> 16 != (uint32_t)sought.space ||
            (to.data && bytes_compare(records_key_text(key), to) > 0))
            break;
        const struct value_piece *value = records_value(records, key->value);
        bool is_there = !(records_flags(value) & VALUE_DELETED) && !is_expired(records, key->value);
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
                                    .refused = atomic_load_explicit(&head->refused, memory_order_relaxed),
                                    .refused_shares =
                                        atomic_load_explicit(&head->refused_shares, memory_order_relaxed)};
    if (!records_enter(records))
        return;
    int space = ns.data ? records_find_space(records, ns, false) : -1;
    sums_r->unsaved = undo_long(head->unsaved_bytes);
    sums_r->away = head->away;
    sums_r->away_bytes = undo_long(head->away_bytes);
    for (int i = 0; i < (int)head->spaces; i++)
        if (!ns.data || i == space) {
            sums_r->bytes += undo_long(head->space[i].bytes);
            sums_r->records += head->space[i].count;
            sums_r->paid += undo_long(head->space[i].paid);
        }
    records_leave(records);
}

void records_sum_share(struct records *records, struct bytes ns, uint64_t digest, struct records_sums *sums_r)
{
    *sums_r = (struct records_sums){0};
    if (!records_enter(records))
        return;
    int space = records_find_space(records, ns, false);
    if (space >= 0)
        records_read_share(records, space, digest, &sums_r->bytes, &sums_r->records);
    records_leave(records);
}
