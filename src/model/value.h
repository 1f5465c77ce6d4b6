/* value: what stands for a value where documents are found by it, so that one of any length has a place in an
 * index.  The same as the functions of the database that are named here (sql/0018_values.sql,
 * sql/0025_long_values.sql).  Pure. */
#ifndef STAMPD_MODEL_VALUE_H
#define STAMPD_MODEL_VALUE_H

#include "base/arena.h"
#include "base/bytes.h"

enum {
    VALUE_FIELD_MOST = 1024, /* bytes of a string of a field that stands for itself */
    VALUE_MEMBER_MOST = 255  /* bytes of a value of a property that stands for itself */
};

/* stampd.field_text(): of a longer text its first characters, a mark and its SHA-256.  `text` is UTF-8. */
struct bytes value_of_field(struct arena *arena, struct bytes text);

/* stampd.property_text(): of a longer text its size and its SHA-256. */
struct bytes value_of_member(struct arena *arena, struct bytes text);

/* Adds what stands for one of the several values of a collection, as stampd.property_joined() does. */
void value_join(struct builder *joined, struct bytes value);

#endif
