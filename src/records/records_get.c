/* records_get: what is read of a record, and the words and numbers of contents. */
#include "records/records_private.h"

#include <math.h>
#include <string.h>

enum { KEPT_BYTES = 1 << 20 };

static int64_t until(const struct records *records, const uint32_t end_ms[2])
{
    int64_t end = (int64_t)undo_long(end_ms);
    return end > records->now_ms ? end : 0;
}

void records_describe(struct records *records, uint32_t piece, struct bytes key, bool with_content,
                      struct records_found *found_r)
{
    const struct value_piece *value = records_value(records, piece);
    const struct lease_piece *lease = records_lease_of(records, value);
    uint32_t size = records_size(value);
    *found_r = (struct records_found){
        .type = records_type(value),
        .expires_ms = records_end(records, value),
        .touch_s = value->side ? records_side(records, value->side)->touch_s : 0,
        .timestamp_us = (int64_t)records_timestamp(value),
        .stamp = records_stamp(value),
        .created_s = value->created_s,
        .modified_s = value->modified_s,
        .accessed_s = value->accessed_s,
        .locked_until_ms = lease ? until(records, lease->locked_until) : 0,
        .worked_until_ms = lease ? until(records, lease->worked_until) : 0,
        .size = size,
        .is_persisted = records_flags(value) & VALUE_PERSISTED,
    };
    builder_clear(&records->out, KEPT_BYTES);
    builder_reserve(&records->out, key.size + size + 1);
    builder_add(&records->out, key.data, key.size);
    if (with_content)
        builder_add(&records->out,
                    records_is_away(value) ? records->read.content.data : records_content(records, value),
                    size);
    found_r->key = (struct bytes){records->out.data, key.size};
    if (with_content)
        found_r->content = (struct bytes){records->out.data + key.size, size};
}

static void extend(struct records *records, uint32_t piece, int64_t expires_ms)
{
    const struct value_piece *value = records_value(records, piece);
    int64_t end = records_end(records, value);
    if (!end || expires_ms <= end)
        return;
    bool is_set = records_set_expiry(records, piece, expires_ms);
    assert(is_set); /* it has a side */
    uint32_t flags = records_flags(value);
    if (!(flags & VALUE_PERSISTED) || flags & VALUE_TOUCHED)
        return;
    /* without memory the disk has it with the next change; without the content, when that is back */
    if (records_is_away(value) || records_list_unsaved(records, piece))
        records_set_flags(records, piece, flags | VALUE_TOUCHED);
}

/* Where a GET moves the end to. */
static int64_t latest_end(const struct records_command *command)
{
    bool is_later = command->ends_by_ms && command->expires_ms > command->ends_by_ms;
    return is_later ? command->ends_by_ms : command->expires_ms;
}

enum records_outcome records_get(struct records *records, uint32_t piece,
                                 const struct records_command *command, struct records_found *found_r)
{
    struct value_piece *value = piece ? records_value(records, piece) : NULL;
    if (!value || records_flags(value) & VALUE_DELETED)
        return RECORDS_NOT_FOUND;
    const struct lease_piece *lease = records_lease_of(records, value);
    if (command->leaves_worked && lease && until(records, lease->worked_until)) {
        records_describe(records, piece, command->key, false, found_r);
        return RECORDS_WORKED_ON;
    }
    if (command->lease_ms) {
        uint32_t taken = records_need_lease(records, piece);
        if (!taken)
            return RECORDS_OUT_OF_MEMORY;
        undo_set_long(&records->memory, records_lease(records, taken)->worked_until,
                      (uint64_t)(records->now_ms + command->lease_ms));
        if (!records_settle_share(records, piece, command->payer,
                                  command->payer && records_weigh(records, piece) > records->weight))
            return RECORDS_OUT_OF_MEMORY;
        if (records_flags(value) & VALUE_PERSISTED && !records_list_unsaved(records, piece))
            return RECORDS_OUT_OF_MEMORY;
    }
    if (command->expires_ms)
        extend(records, piece, latest_end(command));
    if (!command->is_probe) {
        uint32_t touch_s = value->side ? records_side(records, value->side)->touch_s : 0;
        if (touch_s)
            extend(records, piece, records->now_ms + (int64_t)touch_s * 1000);
        uint32_t now_s = (uint32_t)(records->now_ms / 1000);
        if (value->accessed_s < now_s)
            value->accessed_s = now_s; /* one word: whole without a note */
        if (records_is_apart(value) && !(value->form & VALUE_USED))
            value->form |= VALUE_USED;
    }
    records_describe(records, piece, command->key, !command->is_probe, found_r);
    return RECORDS_OK;
}

