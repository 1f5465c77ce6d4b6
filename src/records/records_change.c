/* records_change: the commands that change a record.  A function that returns anything but OK may have begun
 * a change: its caller takes it back. */
#include "records/records_private.h"

#include <string.h>

static struct value_piece *at(const struct records *records, uint32_t value)
{
    return records_value(records, value);
}

static uint32_t persistence(const struct records *records, uint32_t value)
{
    return records_flags(at(records, value)) & VALUE_PERSISTED;
}

static bool is_tombstone(const struct records *records, uint32_t value)
{
    return records_flags(at(records, value)) & VALUE_DELETED;
}

bool records_is_locked(const struct records *records, uint32_t value, struct bytes owner)
{
    const struct lease_piece *lease = records_lease_of(records, at(records, value));
    if (!lease || undo_long(lease->locked_until) <= (uint64_t)records->now_ms)
        return false;
    return !owner.data || !bytes_equal(owner, (struct bytes){lease->owner, lease->owner_size});
}

static bool is_older(const struct records *records, uint32_t value, const struct records_command *command)
{
    return command->timestamp_us && (uint64_t)command->timestamp_us < records_timestamp(at(records, value));
}

/* May the command change this record, which exists? */
static enum records_outcome records_change_check(const struct records *records, uint32_t value,
                                                 const struct records_command *command)
{
    if (records_is_locked(records, value, command->owner))
        return RECORDS_LOCKED;
    return is_older(records, value, command) ? RECORDS_OLDER : RECORDS_OK;
}

/* The same of a record whose content is to change, or its keys. */
static enum records_outcome check_own(const struct records *records, uint32_t value,
                                      const struct records_command *command)
{
    bool is_other = command->stamp && command->stamp != records_stamp(at(records, value));
    enum records_outcome outcome = records_change_check(records, value, command);
    return is_other && outcome != RECORDS_LOCKED ? RECORDS_OTHER_STAMP : outcome;
}

static enum records_outcome note_obstacle(struct records *records, uint32_t value, struct bytes key)
{
    records->obstacle = (struct records_obstacle){value, key};
    return RECORDS_NOT_FREE;
}

/* A command without a timestamp is later than all before it. */
static void stamp(struct records *records, uint32_t value, int64_t timestamp_us)
{
    uint64_t before = records_timestamp(at(records, value));
    uint64_t now = (uint64_t)records->now_ms * 1000;
    uint64_t next = timestamp_us ? (uint64_t)timestamp_us : now > before ? now : before;
    records_set_timestamp(records, value, next);
}

/* A lock never ends before its record does. */
static int64_t locked_until(const struct records *records, uint32_t value)
{
    const struct lease_piece *lease = records_lease_of(records, at(records, value));
    int64_t end = lease ? (int64_t)undo_long(lease->locked_until) : 0;
    return end > records->now_ms ? end : 0;
}

/* False: no memory. */
MUST_USE static bool set_end(struct records *records, uint32_t value, int64_t expires_ms)
{
    int64_t locked = locked_until(records, value);
    return records_set_expiry(records, value, expires_ms && expires_ms < locked ? locked : expires_ms);
}

/* --- deletion --- */

/* Turns the record into the memory of its deletion.  Without memory for a smaller piece it keeps the present
 * one; 0: there is none for its end either, and nothing has changed.  The value may move. */
MUST_USE static uint32_t bury(struct records *records, uint32_t value, int64_t timestamp_us)
{
    if (!records_set_expiry(records, value, records->now_ms + records->tombstone_ms))
        return 0;
    uint32_t moved = records_set_content(records, value, BYTES(""), false);
    if (moved)
        value = moved;
    else
        records_empty_content(records, value);
    records_drop_lease(records, value);
    records_set_type(records, value, RECORDS_VOID);
    records_set_flags(records, value, VALUE_DELETED | persistence(records, value));
    stamp(records, value, timestamp_us);
    return records_settle_share(records, value, NULL, false) ? value : 0;
}

/* The memory of a deletion of a key of the command that has no record; without memory, or if none is kept,
 * nothing.  `persistence`: of what was deleted. */
