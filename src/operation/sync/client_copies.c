/* client_copies: two paths from JSON to the stamps of a client's copies. */
#include "operation/sync/client_copies.h"

#include "model/document/item.h"
#include "model/document/stamp.h"
#include "edge/json/json_blank.h"
#include "edge/json/json_string.h"
#include "operation/reply.h"

/* --- the fast path ------------------------------------------------------------------------------- */

/* Each reader takes the position of its text, and returns the position after it and after the blanks that
 * follow; NULL when the text is not plain.  The text must end with a brace, `last`: no blank and no digit
 * goes past it, strings stop before it, and it is taken only as the end of all. */
struct client_copies_scan {
    const char *last;
    struct bytes opening, class; /* of the last dense element: its text up to the id, and its class */
};

enum { VIEW_NAME_MOST = 64 };
enum { ELEMENT_BYTES_LEAST = sizeof "{\"c\":\"C\",\"id\":\"i\",\"v\":0,\"ct\":0,\"dt\":0}" };

/* Does not take the last brace. */
static inline const char *read_sign(const char *at, char sign)
{
    return at && *at == sign ? json_blank_skip(at + 1) : NULL;
}

/* A name with its quotes, and the colon. */
ALWAYS_INLINE const char *read_name(const struct client_copies_scan *scan, const char *at, struct bytes name)
{
    if (!at || (size_t)(scan->last - at) < name.size || memcmp(at, name.data, name.size) != 0)
        return NULL;
    return read_sign(json_blank_skip(at + name.size), ':');
}

static inline const char *read_string(const struct client_copies_scan *scan, const char *at,
                                      struct bytes *value_r)
{
    if (!at || *at != '"')
        return NULL;
    const char *start = at + 1;
    size_t size = json_fast_size(start, (size_t)(scan->last - start));
    *value_r = (struct bytes){start, size};
    return start[size] == '"' ? json_blank_skip(start + size + 1) : NULL;
}

/* The first eight digits, and the seven that follow; no blanks behind them. */
ALWAYS_INLINE const char *read_digits(const struct client_copies_scan *scan, const char *at, int64_t *stamp_r)
{
    if (!at)
        return NULL;
    *stamp_r = 0;
    if (*at == '0')
        return at + 1;
    if (scan->last - at < STAMP_DIGITS)
        return NULL;
    uint64_t first = swar_load(at), second = swar_load(at + 7);
    if (swar_no_digits(first) | swar_no_digits(second))
        return NULL;
    second = (second & ~UINT64_C(0xff)) | '0';
    *stamp_r = (int64_t)(swar_digits(first) * 10000000 + swar_digits(second));
    return *stamp_r <= STAMP_MAX ? at + STAMP_DIGITS : NULL;
}

static inline const char *read_stamp(const struct client_copies_scan *scan, const char *at, int64_t *stamp_r)
{
    at = read_digits(scan, at, stamp_r);
    return at ? json_blank_skip(at) : NULL;
}

/* A text that has to stand there. */
ALWAYS_INLINE const char *read_text(const struct client_copies_scan *scan, const char *at, struct bytes text)
{
    return at && (size_t)(scan->last - at) >= text.size && memcmp(at, text.data, text.size) == 0
               ? at + text.size
               : NULL;
}

/* What follows the opening quote of a string, up to the text that begins with its closing one. */
ALWAYS_INLINE const char *read_up_to(const struct client_copies_scan *scan, const char *at, struct bytes text,
                                     struct bytes *value_r)
{
    if (!at)
        return NULL;
    *value_r = (struct bytes){at, json_fast_size(at, (size_t)(scan->last - at))};
    return read_text(scan, at + value_r->size, text);
}

/* A stamp that is often the one before it: documents that were never changed have one for all three, and most
 * have lost nothing since they were created.  `before` is its text; `stamp` its value, not 0 if the text has
 * all digits. */
ALWAYS_INLINE const char *read_digits_like(const struct client_copies_scan *scan, const char *at,
                                           const char *before, int64_t stamp, int64_t *stamp_r)
{
    if (at && stamp && scan->last - at >= STAMP_DIGITS && memcmp(at, before, STAMP_DIGITS) == 0) {
        *stamp_r = stamp;
        return at + STAMP_DIGITS;
    }
    return read_digits(scan, at, stamp_r);
}

/* Up to the id.  Documents of a class are often neighbours, and what is the same text is not read again. */
ALWAYS_INLINE const char *read_opening(struct client_copies_scan *scan, const char *at, struct bytes *class_r)
{
    const char *after = scan->opening.size ? read_text(scan, at, scan->opening) : NULL;
    if (after) {
        *class_r = scan->class;
        return after;
    }
    after = read_text(scan, at, BYTES("{\"c\":\""));
    after = read_up_to(scan, after, BYTES("\",\"id\":\""), class_r);
    if (!after || !item_is_class_name(*class_r))
        return NULL;
    scan->opening = (struct bytes){at, (size_t)(after - at)};
    scan->class = *class_r;
    return after;
}

