/* value: the indexed form of values that documents are found by, so that a value of any length fits into an
 * index.  The same as the SQL functions named here (0006_schema.sql, 0008_collections.sql in sql/).  Pure. */
#ifndef STAMPD_MODEL_DOCUMENT_VALUE_H
#define STAMPD_MODEL_DOCUMENT_VALUE_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"

enum {
    VALUE_FIELD_MOST = 1024, /* longest string of a field stored as itself, in bytes */
    VALUE_MEMBER_MOST = 255  /* longest value of a property stored as itself, in bytes */
};

/* As stampd.field_text(): a longer text becomes its first characters, a mark and its SHA-256.  `text` is
 * UTF-8. */
struct bytes value_of_field(struct arena *arena, struct bytes text);

/* As stampd.property_text(): a longer text becomes its size and its SHA-256. */
struct bytes value_of_member(struct arena *arena, struct bytes text);

/* The characters of a string, a number or a truth value, in that form; false: it is none of them, and no
 * document is found by it. */
MUST_USE bool value_of_json(struct arena *arena, const struct json *json, struct bytes *text_r);

/* The same of a text that is known by its size, of more than VALUE_MEMBER_MOST bytes, and its SHA-256 in
 * lower case hexadecimal. */
struct bytes value_of_digest(struct arena *arena, int64_t size, struct bytes hex);

/* Appends one of the several values of a collection, in the form of stampd.property_joined(). */
void value_join(struct builder *joined, struct bytes value);

#endif
