/* json_scan: skips values by their brackets and quotes.  Each function takes a pointer to the first byte that
 * it reads and returns a pointer past the last, or NULL when the text ends too early. */
#include "edge/json/json_scan.h"

#include "edge/json/json_blank.h"
#include "edge/json/json_string.h"

enum { ESCAPE_MOST = 6 }; /* bytes of an escape for one byte of a name */

static const char *json_scan_skip_blanks(const char *at, const char *end)
{
    while (at < end && json_blank_is(*at))
        at++;
    return at;
}

/* From the opening quote. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end;) {
        at += json_fast_size(at, (size_t)(end - at));
        if (at == end)
            return NULL;
        if (*at == '"')
            return at + 1;
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    }
    return NULL;
}

/* From the opening bracket to the closing one, of either kind. */
static const char *skip_group(const char *at, const char *end)
{
    size_t depth = 0;
    while (at && at < end) {
        char byte = *at;
        if (byte == '"') {
            at = skip_string(at, end);
            continue;
        }
        at++;
        if (byte == '{' || byte == '[')
            depth++;
        else if ((byte == '}' || byte == ']') && --depth == 0)
            return at;
    }
    return NULL;
}

static const char *skip_value(const char *at, const char *end)
{
    if (at == end)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '{' || *at == '[')
        return skip_group(at, end);
    while (at < end && *at != ',' && *at != '}' && *at != ']' && !json_blank_is(*at))
        at++;
    return at;
}

/* The text of a string with its quotes, decoded; false: malformed. */
static bool json_scan_decode(struct arena *arena, struct bytes text, struct bytes *value_r)
{
    static const struct json_limits limits = {.depth = 1, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    *value_r = (struct bytes){text.data + 1, text.size - 2};
    if (!memchr(value_r->data, '\\', value_r->size))
        return true;
    if (json_read(arena, text, &limits, &root, &problem) || root->kind != JSON_STRING)
        return false;
    *value_r = root->value;
    return true;
}

static bool json_scan_is_name(struct arena *arena, struct bytes text, struct bytes name)
{
    struct bytes value;
    if (text.size - 2 < name.size || text.size - 2 > name.size * ESCAPE_MOST)
        return false;
    return json_scan_decode(arena, text, &value) && bytes_equal(value, name);
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static bool is_number(struct bytes text)
{
    const char *end = text.data + text.size, *start = text.data + (*text.data == '-');
    const char *at = skip_digits(start, end);
    if (at == start || (*start == '0' && at > start + 1))
        return false;
    if (at < end && *at == '.') {
        start = at + 1;
        at = skip_digits(start, end);
        if (at == start)
            return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        start = at + 1 + (end - at > 1 && (at[1] == '+' || at[1] == '-'));
        at = skip_digits(start, end);
        if (at == start)
            return false;
    }
    return at == end;
}

static bool json_scan_take_value(struct arena *arena, struct bytes text, struct json *value_r)
{
    if (!text.size)
        return false;
    *value_r = (struct json){.text = text};
    switch (*text.data) {
    case '"':
        value_r->kind = JSON_STRING;
        return json_scan_decode(arena, text, &value_r->value);
    case '{':
    case '[':
        value_r->kind = *text.data == '{' ? JSON_OBJECT : JSON_ARRAY;
        value_r->is_shallow = true;
        return true;
    case 't':
        value_r->kind = JSON_TRUE;
        return bytes_equal(text, BYTES("true"));
    case 'f':
        value_r->kind = JSON_FALSE;
        return bytes_equal(text, BYTES("false"));
    case 'n':
        value_r->kind = JSON_NULL;
        return bytes_equal(text, BYTES("null"));
    default:
        value_r->kind = JSON_NUMBER;
        value_r->value = text;
        return is_number(text);
    }
}

bool json_scan_member(struct arena *arena, struct bytes text, struct bytes name, struct json *value_r)
{
    const char *end = text.data + text.size, *at = json_scan_skip_blanks(text.data, end);
    if (at == end || *at != '{')
        return false;
    do {
        const char *start = json_scan_skip_blanks(at + 1, end);
        if (start == end || *start != '"' || !(at = skip_string(start, end)))
            return false;
        bool is_it = json_scan_is_name(arena, (struct bytes){start, (size_t)(at - start)}, name);
        at = json_scan_skip_blanks(at, end);
        if (at == end || *at != ':')
            return false;
        start = json_scan_skip_blanks(at + 1, end);
        if (!(at = skip_value(start, end)))
            return false;
        if (is_it)
            return json_scan_take_value(arena, (struct bytes){start, (size_t)(at - start)}, value_r);
        at = json_scan_skip_blanks(at, end);
    } while (at < end && *at == ',');
    return false;
}