/* The same as read_plain_element, of an element without blanks, as programs write it: each text between its
 * values is compared at once. */
static inline const char *read_dense_element(struct client_copies_scan *scan, const char *at,
                                             struct document_name *name, struct client_copy *held)
{
    at = read_opening(scan, at, &name->class);
    const char *version = read_up_to(scan, at, BYTES("\",\"v\":"), &name->id);
    at = read_digits(scan, version, &held->version);
    const char *ctime = read_text(scan, at, BYTES(",\"ct\":"));
    at = ctime ? read_digits_like(scan, ctime, version, held->version, &held->ctime) : NULL;
    const char *dtime = read_text(scan, at, BYTES(",\"dt\":"));
    at = dtime ? read_digits_like(scan, dtime, ctime, held->ctime, &held->dtime) : NULL;
    bool is_whole = at && at < scan->last && name->id.size;
    return is_whole ? read_sign(at, '}') : NULL;
}

/* Up to its closing brace, which is not the last one. */
static const char *read_plain_element(const struct client_copies_scan *scan, const char *at,
                                      struct document_name *name, struct client_copy *held)
{
    at = read_name(scan, read_sign(at, '{'), BYTES("\"c\""));
    at = read_name(scan, read_sign(read_string(scan, at, &name->class), ','), BYTES("\"id\""));
    at = read_name(scan, read_sign(read_string(scan, at, &name->id), ','), BYTES("\"v\""));
    at = read_name(scan, read_sign(read_stamp(scan, at, &held->version), ','), BYTES("\"ct\""));
    at = read_name(scan, read_sign(read_stamp(scan, at, &held->ctime), ','), BYTES("\"dt\""));
    at = read_stamp(scan, at, &held->dtime);
    bool is_whole = at && at < scan->last && name->id.size && item_is_class_name(name->class);
    return is_whole ? read_sign(at, '}') : NULL;
}

/* After the list. */
static bool is_end(const struct client_copies_scan *scan, const char *at, struct bytes *others_r)
{
    *others_r = NO_BYTES;
    if (!at || at == scan->last)
        return at != NULL;
    at = read_sign(at, ',');
    if (!at || *at != '"')
        return false;
    *others_r = (struct bytes){at, (size_t)(scan->last - at) + 1};
    return true;
}

struct client_copies *client_copies_read_fast(struct arena *arena, struct bytes body, struct bytes *others_r)
{
    while (body.size && json_blank_is(body.data[body.size - 1]))
        body.size--;
    if (!body.size || body.data[body.size - 1] != '}' || !bytes_is_utf8(body))
        return NULL;
    struct client_copies_scan scan = {.last = body.data + body.size - 1};
    const char *at = json_blank_skip(body.data);
    if (at == scan.last || !(at = read_name(&scan, read_sign(at, '{'), BYTES("\"syncs\""))))
        return NULL;
    at = read_sign(at, '[');
    if (!at || *at != '{')
        return NULL;
    size_t most = body.size / ELEMENT_BYTES_LEAST + 1;
    struct client_copies *client_copies = ARENA_NEW(arena, struct client_copies);
    client_copies->names = ARENA_ROOM(arena, struct document_name, most);
    client_copies->held = ARENA_ROOM(arena, struct client_copy, most);
    do {
        struct document_name *name = &client_copies->names[client_copies->count];
        assert(client_copies->count < most);
        struct client_copy *held = &client_copies->held[client_copies->count++];
        const char *after = read_dense_element(&scan, at, name, held);
        at = after ? after : read_plain_element(&scan, at, name, held);
    } while (at && *at == ',' && (at = json_blank_skip(at + 1)));
    return is_end(&scan, read_sign(at, ']'), others_r) ? client_copies : NULL;
}

/* --- the full parser ----------------------------------------------------------------------------- */

/* A stamp of the client's copy; absent or null: 0. */
static enum fault take_stamp(const struct reader *reader, const struct json *object, const char *member,
                             const struct json *value, int64_t *stamp_r)
{
    *stamp_r = 0;
    if (!value || value->kind == JSON_NULL ||
        (json_is_i64(value, stamp_r) && *stamp_r >= 0 && *stamp_r <= STAMP_MAX))
        return FAULT_NONE;
    return reader_wrong(reader, object, member, "A stamp is expected, a number of 15 digits, or 0.");
}

