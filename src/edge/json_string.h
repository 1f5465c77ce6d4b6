/* json_string: the inside of JSON strings; writing a whole one is declared in json.h. */
#ifndef STAMPD_EDGE_JSON_STRING_H
#define STAMPD_EDGE_JSON_STRING_H

#include "base/bytes.h"
#include "base/swar.h"

/* Decodes what stands between two quotes, whose escapes are complete (the caller's parser saw to it). `value`
 * has room for raw.size bytes, as decoding never makes longer; NULL: check only.  Returns NULL, or static
 * words that say what is wrong at `*offset_r`: U+0000 or a surrogate without its other half. */
MUST_USE const char *json_decode_string(struct bytes raw, char *value, size_t *size_r, size_t *offset_r);

/* Length of the beginning of the text that is written in a string as it is: up to a quote, a backslash or a
 * control character. */
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
