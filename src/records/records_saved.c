/* records_saved: between pieces of the memory and texts of the disk. */
#include "records/records_saved.h"

#include <string.h>

/* The first layout has neither stamps nor payers. */
enum { LAYOUT = 2, LAYOUT_BARE = 1, NUMBER = 8 };

enum saved_number {
    SAVED_LAYOUT,
    SAVED_KIND,
    SAVED_EXPIRES,
    SAVED_TIMESTAMP,
    SAVED_TOUCH,
    SAVED_CREATED,
    SAVED_MODIFIED,
    SAVED_ACCESSED,
    SAVED_WORKED_UNTIL,
    SAVED_LOCKED_UNTIL,
    SAVED_KEYS,
    SAVED_OWNER_SIZE,
    SAVED_CODE_SIZE,
    SAVED_CONTENT_SIZE,
    SAVED_NUMBERS_BARE,
    SAVED_CHANGE = SAVED_NUMBERS_BARE,
    SAVED_RULE,
    SAVED_CALLER,
    SAVED_NUMBERS
};

/* Beside the type, a kind has these. */
enum { KIND_TYPE = 0xff, KIND_DELETED = 1 << 8, KIND_OF_LOCK = 1 << 9, KIND_PERSISTED = 1 << 10 };
static const struct {
    uint32_t kind, flag;
} kinds[] = {{KIND_DELETED, VALUE_DELETED}, {KIND_OF_LOCK, VALUE_OF_LOCK}, {KIND_PERSISTED, VALUE_PERSISTED}};

static void records_saved_add_number(struct builder *text, uint64_t number)
{
    bytes_put_u64((unsigned char *)builder_reserve(text, NUMBER), number);
    text->size += NUMBER;
}

static void records_saved_add_keys(const struct records *records, uint32_t value, struct builder *text)
{
    uint32_t first = records_value(records, value)->keys;
    for (uint32_t key = first; key; key = records_key(records, key)->sibling)
        records_saved_add_number(text, records_key_text(records_key(records, key)).size);
    for (uint32_t key = first; key; key = records_key(records, key)->sibling)
        builder_add_bytes(text, records_key_text(records_key(records, key)));
}

/* Type and flags have their places of old. */
static uint64_t kind_of(const struct value_piece *value)
{
    uint64_t kind = records_type(value);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        kind |= records_flags(value) & kinds[i].flag ? kinds[i].kind : 0;
    return kind;
}

static uint32_t flags_of(uint64_t kind)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        flags |= kind & kinds[i].kind ? kinds[i].flag : 0;
    return flags;
}

static void records_saved_add_record(const struct records *records, uint32_t piece, struct builder *text)
{
    const struct value_piece *value = records_value(records, piece);
    const struct lease_piece *lease = records_lease_of(records, value);
    struct bytes code = records_space_code(records, records_value_space(records, value));
    struct records_payer payer; /* of none: zeros */
    records_find_payer(records, piece, &payer);
    const uint64_t numbers[SAVED_NUMBERS] = {
        [SAVED_LAYOUT] = LAYOUT,
        [SAVED_KIND] = kind_of(value),
        [SAVED_EXPIRES] = (uint64_t)records_end(records, value),
        [SAVED_TIMESTAMP] = records_timestamp(value),
        [SAVED_TOUCH] = value->side ? records_side(records, value->side)->touch_s : 0,
        [SAVED_CREATED] = value->created_s,
        [SAVED_MODIFIED] = value->modified_s,
        [SAVED_ACCESSED] = value->accessed_s,
        [SAVED_WORKED_UNTIL] = lease ? undo_long(lease->worked_until) : 0,
        [SAVED_LOCKED_UNTIL] = lease ? undo_long(lease->locked_until) : 0,
        [SAVED_KEYS] = records_count_keys(records, piece),
        [SAVED_OWNER_SIZE] = lease ? lease->owner_size : 0,
        [SAVED_CODE_SIZE] = code.size,
        [SAVED_CONTENT_SIZE] = records_size(value),
        [SAVED_CHANGE] = value->change,
        [SAVED_RULE] = payer.rule,
        [SAVED_CALLER] = payer.caller,
    };
    for (size_t i = 0; i < SAVED_NUMBERS; i++)
        records_saved_add_number(text, numbers[i]);
    records_saved_add_keys(records, piece, text);
    builder_add(text, lease ? lease->owner : "", (size_t)numbers[SAVED_OWNER_SIZE]);
    builder_add_bytes(text, code);
    builder_add(text, records_content(records, value), records_size(value));
}