static bool note_deletion(struct records *records, int space, const struct records_command *command,
                          int64_t timestamp_us, uint32_t persistence)
{
    if (!records->tombstone_ms)
        return true;
    uint32_t value = records_make_value(records, space, BYTES(""), RECORDS_VOID, false);
    if (!value)
        return false;
    records_set_flags(records, value, VALUE_DELETED | persistence);
    if (!records_add_key(records, space, value, command->key))
        return false;
    value = bury(records, value, timestamp_us);
    return value && (!command->payer || records_settle_share(records, value, command->payer, true)) &&
           (!persistence || records_list_unsaved(records, value));
}

static enum records_outcome delete_absent(struct records *records, int space, uint32_t value,
                                          const struct records_command *command)
{
    if (command->stamp)
        return RECORDS_NOT_FOUND;
    if (!value && command->timestamp_us && !command->is_immediate)
        return note_deletion(records, space, command, command->timestamp_us, 0) ? RECORDS_NOT_FOUND
                                                                                : RECORDS_OUT_OF_MEMORY;
    if (value && command->is_immediate && !is_older(records, value, command))
        records_remove_value(records, value);
    else if (value && !is_older(records, value, command)) {
        stamp(records, value, command->timestamp_us);
        if (persistence(records, value) && !records_list_unsaved(records, value))
            return RECORDS_OUT_OF_MEMORY;
    }
    return RECORDS_NOT_FOUND;
}

static enum records_outcome delete (struct records *records, int space, uint32_t value,
                                    const struct records_command *command) {
    if (!value || is_tombstone(records, value)) return delete_absent(records, space, value, command);
    enum records_outcome outcome = check_own(records, value, command);
    if (outcome != RECORDS_OK) return outcome;
    /* without memory for its end, or to note that the disk is to remember it, it is not remembered */
    bool is_remembered = !command->is_immediate && records->tombstone_ms &&
                         (!persistence(records, value) || records_list_unsaved(records, value)) &&
                         bury(records, value, command->timestamp_us);
    if (!is_remembered) records_remove_value(records, value);
    return RECORDS_OK;
}

/* --- keys --- */

/* Makes a key free for a record: what has expired goes, and a deletion that is not later; `may_overwrite`:
 * also another record.  OK: it is free, or the record's own. */
static enum records_outcome clear_key(struct records *records, int space, uint32_t own, struct bytes text,
                                      const struct records_command *command, bool may_overwrite)
{
    uint32_t key = records_find(records, space, text), value = key ? records_key(records, key)->value : 0;
    if (!value || value == own)
        return RECORDS_OK;
    int64_t expires = records_end(records, at(records, value));
    if (!expires || expires > records->now_ms) {
        if (!is_tombstone(records, value) && !may_overwrite)
            return note_obstacle(records, value, text);
        enum records_outcome outcome = records_change_check(records, value, command);
        if (outcome != RECORDS_OK)
            return outcome;
    }
    records_remove_value(records, value);
    return RECORDS_OK;
}

static enum records_outcome give_key(struct records *records, int space, uint32_t value, struct bytes text)
{
    if (records_find(records, space, text))
        return RECORDS_OK;
    if (records_count_keys(records, value) >= RECORDS_KEYS_MOST)
        return RECORDS_TOO_MANY_KEYS;
    return records_add_key(records, space, value, text) ? RECORDS_OK : RECORDS_OUT_OF_MEMORY;
}

static enum records_outcome rename_key(struct records *records, int space, uint32_t key, uint32_t value,
                                       const struct records_command *command)
{
    if (bytes_equal(command->key, command->to))
        return RECORDS_OK;
    enum records_outcome outcome =
        clear_key(records, space, value, command->to, command, command->may_overwrite);
    if (outcome != RECORDS_OK)
        return outcome;
    records_remove_key(records, key);
    outcome = give_key(records, space, value, command->to);
    if (outcome != RECORDS_OK)
        return outcome;
    stamp(records, value, command->timestamp_us);
    if (!command->is_immediate &&
        !note_deletion(records, space, command, (int64_t)records_timestamp(at(records, value)),
                       persistence(records, value)))
        return RECORDS_OUT_OF_MEMORY;
    return RECORDS_OK;
}

