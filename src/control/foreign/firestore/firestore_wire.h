/* firestore_wire: the fields of a message of protocol buffers, one after the other. */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_WIRE_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_WIRE_H

#include "base/bytes.h"

enum firestore_kind {
    FIRESTORE_VARINT,
    FIRESTORE_FIXED64,
    FIRESTORE_BYTES, /* also an embedded message */
    FIRESTORE_GROUP,
    FIRESTORE_FIXED32 = 5
};
struct firestore_field {
    uint32_t number;
    enum firestore_kind kind;
    uint64_t value;    /* of a number */
    struct bytes text; /* else: a slice of the message */
};
enum firestore_wire_event { FIRESTORE_WIRE_FIELD, FIRESTORE_WIRE_END, FIRESTORE_WIRE_WRONG };

/* Cuts the next field from the message.  FIRESTORE_WIRE_WRONG: these bytes are no message. */
enum firestore_wire_event firestore_wire_next(struct bytes *message, struct firestore_field *field_r);
/* Is it this field, and of this kind? */
static inline bool firestore_wire_is(const struct firestore_field *field, uint32_t number,
                                     enum firestore_kind kind)
{
    return field->number == number && field->kind == kind;
}

#endif
