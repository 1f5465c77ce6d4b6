/* csv_record: a scan over the text; only fields with doubled quotes are copied. */
#include "control/foreign/csv/csv_record.h"

struct record_scan {
    struct arena *arena;
    struct bytes rest;
    char separator;
};

/* After a field without quotes, or after the end of one with quotes, which ends at `at`.  NULL: the line ends
 * there, or the record is wrong. */
static const char *next_field(const char *at, const char *end, char separator)
{
    const char *next = at < end ? memchr(at, separator, (size_t)(end - at)) : NULL;
    return next && !memchr(at, '"', (size_t)(next - at)) ? next + 1 : NULL;
}

bool csv_record_is_open(struct bytes line, char separator, bool is_open)
{
    const char *at = line.data, *end = at + line.size;
    if (!line.size || !memchr(at, '"', line.size))
        return is_open;
    while (at && at < end) {
        if (!is_open && *at != '"') {
            at = next_field(at, end, separator);
            continue;
        }
        at += !is_open;
        is_open = true;
        at = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
        if (!at)
            break;
        if (at + 1 < end && at[1] == '"') {
            at += 2;
            continue;
        }
        is_open = false;
        at = at + 1 < end && at[1] == separator ? at + 2 : NULL;
    }
    return is_open;
}

bool csv_record_is_separator(char c)
{
    return c && strchr(",;|\t: ", c);
}

static bool has_outside_quotes(struct bytes line, char c)
{
    bool is_quoted = false;
    for (size_t i = 0; i < line.size; i++) {
        is_quoted ^= line.data[i] == '"';
        if (!is_quoted && line.data[i] == c)
            return true;
    }
    return false;
}

char csv_record_separator(struct arena *arena, struct bytes line, char named, const char **problem_r)
{
    static const struct {
        char c;
        const char *name;
        bool is_found; /* without being named */
    } separators[] = {{',', "commas", true},
                      {';', "semicolons", true},
                      {'\t', "tabs", true},
                      {'|', "vertical bars", false}};
    const char *names[COUNT_OF(separators)] = {0};
    size_t count = 0;
    char found = 0;
    if (has_outside_quotes(line, named ? named : ','))
        return named ? named : ',';
    for (size_t i = 0; i < COUNT_OF(separators); i++)
        if (has_outside_quotes(line, separators[i].c)) {
            found = separators[i].is_found ? separators[i].c : 0;
            names[count++] = separators[i].name;
        }
    if (!count)
        return named ? named : ',';
    if (!named && count == 1 && found)
        return found;
    *problem_r =
        arena_printf(arena, "the header is one column with %s%s%s: name the \"separator\" in the mapping",
                     names[0], count > 1 ? " and " : "", count > 1 ? names[1] : "");
    return 0;
}

static void csv_record_skip(struct bytes *rest, size_t count)
{
    rest->data += count;
    rest->size -= count;
}

/* The text with one quote for two. */
static struct bytes join_quotes(struct arena *arena, struct bytes text, size_t doubled)
{
    char *copy = arena_alloc(arena, text.size - doubled);
    size_t size = 0;
    for (size_t at = 0; at < text.size; at++) {
        copy[size++] = text.data[at];
        at += text.data[at] == '"';
    }
    return (struct bytes){copy, size};
}

/* The text after its first quote, up to the quote that ends it. */
static bool take_quoted(struct record_scan *scan, struct bytes *field_r)
{
    const struct bytes rest = scan->rest;
    size_t at = 0, doubled = 0;
    const char *quote;
    while (at < rest.size && (quote = memchr(rest.data + at, '"', rest.size - at))) {
        at = (size_t)(quote - rest.data);
        if (at + 1 == rest.size || quote[1] != '"') {
            *field_r = (struct bytes){rest.data, at};
            if (doubled)
                *field_r = join_quotes(scan->arena, *field_r, doubled);
            csv_record_skip(&scan->rest, at + 1);
            return true;
        }
        doubled++;
        at += 2;
    }
    return false;
}

static const char *take_field(struct record_scan *scan, struct bytes *field_r)
{
    if (scan->rest.size && scan->rest.data[0] == '"') {
        csv_record_skip(&scan->rest, 1);
        if (!take_quoted(scan, field_r))
            return "a quoted field is not closed";
        return scan->rest.size && scan->rest.data[0] != scan->separator
                   ? "expected a separator after the quote that ends a field"
                   : NULL;
    }
    const char *end = scan->rest.size ? memchr(scan->rest.data, scan->separator, scan->rest.size) : NULL;
    *field_r = (struct bytes){scan->rest.data, end ? (size_t)(end - scan->rest.data) : scan->rest.size};
    csv_record_skip(&scan->rest, field_r->size);
    if (!field_r->size)
        return NULL;
    if (memchr(field_r->data, '\r', field_r->size) || memchr(field_r->data, '\n', field_r->size))
        return "a line break outside of quotes: expected the same line ends in the whole file";
    return memchr(field_r->data, '"', field_r->size) ? "a quote inside a field that does not begin with one"
                                                     : NULL;
}

bool csv_record_read(struct arena *arena, struct bytes text, char separator, struct csv_record *record_r,
                     const char **problem_r)
{
    struct record_scan scan = {arena, text, separator};
    size_t room = 0;
    *record_r = (struct csv_record){0};
    *problem_r = NULL;
    if (!bytes_is_utf8(text))
        *problem_r = "not valid UTF-8";
    else if (text.size && memchr(text.data, '\0', text.size))
        *problem_r = "a NUL character";
    while (!*problem_r) {
        if (record_r->count == CSV_FIELDS_MOST) {
            *problem_r = "more than 4096 fields";
            break;
        }
        ARENA_GROW(arena, record_r->fields, record_r->count, room);
        *problem_r = take_field(&scan, &record_r->fields[record_r->count++]);
        if (*problem_r || !scan.rest.size)
            break;
        csv_record_skip(&scan.rest, 1); /* a field follows, even if it is empty */
    }
    return !*problem_r;
}