static enum records_outcome link_key(struct records *records, int space, uint32_t value,
                                     const struct records_command *command)
{
    enum records_outcome outcome = clear_key(records, space, value, command->to, command, false);
    return outcome == RECORDS_OK ? give_key(records, space, value, command->to) : outcome;
}

/* --- contents --- */

static enum records_outcome records_change_set(struct records *records, int space, uint32_t value,
                                               const struct records_command *command, uint32_t *left_r)
{
    enum records_outcome outcome = RECORDS_OK;
    if ((command->is_only_present || command->stamp) && (!value || is_tombstone(records, value)))
        return RECORDS_NOT_FOUND;
    if (value && is_tombstone(records, value)) {
        if (is_older(records, value, command))
            return RECORDS_OLDER;
        records_remove_value(records, value);
        value = 0;
    }
    if (value)
        outcome = command->may_overwrite ? check_own(records, value, command)
                                         : note_obstacle(records, value, command->key);
    for (size_t i = 0; i < command->more_count && outcome == RECORDS_OK; i++)
        outcome = clear_key(records, space, value, command->more[i], command, false);
    if (outcome != RECORDS_OK)
        return outcome;
    uint32_t before = value ? persistence(records, value) : 0;
    uint32_t flags = command->is_persisted ? VALUE_PERSISTED : command->keeps_disk ? before : 0;
    if (before && !flags && !records_list_unsaved(records, value))
        return RECORDS_OUT_OF_MEMORY; /* the disk is to forget it */
    bool is_apart = records_goes_apart(command->content.size, flags), is_new = !value;
    value = value ? records_set_content(records, value, command->content, is_apart)
                  : records_make_value(records, space, command->content, command->type, is_apart);
    if (!value)
        return RECORDS_OUT_OF_MEMORY;
    outcome = give_key(records, space, value, command->key);
    for (size_t i = 0; i < command->more_count && outcome == RECORDS_OK; i++)
        outcome = give_key(records, space, value, command->more[i]);
    if (outcome != RECORDS_OK)
        return outcome;
    records_set_type(records, value, command->type);
    records_set_flags(records, value, flags);
    stamp(records, value, command->timestamp_us);
    if ((is_new || !command->keeps_end) && (!records_set_touch(records, value, (uint32_t)command->touch_s) ||
                                            !set_end(records, value, command->expires_ms)))
        return RECORDS_OUT_OF_MEMORY;
    records_spare_side(records, value);
    *left_r = value;
    return RECORDS_OK;
}

static enum records_outcome records_change_put(struct records *records, uint32_t value, const char *content,
                                               size_t size, uint32_t *left_r)
{
    bool is_apart = records_goes_apart(size, persistence(records, value));
    *left_r = records_set_content(records, value, (struct bytes){content, size}, is_apart);
    return *left_r ? RECORDS_OK : RECORDS_OUT_OF_MEMORY;
}

static enum records_outcome records_change_add(struct records *records, uint32_t value,
                                               const struct records_command *command, uint32_t *left_r)
{
    struct bytes present = {records_content(records, at(records, value)), records_size(at(records, value))};
    char sum[8];
    if (records_type(at(records, value)) != command->type)
        return RECORDS_WRONG_TYPE;
    enum records_outcome outcome = records_add_up(command->type, present, command->content, sum);
    return outcome != RECORDS_OK ? outcome : records_change_put(records, value, sum, sizeof sum, left_r);
}

static enum records_outcome flip(struct records *records, uint32_t value, uint32_t *left_r)
{
    if (records_type(at(records, value)) != RECORDS_BOOLEAN)
        return RECORDS_WRONG_TYPE;
    const char flipped = !records_content(records, at(records, value))[0];
    return records_change_put(records, value, &flipped, 1, left_r);
}

