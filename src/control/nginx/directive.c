/* directive: finds a directive and its values without parsing the rest of the grammar. */
#include "control/nginx/directive.h"

#include <ctype.h>

static bool directive_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The position after the quoted text that begins at `i`. */
static size_t pass_quotes(struct bytes text, size_t i)
{
    char quote = text.data[i++];
    while (i < text.size && text.data[i] != quote)
        i += text.data[i] == '\\' ? 2 : 1;
    return i < text.size ? i + 1 : text.size;
}

/* Skips to the next character that is neither a blank nor in a comment. */
static size_t pass_blanks(struct bytes text, size_t i)
{
    while (i < text.size && (directive_is_blank(text.data[i]) || text.data[i] == '#')) {
        if (text.data[i] == '#')
            while (i < text.size && text.data[i] != '\n')
                i++;
        else
            i++;
    }
    return i;
}

/* Skips to the semicolon or brace that ends the directive. */
static size_t pass_words(struct bytes text, size_t i)
{
    while (i < text.size && !strchr(";{}", text.data[i]))
        i = text.data[i] == '"' || text.data[i] == '\'' ? pass_quotes(text, i) : i + 1;
    return i;
}

bool directive_next(struct bytes text, const char *name, size_t *position, struct bytes *value_r)
{
    size_t size = strlen(name), i = *position;
    while ((i = pass_blanks(text, i)) < text.size) {
        size_t end = pass_words(text, i);
        bool is_it = end - i > size && memcmp(text.data + i, name, size) == 0 &&
                     directive_is_blank(text.data[i + size]) && end < text.size && text.data[end] == ';';
        size_t start = i + size;
        i = end < text.size ? end + 1 : end;
        if (is_it) {
            while (start < end && directive_is_blank(text.data[start]))
                start++;
            while (end > start && directive_is_blank(text.data[end - 1]))
                end--;
            *value_r = (struct bytes){text.data + start, end - start};
            *position = i;
            return true;
        }
    }
    return false;
}

/* A number and the factor of the letter after it. */
static bool with_unit(struct bytes value, const char *letters, const int64_t *factors, int64_t *number_r)
{
    int64_t factor = 1;
    if (value.size && !isdigit((unsigned char)value.data[value.size - 1])) {
        const char *letter = strchr(letters, tolower((unsigned char)value.data[value.size - 1]));
        if (!letter)
            return false;
        factor = factors[letter - letters];
        value.size--;
    }
    return bytes_to_i64(value, number_r) && *number_r >= 0 &&
           !__builtin_mul_overflow(*number_r, factor, number_r);
}

bool directive_bytes(struct bytes value, int64_t *bytes_r)
{
    static const int64_t factors[] = {1 << 10, 1 << 20, 1 << 30};
    return with_unit(value, "kmg", factors, bytes_r);
}

bool directive_seconds(struct bytes value, int64_t *seconds_r)
{
    static const int64_t factors[] = {1, 60, 3600, 86400};
    return with_unit(value, "smhd", factors, seconds_r);
}