void records_saved_write(struct records *records, int space, struct bytes key, struct builder *text)
{
    uint32_t piece = records_find(records, space, key),
             value = piece ? records_key(records, piece)->value : 0;
    size_t start = text->size;
    records_saved_add_number(text, UINT64_MAX);
    if (!value || records_value(records, value)->keys != piece ||
        !(records_flags(records_value(records, value)) & VALUE_PERSISTED))
        return;
    records_set_flags(records, value,
                      records_flags(records_value(records, value)) & ~(uint32_t)VALUE_TOUCHED);
    records_saved_add_record(records, value, text);
    if (records_is_apart(records_value(records, value)))
        records_set_state(records, records_value(records, value), VALUE_WRITTEN);
    bytes_put_u64((unsigned char *)text->data + start, text->size - start - NUMBER);
}

/* --- back --- */

static bool records_saved_cut(struct bytes *rest, uint64_t size, struct bytes *text_r)
{
    if (size > rest->size)
        return false;
    *text_r = (struct bytes){rest->data, (size_t)size};
    rest->data += size;
    rest->size -= (size_t)size;
    return true;
}

struct saved {
    uint64_t numbers[SAVED_NUMBERS];
    struct bytes keys[RECORDS_KEYS_MOST], owner, code, content;
};

static bool cut_number(struct bytes *rest, uint64_t *number_r)
{
    struct bytes text;
    if (!records_saved_cut(rest, NUMBER, &text))
        return false;
    *number_r = bytes_get_u64((const unsigned char *)text.data);
    return true;
}

static bool records_saved_read_text(struct bytes text, struct saved *saved)
{
    uint64_t sizes[RECORDS_KEYS_MOST], *numbers = saved->numbers;
    memset(numbers, 0, sizeof saved->numbers);
    for (size_t i = 0; i < SAVED_NUMBERS; i++)
        if ((i < SAVED_NUMBERS_BARE || numbers[SAVED_LAYOUT] != LAYOUT_BARE) &&
            !cut_number(&text, &numbers[i]))
            return false;
    if ((numbers[SAVED_LAYOUT] != LAYOUT && numbers[SAVED_LAYOUT] != LAYOUT_BARE) || !numbers[SAVED_KEYS] ||
        numbers[SAVED_KEYS] > RECORDS_KEYS_MOST)
        return false;
    for (uint64_t i = 0; i < numbers[SAVED_KEYS]; i++)
        if (!cut_number(&text, &sizes[i]))
            return false;
    for (uint64_t i = 0; i < numbers[SAVED_KEYS]; i++)
        if (!records_saved_cut(&text, sizes[i], &saved->keys[i]) || !records_is_key(saved->keys[i]))
            return false;
    return records_saved_cut(&text, numbers[SAVED_OWNER_SIZE], &saved->owner) &&
           records_saved_cut(&text, numbers[SAVED_CODE_SIZE], &saved->code) &&
           records_saved_cut(&text, numbers[SAVED_CONTENT_SIZE], &saved->content) && !text.size &&
           saved->owner.size <= RECORDS_OWNER_MOST && saved->code.size &&
           saved->code.size <= RECORDS_CODE_MOST && numbers[SAVED_TIMESTAMP] <= VALUE_TIMESTAMP &&
           records_is_content((enum records_type)(numbers[SAVED_KIND] & KIND_TYPE), saved->content);
}