/* A buffer grows by zeros; a string only shrinks, to whole characters. */
static enum records_outcome resize(struct records *records, uint32_t value, size_t size, uint32_t *left_r)
{
    struct bytes present = {records_content(records, at(records, value)), records_size(at(records, value))};
    enum records_type type = records_type(at(records, value));
    if (type != RECORDS_BUFFER && type != RECORDS_STRING)
        return RECORDS_WRONG_TYPE;
    if (size > RECORDS_CONTENT_MOST || (type == RECORDS_STRING && size > present.size) ||
        (type == RECORDS_STRING && !bytes_is_utf8((struct bytes){present.data, size})))
        return RECORDS_OUT_OF_RANGE;
    size_t kept = size < present.size ? size : present.size;
    builder_clear(&records->out, kept);
    char *copy = builder_reserve(&records->out, size + 1);
    memcpy(copy, present.data, kept);
    memset(copy + kept, 0, size - kept);
    return records_change_put(records, value, copy, size, left_r);
}

/* --- locks --- */

static enum records_outcome records_change_lock(struct records *records, uint32_t value,
                                                const struct records_command *command)
{
    int64_t end_ms = records->now_ms + command->lease_ms;
    if (records_is_locked(records, value, command->owner))
        return RECORDS_LOCKED;
    uint32_t piece = records_need_lease(records, value);
    if (!piece)
        return RECORDS_OUT_OF_MEMORY;
    struct lease_piece *lease = records_lease(records, piece);
    undo_set_long(&records->memory, lease->locked_until, (uint64_t)end_ms);
    undo_set(&records->memory, &lease->owner_size, (uint32_t)command->owner.size);
    for (size_t i = 0; i < sizeof lease->owner / sizeof(uint32_t); i++) {
        uint32_t word = 0;
        size_t from = i * sizeof word, left = from < command->owner.size ? command->owner.size - from : 0;
        memcpy(&word, command->owner.data + (left ? from : 0), left < sizeof word ? left : sizeof word);
        undo_set(&records->memory, (uint32_t *)(void *)(lease->owner + from), word);
    }
    int64_t expires_ms = records_end(records, at(records, value));
    bool is_of_lock = records_flags(at(records, value)) & VALUE_OF_LOCK;
    bool is_moved = is_of_lock || (expires_ms && expires_ms < end_ms);
    return !is_moved || records_set_expiry(records, value, end_ms) ? RECORDS_OK : RECORDS_OUT_OF_MEMORY;
}

static enum records_outcome unlock(struct records *records, uint32_t value,
                                   const struct records_command *command, uint32_t *left_r)
{
    if (!locked_until(records, value))
        return RECORDS_NOT_LOCKED;
    if (records_is_locked(records, value, command->owner))
        return RECORDS_LOCKED;
    if (records_flags(at(records, value)) & VALUE_OF_LOCK) {
        records_remove_value(records, value);
        *left_r = 0;
        return RECORDS_OK;
    }
    undo_set_long(&records->memory, records_lease_of(records, at(records, value))->locked_until, 0);
    return RECORDS_OK;
}

/* --- ends --- */

static bool meets(int64_t end_ms, const struct records_command *command)
{
    int64_t present = end_ms ? end_ms : INT64_MAX,
            next = command->expires_ms ? command->expires_ms : INT64_MAX;
    unsigned wanted = command->end_if;
    return !((wanted & RECORDS_END_ABSENT && end_ms) || (wanted & RECORDS_END_PRESENT && !end_ms) ||
             (wanted & RECORDS_END_EARLIER && present >= next) ||
             (wanted & RECORDS_END_LATER && present <= next));
}

static enum records_outcome expire(struct records *records, int space, uint32_t value,
                                   const struct records_command *command, uint32_t *left_r)
{
    if (!meets(records_end(records, at(records, value)), command))
        return RECORDS_NOT_FOUND;
    if (command->expires_ms && command->expires_ms <= records->now_ms) {
        *left_r = 0;
        return delete (records, space, value, command);
    }
    if (!set_end(records, value, command->expires_ms))
        return RECORDS_OUT_OF_MEMORY;
    records_spare_side(records, value);
    return RECORDS_OK;
}

/* ADD and LOCK of what is not there. */
static enum records_outcome records_change_begin(struct records *records, int space, uint32_t value,
                                                 const struct records_command *command, uint32_t *left_r)
{
    struct records_command first = *command;
    first.deed = RECORDS_SET;
    first.more_count = 0;
    if (command->deed == RECORDS_LOCK) {
        first.type = RECORDS_VOID;
        first.content = BYTES("");
        first.touch_s = 0;
        first.expires_ms = records->now_ms + command->lease_ms;
    }
    enum records_outcome outcome = records_change_set(records, space, value, &first, left_r);
    if (outcome != RECORDS_OK || command->deed != RECORDS_LOCK)
        return outcome;
    records_set_flags(records, *left_r, VALUE_OF_LOCK | persistence(records, *left_r));
    return records_change_lock(records, *left_r, command);
}

