/* base64: encodes three bytes as four letters of six bits; a rest of one or two bytes as two or three
 * letters.  A letter is decoded by a table. */
#include "base/coding/base64.h"

static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* What a letter stands for: LETTER and the six bits; 0: it is no letter. */
enum { LETTER = 64, BITS = 63 };
#define ROW(from, first) [from] = LETTER + (first)
#define FIVE(c, n)                                                                                           \
    ROW(c, n), ROW((c) + 1, (n) + 1), ROW((c) + 2, (n) + 2), ROW((c) + 3, (n) + 3), ROW((c) + 4, (n) + 4)
#define ALPHABET(c, n)                                                                                       \
    FIVE(c, n), FIVE((c) + 5, (n) + 5), FIVE((c) + 10, (n) + 10), FIVE((c) + 15, (n) + 15),                  \
        FIVE((c) + 20, (n) + 20), ROW((c) + 25, (n) + 25)
#define BOTH ALPHABET('A', 0), ALPHABET('a', 26), FIVE('0', 52), FIVE('5', 57)
static const unsigned char of_url[256] = {BOTH, ROW('-', 62), ROW('_', 63)};
static const unsigned char of_standard[256] = {BOTH, ROW('+', 62), ROW('/', 63)};

static size_t encode(struct bytes bytes, const char *letters, char *out)
{
    const unsigned char *byte = (const unsigned char *)bytes.data;
    const char *start = out;
    size_t rest = bytes.size % 3;
    for (const unsigned char *end = byte + (bytes.size - rest); byte < end; byte += 3) {
        unsigned held = (unsigned)byte[0] << 16 | (unsigned)byte[1] << 8 | byte[2];
        *out++ = letters[held >> 18];
        *out++ = letters[held >> 12 & 63];
        *out++ = letters[held >> 6 & 63];
        *out++ = letters[held & 63];
    }
    if (rest) {
        unsigned held = (unsigned)byte[0] << 16 | (rest == 2 ? (unsigned)byte[1] << 8 : 0);
        *out++ = letters[held >> 18];
        *out++ = letters[held >> 12 & 63];
        if (rest == 2)
            *out++ = letters[held >> 6 & 63];
    }
    return (size_t)(out - start);
}

static void add(struct builder *builder, struct bytes bytes, const char *letters)
{
    char *out = builder_reserve(builder, BASE64_SIZE(bytes.size));
    builder->size += encode(bytes, letters, out);
}

size_t base64_write(struct bytes bytes, char *text_r)
{
    return encode(bytes, url, text_r);
}

void base64_add(struct builder *builder, struct bytes bytes)
{
    add(builder, bytes, url);
}

void base64_add_standard(struct builder *builder, struct bytes bytes)
{
    add(builder, bytes, standard);
    for (size_t rest = bytes.size % 3; rest && rest < 3; rest++)
        builder_add_text(builder, "=");
}

/* Four letters at a time, as most texts are long; `values` is that of the alphabet. */
static bool base64_decode(struct bytes text, unsigned char *out, const unsigned char *values)
{
    if (!text.size)
        return true;
    const unsigned char *letter = (const unsigned char *)text.data;
    const unsigned char *end = letter + text.size, *whole = end - text.size % 4;
    for (; letter < whole; letter += 4) {
        const unsigned a = values[letter[0]], b = values[letter[1]], c = values[letter[2]],
                       d = values[letter[3]];
        if (!(a & b & c & d & LETTER))
            return false;
        *out++ = (unsigned char)(a << 2 | (b & BITS) >> 4);
        *out++ = (unsigned char)(b << 4 | (c & BITS) >> 2);
        *out++ = (unsigned char)(c << 6 | (d & BITS));
    }
    unsigned held = 0, bits = 0;
    for (; letter < end; letter++) {
        if (!(values[*letter] & LETTER))
            return false;
        held = held << 6 | (values[*letter] & BITS);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *out++ = (unsigned char)(held >> bits);
        }
    }
    return !(held & ((1U << bits) - 1));
}

static bool base64_read_text(struct bytes text, void *bytes_r, size_t size, const unsigned char *values)
{
    size_t count = size / 3 * 4 + (size % 3 ? size % 3 + 1 : 0), padding = (4 - count % 4) % 4;
    if (text.size == count + padding) /* padding is complete or absent */
        for (; text.size > count && text.data[text.size - 1] == '='; text.size--)
            ;
    return text.size == count && base64_decode(text, bytes_r, values);
}

bool base64_read(struct bytes text, void *bytes_r, size_t size)
{
    return base64_read_text(text, bytes_r, size, of_url);
}

bool base64_read_standard(struct bytes text, void *bytes_r, size_t size)
{
    return base64_read_text(text, bytes_r, size, of_standard);
}

bool base64_read_strict(struct bytes text, void *bytes_r, size_t size)
{
    return text.size && text.data[text.size - 1] != '=' && base64_read(text, bytes_r, size);
}

size_t base64_size(struct bytes text)
{
    for (int padding = 0; padding < 2 && text.size && text.data[text.size - 1] == '='; padding++)
        text.size--;
    return text.size / 4 * 3 + (text.size % 4 ? text.size % 4 - 1 : 0);
}