static bool add_lease(struct records *records, uint32_t value, const struct saved *saved)
{
    if (!saved->owner.size && !saved->numbers[SAVED_WORKED_UNTIL])
        return true;
    uint32_t piece = records_need_lease(records, value);
    if (!piece)
        return false;
    struct lease_piece *lease = records_lease(records, piece); /* taken in this change: without notes */
    undo_set_long(&records->memory, lease->worked_until, saved->numbers[SAVED_WORKED_UNTIL]);
    undo_set_long(&records->memory, lease->locked_until, saved->numbers[SAVED_LOCKED_UNTIL]);
    lease->owner_size = (uint32_t)saved->owner.size;
    memcpy(lease->owner, saved->owner.data, saved->owner.size);
    return true;
}

/* `is_away`: its content stays on disk, if it may. */
static bool records_saved_add(struct records *records, int space, const struct saved *saved, bool is_away)
{
    const uint64_t *numbers = saved->numbers;
    enum records_type type = (enum records_type)(numbers[SAVED_KIND] & KIND_TYPE);
    bool is_apart = records_goes_apart(saved->content.size, flags_of(numbers[SAVED_KIND]));
    uint32_t piece = is_apart && is_away ? records_make_away(records, space, saved->content, type)
                                         : records_make_value(records, space, saved->content, type, is_apart);
    if (!piece)
        return false;
    if (is_apart && !is_away)
        records_set_state(records, records_value(records, piece), VALUE_SAVED);
    struct value_piece *value = records_value(records, piece);
    records_set_timestamp(records, piece, numbers[SAVED_TIMESTAMP]);
    records_set_flags(records, piece, flags_of(numbers[SAVED_KIND]));
    value->created_s = (uint32_t)numbers[SAVED_CREATED];
    value->modified_s = (uint32_t)numbers[SAVED_MODIFIED];
    value->accessed_s = (uint32_t)numbers[SAVED_ACCESSED];
    if (numbers[SAVED_LAYOUT] != LAYOUT_BARE)
        value->change = (uint32_t)numbers[SAVED_CHANGE];
    for (uint64_t i = numbers[SAVED_KEYS]; i > 0; i--)
        if (!records_add_key(records, space, piece, saved->keys[i - 1]))
            return false;
    const struct records_payer payer = {.rule = numbers[SAVED_RULE], .caller = numbers[SAVED_CALLER]};
    return records_set_expiry(records, piece, (int64_t)numbers[SAVED_EXPIRES]) &&
           records_set_touch(records, piece, (uint32_t)numbers[SAVED_TOUCH]) &&
           add_lease(records, piece, saved) &&
           (!payer.rule || !payer.caller || records_settle_share(records, piece, &payer, true));
}

enum records_saved_result records_saved_read(struct records *records, struct bytes text, bool is_encrypted)
{
    struct saved saved;
    if (!records_saved_read_text(text, &saved))
        return RECORDS_SAVED_MALFORMED;
    uint64_t expires = saved.numbers[SAVED_EXPIRES];
    if (expires && expires <= (uint64_t)records->now_ms)
        return RECORDS_SAVED_OVER;
    for (bool is_away = false;;) {
        int space = records_load_space(records, saved.code, records_kind_of(is_encrypted));
        for (uint64_t i = 0; space >= 0 && i < saved.numbers[SAVED_KEYS]; i++)
            if (records_find(records, space, saved.keys[i]))
                return RECORDS_SAVED_THERE;
        records->lack.bytes = 0;
        if (space >= 0 && records_saved_add(records, space, &saved, is_away)) {
            records_commit(records);
            return RECORDS_SAVED_READ;
        }
        records_abandon(records);
        if (records->lack.bytes && records->lack.is_apart)
            is_away = !records_widen(records);
        else if (records_make_room(records) == ROOM_NONE)
            return RECORDS_SAVED_NO_ROOM;
    }
}

bool records_saved_key(struct bytes text, struct bytes *key_r)
{
    struct saved saved;
    bool is_whole = records_saved_read_text(text, &saved);
    *key_r = saved.keys[0];
    return is_whole;
}

bool records_saved_content(struct bytes text, struct bytes *content_r)
{
    struct saved saved;
    bool is_whole = records_saved_read_text(text, &saved);
    *content_r = saved.content;
    return is_whole;
}
