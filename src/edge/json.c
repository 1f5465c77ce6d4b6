/* json: yajl's callbacks turned into a strict tree; strings written with the escapes they need. */
#include "edge/json.h"

/* --- strings written ----------------------------------------------------------------------------- */

/* Bytes that a byte takes in a JSON string, less one: 0 as it is, 1 `\n`, 5 `\u001f`. */
static const unsigned char escape_cost[256] = {5, 5, 5, 5, 5, 5, 5, 5, 1,         1,         1, 5,
                                               1, 1, 5, 5, 5, 5, 5, 5, 5,         5,         5, 5,
                                               5, 5, 5, 5, 5, 5, 5, 5, ['"'] = 1, ['\\'] = 1};

/* Eight bytes at a time: is there one below 0x20, a quote or a backslash?  May be wrong towards "yes" only.
 */
static bool word_needs_escape(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quotes = word ^ (ones * '"'), slashes = word ^ (ones * '\\');
    return (((word - ones * 0x20) & ~word) | ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes)) &
           tops;
}

/* Length of the beginning of the text that needs no escape. */
static size_t plain_length(const char *data, size_t size)
{
    size_t i = 0;
    for (uint64_t word; size - i >= sizeof word; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        if (word_needs_escape(word))
            break;
    }
    while (i < size && !escape_cost[(unsigned char)data[i]])
        i++;
    return i;
}

static size_t write_escape(char *at, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    at[0] = '\\';
    if (escape_cost[byte] == 1) {
        at[1] = byte < sizeof letters ? letters[byte] : (char)byte;
        return 2;
    }
    memcpy(at + 1, "u00", 3);
    at[4] = digits[byte >> 4];
    at[5] = digits[byte & 15];
    return 6;
}

size_t json_string_size(struct bytes text)
{
    size_t size = text.size + 2;
    for (size_t i = 0; i < text.size; i++) {
        i += plain_length(text.data + i, text.size - i);
        if (i < text.size)
            size += escape_cost[(unsigned char)text.data[i]];
    }
    return size;
}

void json_add_string(struct builder *builder, struct bytes text)
{
    builder_add_text(builder, "\"");
    for (size_t i = 0; i < text.size; i++) {
        size_t plain = plain_length(text.data + i, text.size - i);
        builder_add(builder, text.data + i, plain);
        i += plain;
        if (i == text.size)
            break;
        builder->size += write_escape(builder_reserve(builder, 6), (unsigned char)text.data[i]);
    }
    builder_add_text(builder, "\"");
}
