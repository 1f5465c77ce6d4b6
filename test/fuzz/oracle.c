/* oracle: a recursive descent that follows the grammar of RFC 8259 rule by rule.  A function takes its rule
 * off the text and returns whether it was there. */
#include "oracle.h"

#include <stdlib.h>

#include "base/builder.h"

struct cursor {
    const unsigned char *at, *end;
    int depth_left;
};

static bool take(struct cursor *cursor, char byte)
{
    bool is_there = cursor->at < cursor->end && *cursor->at == (unsigned char)byte;
    cursor->at += is_there;
    return is_there;
}

static bool take_range(struct cursor *cursor, int first, int last)
{
    bool is_there = cursor->at < cursor->end && *cursor->at >= first && *cursor->at <= last;
    cursor->at += is_there;
    return is_there;
}

static void skip_white_space(struct cursor *cursor)
{
    while (take(cursor, ' ') || take(cursor, '\t') || take(cursor, '\n') || take(cursor, '\r'))
        ;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    while (*word)
        if (!take(cursor, *word++))
            return false;
    return true;
}

static bool take_digits(struct cursor *cursor)
{
    if (!take_range(cursor, '0', '9'))
        return false;
    while (take_range(cursor, '0', '9'))
        ;
    return true;
}

static bool take_number(struct cursor *cursor)
{
    take(cursor, '-');
    if (!take(cursor, '0') && !(take_range(cursor, '1', '9') && (take_digits(cursor), true)))
        return false;
    if (take(cursor, '.') && !take_digits(cursor))
        return false;
    if (take(cursor, 'e') || take(cursor, 'E')) {
        if (!take(cursor, '+'))
            take(cursor, '-');
        return take_digits(cursor);
    }
    return true;
}

static bool take_unit(struct cursor *cursor, unsigned *unit_r)
{
    *unit_r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned char *digit = cursor->at;
        if (take_range(cursor, '0', '9'))
            *unit_r = *unit_r * 16 + (unsigned)(*digit - '0');
        else if (take_range(cursor, 'a', 'f'))
            *unit_r = *unit_r * 16 + 10 + (unsigned)(*digit - 'a');
        else if (take_range(cursor, 'A', 'F'))
            *unit_r = *unit_r * 16 + 10 + (unsigned)(*digit - 'A');
        else
            return false;
    }
    return true;
}

static void add_code(struct builder *builder, unsigned code)
{
    char text[4];
    size_t size = 0;
    if (code < 0x80) {
        text[size++] = (char)code;
    } else if (code < 0x800) {
        text[size++] = (char)(192 + code / 64);
        text[size++] = (char)(128 + code % 64);
    } else if (code < 0x10000) {
        text[size++] = (char)(224 + code / 4096);
        text[size++] = (char)(128 + code / 64 % 64);
        text[size++] = (char)(128 + code % 64);
    } else {
        text[size++] = (char)(240 + code / 262144);
        text[size++] = (char)(128 + code / 4096 % 64);
        text[size++] = (char)(128 + code / 64 % 64);
        text[size++] = (char)(128 + code % 64);
    }
    builder_add(builder, text, size);
}

/* What stands behind a backslash. */
static bool take_escape(struct cursor *cursor, struct builder *decoded)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    for (size_t i = 0; letters[i]; i++)
        if (take(cursor, letters[i])) {
            builder_add(decoded, &meanings[i], 1);
            return true;
        }
    unsigned unit, low;
    if (!take(cursor, 'u') || !take_unit(cursor, &unit) || unit == 0)
        return false;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (!take_word(cursor, "\\u") || !take_unit(cursor, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        unit = 0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit <= 0xDFFF) {
        return false;
    }
    add_code(decoded, unit);
    return true;
}

static bool take_string(struct cursor *cursor, struct builder *decoded)
{
    if (!take(cursor, '"'))
        return false;
    while (!take(cursor, '"')) {
        const unsigned char *byte = cursor->at;
        if (take(cursor, '\\')) {
            if (!take_escape(cursor, decoded))
                return false;
        } else if (take_range(cursor, 0x20, 0xFF)) {
            builder_add(decoded, byte, 1);
        } else {
            return false;
        }
    }
    return true;
}

static bool take_value(struct cursor *cursor);

static bool take_elements(struct cursor *cursor)
{
    skip_white_space(cursor);
    if (take(cursor, ']'))
        return true;
    do {
        if (!take_value(cursor))
            return false;
    } while (take(cursor, ','));
    return take(cursor, ']');
}

/* Decoded names stand in one builder, each with its end, until the object is closed. */
struct names {
    struct builder text;
    struct builder ends; /* of size_t */
};

static bool is_new(const struct names *names, size_t start)
{
    const char *text = builder_bytes(&names->text).data;
    struct bytes name = {text + start, names->text.size - start};
    size_t from = 0;
    for (size_t i = 0; i < names->ends.size; i += sizeof from) {
        size_t end;
        memcpy(&end, names->ends.data + i, sizeof end);
        if (bytes_equal((struct bytes){text + from, end - from}, name))
            return false;
        from = end;
    }
    return true;
}

static bool take_members(struct cursor *cursor, struct names *names)
{
    skip_white_space(cursor);
    if (take(cursor, '}'))
        return true;
    do {
        size_t start = names->text.size;
        skip_white_space(cursor);
        if (!take_string(cursor, &names->text) || !is_new(names, start))
            return false;
        builder_add(&names->ends, &names->text.size, sizeof names->text.size);
        skip_white_space(cursor);
        if (!take(cursor, ':') || !take_value(cursor))
            return false;
    } while (take(cursor, ','));
    return take(cursor, '}');
}

static bool take_nested(struct cursor *cursor)
{
    bool is_object = take(cursor, '{');
    if ((!is_object && !take(cursor, '[')) || cursor->depth_left == 0)
        return false;
    cursor->depth_left--;
    struct names names = {0};
    bool is_there = is_object ? take_members(cursor, &names) : take_elements(cursor);
    builder_free(&names.text);
    builder_free(&names.ends);
    cursor->depth_left++;
    return is_there;
}

static bool take_value(struct cursor *cursor)
{
    skip_white_space(cursor);
    struct builder ignored = {0};
    int next = cursor->at < cursor->end ? *cursor->at : -1;
    bool is_there = next == 'n'                  ? take_word(cursor, "null")
                    : next == 't'                ? take_word(cursor, "true")
                    : next == 'f'                ? take_word(cursor, "false")
                    : next == '"'                ? take_string(cursor, &ignored)
                    : next == '{' || next == '[' ? take_nested(cursor)
                                                 : take_number(cursor);
    builder_free(&ignored);
    skip_white_space(cursor);
    return is_there;
}

bool oracle_accepts(struct bytes text, int depth)
{
    struct cursor cursor = {(const unsigned char *)text.data, (const unsigned char *)text.data + text.size,
                            depth};
    return bytes_is_utf8(text) && take_value(&cursor) && cursor.at == cursor.end;
}