/* --- the commands --- */

static enum records_outcome change_present(struct records *records, int space, uint32_t key, uint32_t value,
                                           const struct records_command *command, uint32_t *left_r)
{
    if (command->deed == RECORDS_LOCK)
        return records_change_lock(records, value, command);
    if (command->deed == RECORDS_UNLOCK)
        return unlock(records, value, command, left_r);
    enum records_outcome outcome = check_own(records, value, command);
    if (outcome != RECORDS_OK)
        return outcome;
    switch (command->deed) {
    case RECORDS_ADD:
        return records_change_add(records, value, command, left_r);
    case RECORDS_NOT:
        return flip(records, value, left_r);
    case RECORDS_TRUNCATE:
        return resize(records, value, command->size, left_r);
    case RECORDS_RENAME:
        return rename_key(records, space, key, value, command);
    case RECORDS_LINK:
        return link_key(records, space, value, command);
    case RECORDS_EXPIRE:
        return expire(records, space, value, command, left_r);
    case RECORDS_UNLINK:
        if (records_count_keys(records, value) > 1) {
            records_remove_key(records, key);
        } else {
            records_remove_value(records, value);
            *left_r = 0;
        }
        return RECORDS_OK;
    default:
        break;
    }
    assert(false);
    return RECORDS_BUSY;
}

static enum records_outcome records_change_change(struct records *records, int space, uint32_t key,
                                                  uint32_t value, const struct records_command *command,
                                                  uint32_t *left_r)
{
    if (command->deed == RECORDS_SET)
        return records_change_set(records, space, value, command, left_r);
    if (command->deed == RECORDS_DELETE)
        return delete (records, space, value, command);
    if (!value || is_tombstone(records, value)) {
        bool can_begin = command->deed == RECORDS_ADD || command->deed == RECORDS_LOCK;
        if (!can_begin || !command->may_overwrite || command->stamp)
            return RECORDS_NOT_FOUND;
        return records_change_begin(records, space, value, command, left_r);
    }
    *left_r = value;
    return change_present(records, space, key, value, command, left_r);
}

static bool has_share(const struct records *records, uint32_t value)
{
    uint32_t side = at(records, value)->side;
    return side && records_side(records, side)->share;
}

/* Whoever stores a record, or gives it another key, may do so for no longer than his terms say; he pays for
 * it, as does whoever makes it larger.  False: no memory. */
MUST_USE static bool records_change_settle(struct records *records, uint32_t value,
                                           const struct records_command *command)
{
    const struct records_payer *payer = command->payer;
    bool is_set = command->deed == RECORDS_SET;
    bool is_moved = command->deed == RECORDS_RENAME || command->deed == RECORDS_LINK;
    bool is_taken = is_set || (payer && (is_moved || records_weigh(records, value) > records->weight));
    int64_t end = records_end(records, at(records, value));
    if (command->ends_by_ms && (is_set || is_moved || !records->weight) &&
        (!end || end > command->ends_by_ms) && !set_end(records, value, command->ends_by_ms))
        return false;
    return records_settle_share(records, value, payer, is_taken);
}

enum records_outcome records_change(struct records *records, int space, uint32_t key, uint32_t value,
                                    const struct records_command *command, uint32_t *left_r)
{
    enum records_outcome outcome = records_change_change(records, space, key, value, command, left_r);
    bool has_terms = command->payer || command->ends_by_ms;
    if (outcome == RECORDS_OK && *left_r && (has_terms || has_share(records, *left_r)) &&
        !records_change_settle(records, *left_r, command))
        return RECORDS_OUT_OF_MEMORY;
    if (outcome == RECORDS_OK && *left_r && persistence(records, *left_r) &&
        !records_list_unsaved(records, *left_r))
        return RECORDS_OUT_OF_MEMORY;
    return outcome;
}