/* The members of an element; NULL: absent. */
struct client_copies_element {
    const struct json *class, *id, *version, *ctime, *dtime, *view;
    uint32_t count; /* members that are one of these */
};

/* Visits each member once: a client with many copies sends many of these. */
static struct client_copies_element look_at(const struct json *object)
{
    struct client_copies_element element = {0};
    for (const struct json *member = object->first; member; member = member->next) {
        const char *name = member->name.data;
        const struct json **place = NULL;
        if (member->name.size == 1)
            place = *name == 'c'   ? &element.class
                    : *name == 'v' ? &element.version
                    : *name == 'w' ? &element.view
                                   : NULL;
        else if (member->name.size == 2)
            place = memcmp(name, "id", 2) == 0   ? &element.id
                    : memcmp(name, "ct", 2) == 0 ? &element.ctime
                    : memcmp(name, "dt", 2) == 0 ? &element.dtime
                                                 : NULL;
        if (!place)
            continue;
        *place = member;
        element.count++;
    }
    return element;
}

/* Any text that names no view of today is that of another one: the client gets a complete copy. */
static enum fault take_view(const struct reader *reader, const struct json *object, const struct json *value,
                            struct bytes *view_r)
{
    *view_r = BYTES("");
    if (!value || value->kind == JSON_NULL)
        return FAULT_NONE;
    if (value->kind != JSON_STRING || value->value.size > VIEW_NAME_MOST)
        return reader_wrong(reader, object, "w", "The w of an earlier answer is expected.");
    *view_r = value->value;
    return FAULT_NONE;
}

static enum fault client_copies_read_element(const struct reader *reader, const struct json *object,
                                             struct document_name *name, struct client_copy *held,
                                             struct bytes *view_r)
{
    if (object->kind != JSON_OBJECT)
        return reader_wrong_value(reader, object, "syncs",
                                  "Objects with c, id, v, ct, dt and w are expected.");
    struct client_copies_element element = look_at(object);
    enum fault fault =
        element.count < object->count ? reader_members(reader, object, "c id v ct dt w") : FAULT_NONE;
    if (!fault)
        fault = FAULT_FIRST(take_stamp(reader, object, "v", element.version, &held->version),
                            take_stamp(reader, object, "ct", element.ctime, &held->ctime),
                            take_stamp(reader, object, "dt", element.dtime, &held->dtime),
                            take_view(reader, object, element.view, view_r));
    return fault ? fault : reader_take_name(reader, object, element.class, element.id, name);
}

static void note_view(struct arena *arena, struct client_copies *client_copies, size_t most,
                      struct bytes view)
{
    if (!client_copies->views)
        client_copies->views = ARENA_ARRAY(arena, struct bytes, most);
    client_copies->views[client_copies->count] = view;
}

static enum fault check_count(const struct reader *reader, size_t count)
{
    int64_t most = reader->settings->limit_syncs;
    if ((int64_t)count <= most)
        return FAULT_NONE;
    enum fault fault = reader_over(reader, NULL, "limit_syncs", most, (int64_t)count);
    reader->reply->at = "/syncs";
    return fault;
}

enum fault client_copies_check(const struct reader *reader, const struct client_copies *client_copies)
{
    enum fault fault = check_count(reader, client_copies->count);
    const size_t most = (size_t)reader->settings->limit_name_bytes;
    for (size_t i = 0; !fault && i < client_copies->count; i++) {
        if (client_copies->names[i].id.size - 1 < most) /* nearly always */
            continue;
        fault = reader_check_length(reader, NULL, "id", client_copies->names[i].id);
        if (fault)
            reader->reply->at = arena_printf(reader->call->arena, "/syncs/%zu/id", i);
    }
    return fault;
}

enum fault client_copies_read(const struct reader *reader, const struct json *syncs,
                              struct client_copies **client_copies_r)
{
    struct arena *arena = reader->call->arena;
    enum fault fault = check_count(reader, syncs->count);
    if (fault)
        return fault;
    struct client_copies *client_copies = ARENA_NEW(arena, struct client_copies);
    client_copies->names = ARENA_ROOM(arena, struct document_name, syncs->count);
    client_copies->held = ARENA_ROOM(arena, struct client_copy, syncs->count);
    for (const struct json *element = syncs->first; element && !fault; element = element->next) {
        struct bytes view = BYTES("");
        fault = client_copies_read_element(reader, element, &client_copies->names[client_copies->count],
                                           &client_copies->held[client_copies->count], &view);
        if (!fault && view.size)
            note_view(arena, client_copies, syncs->count, view);
        client_copies->count++;
    }
    *client_copies_r = client_copies;
    return fault;
}
