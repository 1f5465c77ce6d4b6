/* search_prefix: increments the last character that has a successor. */
#include "model/schema/search_prefix.h"

#include <string.h>

enum { CODE_POINT_LAST = 0x10FFFF, SURROGATE_FIRST = 0xD800, SURROGATE_LAST = 0xDFFF };

/* The code point of the `size` bytes at `at`, a well-formed sequence. */
static uint32_t utf8_decode(const unsigned char *at, size_t size)
{
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = at[0] & lead_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (at[i] & 0x3F);
    return code;
}

static size_t utf8_encode(uint32_t code, char *at)
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead_marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        at[i] = (char)(0x80 | (code & 0x3F));
    at[0] = (char)(lead_marks[size] | code);
    return size;
}

bool search_prefix_end(struct arena *arena, struct bytes prefix, struct bytes *end_r)
{
    assert(bytes_is_utf8(prefix));
    const unsigned char *text = (const unsigned char *)prefix.data;
    size_t end = prefix.size;
    while (end) {
        size_t start = end - 1;
        while (start && (text[start] & 0xC0) == 0x80)
            start--;
        uint32_t code = utf8_decode(text + start, end - start);
        if (code != CODE_POINT_LAST) {
            code = code + 1 == SURROGATE_FIRST ? SURROGATE_LAST + 1 : code + 1;
            char *copy = arena_alloc(arena, start + 4);
            memcpy(copy, prefix.data, start);
            *end_r = (struct bytes){copy, start + utf8_encode(code, copy + start)};
            return true;
        }
        end = start; /* no value follows U+10FFFF here: increment the character before it */
    }
    return false;
}
