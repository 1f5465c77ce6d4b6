/* percent: one pass; most texts have no escape and are returned as they are. */
#include "base/coding/percent.h"

#include <sys/types.h>

#include "base/coding/hex.h"

static bool contains_byte(struct bytes text, char byte)
{
    return text.size && memchr(text.data, byte, text.size);
}

/* Decodes into `decoded`, which has room for the whole text; -1: a percent sign without two digits. */
static ssize_t decode_escapes(struct bytes text, char ns, char *decoded)
{
    const char *at = text.data, *end = text.data + text.size;
    char *out = decoded;
    while (at < end) {
        char byte = *at++;
        if (byte == '%') {
            int value = end - at >= 2 ? hex_byte(at) : -1;
            if (value < 0)
                return -1;
            byte = (char)value;
            at += 2;
        } else if (byte == ns) {
            byte = ' ';
        }
        *out++ = byte;
    }
    return out - decoded;
}

enum fault percent_decode(struct arena *arena, struct bytes text, bool plus_is_space, struct bytes *decoded_r,
                          const char **what_r)
{
    *decoded_r = text;
    if (contains_byte(text, '%') || (plus_is_space && contains_byte(text, '+'))) {
        char *decoded = arena_alloc(arena, text.size);
        ssize_t size = decode_escapes(text, plus_is_space ? '+' : ' ', decoded);
        if (size < 0) {
            *what_r = "A percent sign stands without two hexadecimal digits.";
            return FAULT_AARG;
        }
        *decoded_r = (struct bytes){decoded, (size_t)size};
    }
    bool has_nul = contains_byte(*decoded_r, '\0');
    if (has_nul) {
        *what_r = "The character U+0000 is not allowed.";
        return FAULT_AARG;
    }
    return FAULT_NONE;
}