/* --- contents --- */

int64_t records_read_integer(struct bytes content)
{
    assert(content.size == sizeof(uint64_t));
    return (int64_t)bytes_get_u64((const unsigned char *)content.data);
}

double records_read_float(struct bytes content)
{
    int64_t bits = records_read_integer(content);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void records_write_integer(char content_r[8], int64_t number)
{
    bytes_put_u64((unsigned char *)content_r, (uint64_t)number);
}

void records_write_float(char content_r[8], double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    records_write_integer(content_r, bits);
}

enum records_outcome records_add_up(enum records_type type, struct bytes a, struct bytes b, char sum_r[8])
{
    if (type == RECORDS_INTEGER) {
        int64_t number;
        if (__builtin_add_overflow(records_read_integer(a), records_read_integer(b), &number))
            return RECORDS_OUT_OF_RANGE;
        records_write_integer(sum_r, number);
    } else {
        double number = records_read_float(a) + records_read_float(b);
        if (!isfinite(number))
            return RECORDS_OUT_OF_RANGE;
        records_write_float(sum_r, number);
    }
    return RECORDS_OK;
}

bool records_is_key(struct bytes key)
{
    return key.size >= 1 && key.size <= RECORDS_KEY_MOST && !memchr(key.data, 0, key.size) &&
           bytes_is_utf8(key);
}

bool records_is_content(enum records_type type, struct bytes content)
{
    if (content.size > RECORDS_CONTENT_MOST)
        return false;
    switch (type) {
    case RECORDS_VOID:
        return content.size == 0;
    case RECORDS_BUFFER:
        return true;
    case RECORDS_STRING:
        return bytes_is_utf8(content);
    case RECORDS_INTEGER:
        return content.size == 8;
    case RECORDS_FLOAT:
        return content.size == 8 && isfinite(records_read_float(content));
    case RECORDS_BOOLEAN:
        return content.size == 1 && (unsigned char)content.data[0] <= 1;
    case RECORDS_TYPES:
        break;
    }
    return false;
}

const char *records_outcome_word(enum records_outcome outcome)
{
    static const char *const words[RECORDS_OUTCOMES] = {
        [RECORDS_OK] = "OK",
        [RECORDS_NOT_FOUND] = "NOT_FOUND",
        [RECORDS_NOT_FREE] = "NOT_FREE",
        [RECORDS_OLDER] = "OLDER",
        [RECORDS_LOCKED] = "LOCKED",
        [RECORDS_NOT_LOCKED] = "NOT_LOCKED",
        [RECORDS_WORKED_ON] = "WORKED_ON",
        [RECORDS_WRONG_TYPE] = "WRONG_TYPE",
        [RECORDS_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [RECORDS_TOO_MANY_KEYS] = "TOO_MANY_KEYS",
        [RECORDS_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
        [RECORDS_NO_DISK] = "NO_DISK",
        [RECORDS_BUSY] = "BUSY",
        [RECORDS_NOT_SAVED] = "NOT_SAVED",
        [RECORDS_NOT_READ] = "NOT_READ",
        [RECORDS_OTHER_STAMP] = "OTHER_STAMP",
        [RECORDS_OUT_OF_SHARE] = "OUT_OF_SHARE",
        [RECORDS_ELSEWHERE] = "ELSEWHERE",
        [RECORDS_UNKNOWN] = "UNKNOWN",
        [RECORDS_NO_PARTICIPANTS] = "NO_PARTICIPANTS",
        [RECORDS_UNSUPPORTED] = "UNSUPPORTED",
    };
    return words[outcome];
}

const char *records_type_word(enum records_type type)
{
    static const char *const words[RECORDS_TYPES] = {
        [RECORDS_VOID] = "void",       [RECORDS_BUFFER] = "buffer", [RECORDS_STRING] = "string",
        [RECORDS_INTEGER] = "integer", [RECORDS_FLOAT] = "float",   [RECORDS_BOOLEAN] = "boolean"};
    return words[type];
}
