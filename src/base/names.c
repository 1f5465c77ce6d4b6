/* names: lists of known names, and edit distances to them. */
#include "base/names.h"

enum { COMPARED_MOST = 32, SHOWN_MOST = 64 };

/* Takes the first name off the list; NO_BYTES: the list is empty. */
static struct bytes take_name(const char **known)
{
    if (!**known)
        return NO_BYTES;
    const char *end = strchrnul(*known, ' ');
    struct bytes name = {*known, (size_t)(end - *known)};
    *known = *end ? end + 1 : end;
    return name;
}

bool names_have(const char *known, struct bytes name)
{
    for (struct bytes one; (one = take_name(&known)).data;)
        if (bytes_equal(one, name))
            return true;
    return false;
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t less = a < b ? a : b;
    return less < c ? less : c;
}

/* Number of bytes to insert, remove or replace (Levenshtein), ignoring case; two swapped bytes count as
 * one. */
static size_t distance(struct bytes a, struct bytes b)
{
    size_t rows[3][COMPARED_MOST + 1];
    for (size_t j = 0; j <= b.size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            char x = lower(a.data[i - 1]), y = lower(b.data[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            bool is_exchanged = i > 1 && j > 1 && x == lower(b.data[j - 2]) && y == lower(a.data[i - 2]);
            if (is_exchanged && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[a.size % 3][b.size];
}

/* "doc" for "docs", "collections" for "collection"; a single letter would match too many names. */
static bool is_beginning(struct bytes a, struct bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    for (size_t i = 0; i < size; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return size >= 3;
}

struct bytes names_nearest(const char *known, struct bytes name)
{
    struct bytes nearest = NO_BYTES;
    size_t best = SIZE_MAX;
    if (!name.size || name.size > COMPARED_MOST)
        return NO_BYTES;
    for (struct bytes one; (one = take_name(&known)).data;) {
        if (one.size > COMPARED_MOST)
            continue;
        size_t size = one.size > name.size ? one.size : name.size, most = size < 3 ? 0 : (size + 1) / 3;
        size_t edits = distance(one, name);
        if (edits > most && is_beginning(one, name))
            edits = most;
        if (edits <= most && edits < best) {
            nearest = one;
            best = edits;
        }
    }
    return nearest;
}

/* Cuts at a character boundary. */
static struct bytes shortened(struct bytes name)
{
    size_t size = SHOWN_MOST;
    if (name.size <= SHOWN_MOST)
        return name;
    while (size && ((unsigned char)name.data[size] & 0xc0) == 0x80)
        size--;
    return (struct bytes){name.data, size};
}

void names_explain(const char *known, const char *kind, struct bytes name, struct builder *text)
{
    struct bytes shown = shortened(name), nearest = names_nearest(known, name);
    builder_printf(text, "Unknown %s \"%.*s%s\"", kind, (int)shown.size, shown.data,
                   shown.size < name.size ? "..." : "");
    if (nearest.data) {
        builder_printf(text, "; did you mean \"%.*s\"?", (int)nearest.size, nearest.data);
        return;
    }
    if (!*known) {
        builder_printf(text, "; no %s is expected here.", kind);
        return;
    }
    const char *before = strchr(known, ' ') ? "; known are " : "; known is only ";
    for (struct bytes one = take_name(&known); one.data;) {
        builder_printf(text, "%s%.*s", before, (int)one.size, one.data);
        one = take_name(&known);
        before = *known ? ", " : " and ";
    }
    builder_add_text(text, ".");
}
