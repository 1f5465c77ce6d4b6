/* base64: encodes three bytes as four letters of six bits; a rest of one or two bytes as two or three
 * letters. */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_add(struct builder *builder, struct bytes bytes)
{
    const unsigned char *byte = (const unsigned char *)bytes.data;
    unsigned held = 0, bits = 0;
    char *out = builder_reserve(builder, bytes.size / 3 * 4 + 4), *start = out;
    for (size_t i = 0; i < bytes.size; i++) {
        held = held << 8 | byte[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = letters[held >> (bits - 6) & 63];
    }
    if (bits)
        *out++ = letters[held << (6 - bits) & 63];
    builder->size += (size_t)(out - start);
}

bool base64_read(struct bytes text, void *bytes_r, size_t size)
{
    unsigned char *out = bytes_r;
    unsigned held = 0, bits = 0;
    size_t count = size / 3 * 4 + (size % 3 ? size % 3 + 1 : 0), padding = (4 - count % 4) % 4;
    if (text.size == count + padding) /* padding is complete or absent */
        for (; text.size > count && text.data[text.size - 1] == '='; text.size--)
            ;
    if (text.size != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *letter = memchr(letters, text.data[i], sizeof letters - 1);
        if (!letter)
            return false;
        held = (held << 6 | (unsigned)(letter - letters)) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *out++ = (unsigned char)(held >> bits);
        }
    }
    return !(held & ((1U << bits) - 1));
}

bool base64_read_strict(struct bytes text, void *bytes_r, size_t size)
{
    return text.size && text.data[text.size - 1] != '=' && base64_read(text, bytes_r, size);
}
