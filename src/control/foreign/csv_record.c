/* csv_record: a scan over the text; only fields with doubled quotes are copied. */
#include "control/foreign/csv_record.h"

struct record_scan {
    struct arena *arena;
    struct bytes rest;
    char separator;
};

bool csv_record_is_open(struct bytes text)
{
    bool is_open = false;
    for (const char *at = text.data, *end = text.data + text.size;
         at < end && (at = memchr(at, '"', (size_t)(end - at))); at++)
        is_open = !is_open;
    return is_open;
}

static void skip(struct bytes *rest, size_t count)
{
    rest->data += count;
    rest->size -= count;
}

/* The text after its first quote, up to the quote that ends it. */
static bool take_quoted(struct record_scan *scan, struct bytes *field_r)
{
    char *copy = NULL;
    size_t size = 0, at = 0;
    const struct bytes rest = scan->rest;
    for (; at < rest.size; at++) {
        if (rest.data[at] == '"') {
            if (at + 1 == rest.size || rest.data[at + 1] != '"')
                break;
            if (!copy) {
                copy = arena_alloc(scan->arena, rest.size);
                memcpy(copy, rest.data, at);
            }
            at++;
        }
        if (copy)
            copy[size] = rest.data[at];
        size++;
    }
    *field_r = (struct bytes){copy ? copy : rest.data, size};
    if (at == rest.size)
        return false;
    skip(&scan->rest, at + 1);
    return true;
}

static const char *take_field(struct record_scan *scan, struct bytes *field_r)
{
    if (scan->rest.size && scan->rest.data[0] == '"') {
        skip(&scan->rest, 1);
        if (!take_quoted(scan, field_r))
            return "a quoted field is not closed";
        return scan->rest.size && scan->rest.data[0] != scan->separator
                   ? "expected a separator after the quote that ends a field"
                   : NULL;
    }
    const char *end = scan->rest.size ? memchr(scan->rest.data, scan->separator, scan->rest.size) : NULL;
    *field_r = (struct bytes){scan->rest.data, end ? (size_t)(end - scan->rest.data) : scan->rest.size};
    skip(&scan->rest, field_r->size);
    return field_r->size && memchr(field_r->data, '"', field_r->size)
               ? "a quote inside a field that does not begin with one"
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
        ARENA_GROW(arena, record_r->fields, record_r->count, room);
        *problem_r = take_field(&scan, &record_r->fields[record_r->count++]);
        if (*problem_r || !scan.rest.size)
            break;
        skip(&scan.rest, 1); /* a field follows, even if it is empty */
    }
    return !*problem_r;
}
