/* json_string: decodes and scans the contents of JSON strings; json.h declares the function that writes a
 * string. */
#ifndef STAMPD_EDGE_JSON_JSON_STRING_H
#define STAMPD_EDGE_JSON_JSON_STRING_H

#include "base/bytes.h"
#include "base/coding/swar.h"

/* Decodes the text between two quotes, whose escapes are complete (the caller's parser has checked that).
 * `value` has room for raw.size bytes, as decoded text is never longer; NULL: check only.  Returns NULL, or a
 * static text that describes the error at `*offset_r`: U+0000 or a lone surrogate. */
MUST_USE const char *json_string_decode(struct bytes raw, char *value, size_t *size_r, size_t *offset_r);

/* Length of the prefix that needs no escape in a string: up to a quote, a backslash or a control
 * character. */
static inline size_t json_fast_size(const char *data, size_t size)
{
    size_t i = 0;
    for (; size - i >= 8; i += 8) {
        uint64_t word = swar_load(data + i);
        uint64_t found = swar_below(word, ' ') | swar_equal(word, '"') | swar_equal(word, '\\');
        if (found)
            return i + swar_first(found);
    }
    while (i < size && (unsigned char)data[i] >= ' ' && data[i] != '"' && data[i] != '\\')
        i++;
    return i;
}

#endif
