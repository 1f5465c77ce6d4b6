/* firestore_wire: every size is compared with what is left before it is used. */
#include "control/foreign/firestore/firestore_wire.h"

enum { GROUPS_MOST = 8, GROUP_END = 4, NUMBER_MOST = (1 << 29) - 1 };

static bool take_varint(struct bytes *message, uint64_t *value_r)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < message->size; i++) {
        uint64_t bits = (unsigned char)message->data[i] & 127;
        if (i == 9 && bits > 1)
            return false;
        value |= bits << (7 * i);
        if (!((unsigned char)message->data[i] & 128)) {
            *message = (struct bytes){message->data + i + 1, message->size - i - 1};
            *value_r = value;
            return true;
        }
    }
    return false;
}

static bool firestore_wire_take(struct bytes *message, uint64_t size, struct bytes *text_r)
{
    if (size > message->size)
        return false;
    *text_r = (struct bytes){message->data, (size_t)size};
    *message = (struct bytes){message->data + size, message->size - (size_t)size};
    return true;
}

static bool take_fixed(struct bytes *message, size_t size, uint64_t *value_r)
{
    struct bytes text;
    if (!firestore_wire_take(message, size, &text))
        return false;
    *value_r = 0;
    for (size_t i = 0; i < size; i++)
        *value_r |= (uint64_t)(unsigned char)text.data[i] << (8 * i);
    return true;
}

/* The number and the kind that stand before a field; a kind that is none of ours stays as it is. */
static bool take_head(struct bytes *message, uint32_t *number_r, unsigned *kind_r)
{
    uint64_t head;
    if (!take_varint(message, &head) || head >> 3 > NUMBER_MOST || !(head >> 3))
        return false;
    *number_r = (uint32_t)(head >> 3);
    *kind_r = (unsigned)(head & 7);
    return true;
}

/* What follows the head of a field that is no group. */
static bool take_content(struct bytes *message, struct firestore_field *field)
{
    uint64_t size;
    switch (field->kind) {
    case FIRESTORE_VARINT:
        return take_varint(message, &field->value);
    case FIRESTORE_FIXED64:
        return take_fixed(message, 8, &field->value);
    case FIRESTORE_FIXED32:
        return take_fixed(message, 4, &field->value);
    case FIRESTORE_BYTES:
        return take_varint(message, &size) && firestore_wire_take(message, size, &field->text);
    case FIRESTORE_GROUP:
        break;
    }
    return false;
}

/* Up to the end of the group that has begun with this number; groups in it end in their order. */
static bool take_group(struct bytes *message, uint32_t number, struct bytes *text_r)
{
    uint32_t open[GROUPS_MOST] = {number};
    size_t depth = 1;
    const char *start = message->data;
    while (depth) {
        struct firestore_field field = {0};
        const char *at = message->data;
        unsigned kind;
        if (!take_head(message, &field.number, &kind))
            return false;
        if (kind == GROUP_END) {
            if (open[--depth] != field.number)
                return false;
            *text_r = (struct bytes){start, (size_t)(at - start)};
        } else if (kind == FIRESTORE_GROUP) {
            if (depth == GROUPS_MOST)
                return false;
            open[depth++] = field.number;
        } else {
            field.kind = (enum firestore_kind)kind;
            if (kind > FIRESTORE_FIXED32 || !take_content(message, &field))
                return false;
        }
    }
    return true;
}

enum firestore_wire_event firestore_wire_next(struct bytes *message, struct firestore_field *field_r)
{
    unsigned kind;
    *field_r = (struct firestore_field){0};
    if (!message->size)
        return FIRESTORE_WIRE_END;
    if (!take_head(message, &field_r->number, &kind) || kind > FIRESTORE_FIXED32 || kind == GROUP_END)
        return FIRESTORE_WIRE_WRONG;
    field_r->kind = (enum firestore_kind)kind;
    bool is_good = kind == FIRESTORE_GROUP ? take_group(message, field_r->number, &field_r->text)
                                           : take_content(message, field_r);
    return is_good ? FIRESTORE_WIRE_FIELD : FIRESTORE_WIRE_WRONG;
}
