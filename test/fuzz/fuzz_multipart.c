/* fuzz_multipart: multipart_open and multipart_next on any bytes: the parameters of a content type, a
 * newline, the body.  The parts of what is accepted lie in the body, in order, and written again they are
 * read as the same; what is refused is explained. */
#include "fuzz.h"

#include "base/builder.h"
#include "http/multipart.h"

const char fuzz_target[] = "multipart";

enum { PARTS_MAX = 64 };

/* Up to PARTS_MAX parts; what is behind them is not looked at. */
static enum fault read_parts(struct arena *arena, struct bytes parameters, struct bytes body,
                             struct part *parts, size_t *count_r)
{
    struct multipart multipart;
    const char *what = NULL;
    bool is_there = true;
    *count_r = 0;
    enum fault fault = multipart_open(arena, parameters, body, &multipart, &what);
    while (!fault && is_there && *count_r < PARTS_MAX) {
        fault = multipart_next(&multipart, &parts[*count_r], &is_there, &what);
        assert(!fault || !is_there);
        *count_r += is_there;
    }
    assert(!fault == !what);
    return fault;
}

static bool lies_in(struct bytes slice, struct bytes body)
{
    return slice.data >= body.data && slice.data + slice.size <= body.data + body.size;
}

static void check_name(struct bytes name)
{
    assert(bytes_is_utf8(name) && !memchr(name.data, '\0', name.size) && !memchr(name.data, '\n', name.size));
}

static void check_parts(const struct part *parts, size_t count, struct bytes body)
{
    const char *end = body.data;
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &parts[i];
        assert(part->name.data && part->content.data && lies_in(part->content, body));
        assert(part->content.data > end);
        end = part->content.data + part->content.size;
        check_name(part->name);
        if (part->file_name.data)
            check_name(part->file_name);
        assert(!part->type.data || lies_in(part->type, body));
    }
}

static void add_quoted(struct builder *builder, const char *name, struct bytes value)
{
    builder_printf(builder, "; %s=\"", name);
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '"' || value.data[i] == '\\')
            builder_add_text(builder, "\\");
        builder_add(builder, &value.data[i], 1);
    }
    builder_add_text(builder, "\"");
}

/* With the delimiter of the first reading: no content has it. */
static void check_again(struct arena *arena, struct bytes parameters, struct bytes body,
                        const struct part *parts, size_t count)
{
    struct multipart multipart;
    struct part again[PARTS_MAX];
    struct builder text = {0};
    const char *what;
    size_t size;
    enum fault fault = multipart_open(arena, parameters, body, &multipart, &what);
    assert(fault == FAULT_NONE);
    for (size_t i = 0; i < count; i++) {
        builder_add_bytes(&text, multipart.delimiter);
        builder_add_text(&text, "\r\nContent-Disposition: form-data");
        add_quoted(&text, "name", parts[i].name);
        if (parts[i].file_name.data)
            add_quoted(&text, "filename", parts[i].file_name);
        if (parts[i].type.data) {
            builder_add_text(&text, "\r\nContent-Type: ");
            builder_add_bytes(&text, parts[i].type);
        }
        builder_add_text(&text, "\r\n\r\n");
        builder_add_bytes(&text, parts[i].content);
    }
    builder_add_bytes(&text, multipart.delimiter);
    builder_add_text(&text, "--");
    struct bytes written = {text.data + 2,
                            text.size - 2}; /* the first delimiter has no end of line before it */
    fault = read_parts(arena, parameters, written, again, &size);
    assert((fault == FAULT_NONE && size == count) ||
           (fault == FAULT_ALIMIT && body.size > PART_HEAD_MAX / 2));
    for (size_t i = 0; fault == FAULT_NONE && i < count; i++) {
        assert(bytes_equal(again[i].name, parts[i].name) && bytes_equal(again[i].content, parts[i].content));
        assert(!again[i].file_name.data == !parts[i].file_name.data &&
               !again[i].type.data == !parts[i].type.data);
        assert(bytes_equal(again[i].file_name, parts[i].file_name) &&
               bytes_equal(again[i].type, parts[i].type));
    }
    builder_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {(const char *)data, size};
    const char *end = size ? memchr(input.data, '\n', size) : NULL;
    if (!end)
        return 0;
    struct bytes parameters = {input.data, (size_t)(end - input.data)};
    struct bytes body = {end + 1, size - parameters.size - 1};
    struct part parts[PARTS_MAX];
    struct arena *arena = arena_create("fuzz");
    size_t count;
    enum fault fault = read_parts(arena, parameters, body, parts, &count);
    check_parts(parts, count, body);
    if (fault == FAULT_NONE)
        check_again(arena, parameters, body, parts, count);
    else
        assert(fault == FAULT_AARG || fault == FAULT_ABODY || fault == FAULT_ATYPE || fault == FAULT_AUTF8 ||
               fault == FAULT_ALIMIT);
    arena_destroy(arena);
    return 0;
}
