/* resp_glob: of several stars only the last one is tried again. */
#include "journal/resp/resp_glob.h"

/* The class that begins at `at`, behind its bracket: does it have the byte?  `end_r`: behind it.  As Redis:
 * one that does not end ends with the pattern. */
static bool class_has(struct bytes pattern, size_t at, unsigned char byte, size_t *end_r)
{
    bool is_not = at < pattern.size && pattern.data[at] == '^', has = false;
    at += is_not;
    for (; at < pattern.size && pattern.data[at] != ']'; at++) {
        unsigned char from = (unsigned char)pattern.data[at], to = from;
        if (from == '\\' && at + 1 < pattern.size) {
            from = to = (unsigned char)pattern.data[++at];
        } else if (at + 2 < pattern.size && pattern.data[at + 1] == '-') {
            to = (unsigned char)pattern.data[at + 2];
            at += 2;
        }
        has |= from <= to ? byte >= from && byte <= to : byte >= to && byte <= from;
    }
    *end_r = at < pattern.size ? at + 1 : at;
    return has != is_not;
}

/* Does the piece of the pattern at `at`, no star, match the byte? */
static bool matches_one(struct bytes pattern, size_t at, unsigned char byte, size_t *end_r)
{
    *end_r = at + 1;
    if (pattern.data[at] == '?')
        return true;
    if (pattern.data[at] == '[')
        return class_has(pattern, at + 1, byte, end_r);
    if (pattern.data[at] == '\\' && at + 1 < pattern.size)
        *end_r = ++at + 1;
    return (unsigned char)pattern.data[at] == byte;
}

bool resp_glob_matches(struct bytes pattern, struct bytes text, int64_t *steps)
{
    size_t at = 0, place = 0, star = SIZE_MAX, again = 0;
    while (place < text.size) {
        size_t end = at;
        if (at < pattern.size && pattern.data[at] == '*') {
            star = ++at;
            again = place;
            continue;
        }
        bool is_same = at < pattern.size && matches_one(pattern, at, (unsigned char)text.data[place], &end);
        *steps -= 1 + (int64_t)(end - at);
        if (*steps < 0 || (!is_same && star == SIZE_MAX))
            return false;
        at = is_same ? end : star;
        place = is_same ? place + 1 : ++again;
    }
    while (at < pattern.size && pattern.data[at] == '*')
        at++;
    return at == pattern.size;
}

size_t resp_glob_prefix(struct bytes pattern, char *prefix_r)
{
    size_t size = 0;
    for (size_t at = 0; at < pattern.size; at++) {
        char byte = pattern.data[at];
        if (byte == '*' || byte == '?' || byte == '[')
            break;
        if (byte == '\\' && at + 1 < pattern.size)
            byte = pattern.data[++at];
        prefix_r[size++] = byte;
    }
    return size;
}
