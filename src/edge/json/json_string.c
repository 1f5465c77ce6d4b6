/* json_string: decodes and writes escapes. */
#include "edge/json/json_string.h"

#include "base/coding/hex.h"
#include "edge/json/json.h"

static unsigned unit_at(const char *digits)
{
    return (unsigned)hex_byte(digits) << 8 |
           (unsigned)hex_byte(digits + 2); /* the parser has seen four digits */
}

/* Reads the character whose \u escape is at `at`, one or two of them; returns NULL or the error. */
static const char *read_character(const char **at, const char *end, unsigned *code_r)
{
    unsigned unit = unit_at(*at + 2);
    if (unit == 0)
        return "the character U+0000 is not allowed";
    if (unit < 0xD800 || unit > 0xDFFF) {
        *at += 6;
        *code_r = unit;
        return NULL;
    }
    bool has_second = unit < 0xDC00 && end - *at >= 12 && (*at)[6] == '\\' && (*at)[7] == 'u';
    unsigned second = has_second ? unit_at(*at + 8) : 0;
    if (second < 0xDC00 || second > 0xDFFF)
        return "a surrogate stands without its other half";
    *at += 12;
    *code_r = 0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00);
    return NULL;
}

static size_t write_utf8(char *at, unsigned code)
{
    if (code < 0x80) {
        at[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        at[i] = (char)(0x80 | (code & 0x3F));
    at[0] = (char)((0xF00 >> length & 0xFF) | code); /* as many leading ones as bytes */
    return length;
}

static char letter_escape(char letter)
{
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return letter; /* quote, backslash, slash */
    }
}

const char *json_string_decode(struct bytes raw, char *value, size_t *size_r, size_t *offset_r)
{
    const char *at = raw.data, *end = raw.data + raw.size;
    size_t size = 0;
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((escape ? escape : end) - at), length = 1;
        if (value)
            memcpy(value + size, at, plain);
        size += plain;
        at += plain;
        if (!escape)
            break;
        char character[4];
        if (at[1] == 'u') {
            unsigned code = 0;
            const char *wrong = read_character(&at, end, &code);
            if (wrong) {
                *offset_r = (size_t)(at - raw.data);
                return wrong;
            }
            length = write_utf8(character, code);
        } else {
            character[0] = letter_escape(at[1]);
            at += 2;
        }
        if (value)
            memcpy(value + size, character, length);
        size += length;
    }
    *size_r = size;
    return NULL;
}

/* Extra bytes of each byte in a JSON string: 0 as it is, 1 `\n`, 5 `\u001f`. */
static const unsigned char escape_cost[256] = {5, 5, 5, 5, 5, 5, 5, 5, 1,         1,         1, 5,
                                               1, 1, 5, 5, 5, 5, 5, 5, 5,         5,         5, 5,
                                               5, 5, 5, 5, 5, 5, 5, 5, ['"'] = 1, ['\\'] = 1};

static size_t write_escape(char *at, unsigned char byte)
{
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    at[0] = '\\';
    if (escape_cost[byte] == 1) {
        at[1] = byte < sizeof letters ? letters[byte] : (char)byte;
        return 2;
    }
    memcpy(at + 1, "u00", 3);
    hex_write(&byte, 1, at + 4);
    return 6;
}

size_t json_string_size(struct bytes text)
{
    size_t size = text.size + 2;
    for (size_t i = 0; i < text.size; i++) {
        i += json_fast_size(text.data + i, text.size - i);
        if (i < text.size)
            size += escape_cost[(unsigned char)text.data[i]];
    }
    return size;
}

void json_add_string(struct builder *builder, struct bytes text)
{
    builder_add_text(builder, "\"");
    for (size_t i = 0; i < text.size; i++) {
        size_t plain = json_fast_size(text.data + i, text.size - i);
        builder_add(builder, text.data + i, plain);
        i += plain;
        if (i == text.size)
            break;
        builder->size += write_escape(builder_reserve(builder, 6), (unsigned char)text.data[i]);
    }
    builder_add_text(builder, "\"");
}

void json_add_behind(struct builder *builder, const char *before, size_t before_size, struct bytes text)
{
    builder_add(builder, before, before_size);
    json_add_string(builder, text);
}

void json_add_member(struct builder *builder, const char *name, struct bytes text)
{
    if (!text.data)
        return;
    builder_printf(builder, ",\"%s\":", name);
    json_add_string(builder, text);
}

void json_add_filled(struct builder *builder, const char *name, struct bytes text)
{
    json_add_member(builder, name, text.size ? text : NO_BYTES);
}
