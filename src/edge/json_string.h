/* json_string: the inside of JSON strings.  Private to json; writing is declared in json.h. */
#ifndef STAMPD_EDGE_JSON_STRING_H
#define STAMPD_EDGE_JSON_STRING_H

#include "base/bytes.h"

/* Decodes what stands between two quotes, whose escapes are complete (the caller's parser saw to it). `value`
 * has room for raw.size bytes, as decoding never makes longer; NULL: check only.  Returns NULL, or static
 * words that say what is wrong at `*offset_r`: U+0000 or a surrogate without its other half. */
MUST_USE const char *json_decode_string(struct bytes raw, char *value, size_t *size_r, size_t *offset_r);

#endif
