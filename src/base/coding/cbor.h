/* cbor: reads CBOR (RFC 8949) in the form that authenticators write: definite lengths in their shortest form,
 * no tags, no floating-point numbers.  Each function takes one item, or the beginning of one, from the front
 * of `rest`; false: something else is there, or the text ends before it, and `rest` is undefined.  libfido2
 * reads such texts but does not look behind their end; libcbor would build a tree of them, and accept forms
 * in which two texts mean the same. */
#ifndef STAMPD_BASE_CODING_CBOR_H
#define STAMPD_BASE_CODING_CBOR_H

#include "base/bytes.h"

enum { CBOR_DEPTH_MOST = 4 }; /* arrays and maps within one another */

/* An integer. */
MUST_USE bool cbor_take_integer(struct bytes *rest, int64_t *value_r);
/* A text (not checked for UTF-8), or a string of bytes; slices of `rest`. */
MUST_USE bool cbor_take_text(struct bytes *rest, struct bytes *text_r);
MUST_USE bool cbor_take_octets(struct bytes *rest, struct bytes *octets_r);
/* The beginning of a map of `count_r` pairs, which follow. */
MUST_USE bool cbor_take_map(struct bytes *rest, uint64_t *count_r);
/* An item of any kind with all that it contains, as it is written. */
MUST_USE bool cbor_take_item(struct bytes *rest, struct bytes *item_r);

#endif
