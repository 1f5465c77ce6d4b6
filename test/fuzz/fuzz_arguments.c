/* fuzz_arguments: arguments_read on any bytes.  The first byte chooses the road: q query string, f form, j
 * JSON body, t content type, a newline, body; b query string, a newline, JSON body.  What was read, written
 * again for each road, must be read as the same. */
#include "fuzz.h"

#include "http/arguments.h"

const char fuzz_target[] = "arguments";

static const struct argument_limits limits = {.depth = 12, .nodes = 1000, .parts = 8};
/* Written again, a tree may lie one level deeper, and beside other members. */
static const struct argument_limits wider = {.depth = 14, .nodes = 3000, .parts = 8};

enum { TEXT_COUNT = 6 };
static const char *const text_names[TEXT_COUNT] = {"account", "key", "admin", "lang", "dhop", "session"};

static const struct bytes *text_at(const struct arguments *arguments, int i)
{
    const struct bytes *const texts[TEXT_COUNT] = {&arguments->account, &arguments->key,
                                                   &arguments->admin,   &arguments->lang,
                                                   &arguments->dhop,    &arguments->session};
    return texts[i];
}

static void check_same(struct arena *arena, const struct argument_source *source,
                       const struct arguments *wanted)
{
    struct arguments got;
    struct json_problem problem;
    enum fault fault = arguments_read(arena, source, &wider, &got, &problem);
    assert(fault == FAULT_NONE);
    assert(!got.param == !wanted->param && !got.syncs == !wanted->syncs);
    assert(!got.param || bytes_equal(got.param->text, wanted->param->text));
    assert(!got.syncs || bytes_equal(got.syncs->text, wanted->syncs->text));
    for (int i = 0; i < TEXT_COUNT; i++) {
        assert(!text_at(&got, i)->data == !text_at(wanted, i)->data);
        assert(bytes_equal(*text_at(&got, i), *text_at(wanted, i)));
    }
}

static void add_pair(struct builder *builder, const char *name, struct bytes value)
{
    builder_printf(builder, "%s%s=", builder->size ? "&" : "", name);
    for (size_t i = 0; i < value.size; i++)
        builder_printf(builder, value.data[i] == ' ' ? "+" : "%%%02X", (unsigned char)value.data[i]);
}

static void check_as_pairs(struct arena *arena, const struct arguments *arguments)
{
    struct builder pairs = {0};
    if (arguments->syncs)
        add_pair(&pairs, "syncs", arguments->syncs->text);
    for (int i = 0; i < TEXT_COUNT; i++)
        if (text_at(arguments, i)->data)
            add_pair(&pairs, text_names[i], *text_at(arguments, i));
    if (arguments->param)
        add_pair(&pairs, "param", arguments->param->text);
    struct argument_source source = {.query = builder_bytes(&pairs)};
    check_same(arena, &source, arguments);
    source = (struct argument_source){.content_type = BYTES("application/x-www-form-urlencoded"),
                                      .body = builder_bytes(&pairs)};
    check_same(arena, &source, arguments);
    builder_free(&pairs);
}

static void add_member(struct builder *builder, const char *name)
{
    if (builder->size > 1)
        builder_add_text(builder, ",");
    json_add_string(builder, bytes_of(name));
    builder_add_text(builder, ":");
}

static void check_as_json(struct arena *arena, const struct arguments *arguments)
{
    struct builder object = {0};
    builder_add_text(&object, "{");
    for (int i = 0; i < TEXT_COUNT; i++)
        if (text_at(arguments, i)->data) {
            add_member(&object, text_names[i]);
            json_add_string(&object, *text_at(arguments, i));
        }
    if (arguments->param) {
        add_member(&object, "param");
        builder_add_bytes(&object, arguments->param->text);
    }
    if (arguments->syncs) {
        add_member(&object, "syncs");
        builder_add_bytes(&object, arguments->syncs->text);
    }
    builder_add_text(&object, "}");
    struct argument_source source = {.content_type = BYTES("application/json"),
                                     .body = builder_bytes(&object)};
    check_same(arena, &source, arguments);
    builder_free(&object);
}

static void add_part(struct builder *form, const char *name, struct bytes value)
{
    builder_printf(form, "--fuzz\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", name);
    builder_add_bytes(form, value);
    builder_add_text(form, "\r\n");
}

static void check_as_multipart(struct arena *arena, const struct arguments *arguments)
{
    struct builder form = {0};
    size_t delimiters = 1;
    if (arguments->param)
        add_part(&form, "param", arguments->param->text);
    if (arguments->syncs)
        add_part(&form, "syncs", arguments->syncs->text);
    for (int i = 0; i < TEXT_COUNT; i++)
        if (text_at(arguments, i)->data)
            add_part(&form, text_names[i], *text_at(arguments, i));
    builder_add_text(&form, "--fuzz--");
    for (int i = 0; i < TEXT_COUNT; i++)
        delimiters += text_at(arguments, i)->data != NULL;
    delimiters += arguments->param != NULL;
    delimiters += arguments->syncs != NULL;
    for (size_t i = 0; i + 6 <= form.size; i++)
        delimiters -= memcmp(form.data + i, "--fuzz", 6) == 0;
    struct argument_source source = {.content_type = BYTES("multipart/form-data; boundary=fuzz"),
                                     .body = builder_bytes(&form)};
    if (!delimiters) /* else a value has one */
        check_same(arena, &source, arguments);
    builder_free(&form);
}

static void check_arguments(struct arena *arena, const struct arguments *arguments)
{
    assert(!arguments->wrong);
    assert(!arguments->param || arguments->param->kind == JSON_OBJECT);
    assert(!arguments->syncs || arguments->syncs->kind == JSON_ARRAY);
    for (int i = 0; i < TEXT_COUNT; i++) {
        struct bytes text = *text_at(arguments, i);
        assert(bytes_is_utf8(text) && (!text.size || !memchr(text.data, '\0', text.size)));
    }
    check_as_pairs(arena, arguments);
    check_as_json(arena, arguments);
    check_as_multipart(arena, arguments);
}

static void check_refusal(enum fault fault, const struct arguments *arguments,
                          const struct json_problem *problem)
{
    static const char *const places[] = {"query", "body", "param", "syncs", "limit_parts"};
    assert(fault == FAULT_AARG || fault == FAULT_AUTF8 || fault == FAULT_AJSON || fault == FAULT_ALIMIT ||
           fault == FAULT_ATYPE || fault == FAULT_ABODY);
    assert(problem->what && *problem->what && arguments->wrong);
    bool is_known = arguments->is_unknown;
    for (size_t i = 0; i < COUNT_OF(places); i++)
        is_known = is_known || strcmp(places[i], arguments->wrong) == 0;
    for (int i = 0; i < TEXT_COUNT; i++)
        is_known = is_known || strcmp(text_names[i], arguments->wrong) == 0;
    assert(is_known);
}

static struct argument_source source_of(char path, struct bytes input)
{
    const char *end = input.size ? memchr(input.data, '\n', input.size) : NULL;
    struct bytes line = {input.data, end ? (size_t)(end - input.data) : input.size};
    struct bytes rest = end ? (struct bytes){end + 1, input.size - line.size - 1} : NO_BYTES;
    switch (path) {
    case 'f':
        return (struct argument_source){.content_type = BYTES("application/x-www-form-urlencoded"),
                                        .body = input};
    case 'j':
        return (struct argument_source){.content_type = BYTES("application/json"), .body = input};
    case 't':
        return (struct argument_source){.content_type = line, .body = rest};
    case 'b':
        return (struct argument_source){
            .query = line, .content_type = BYTES("application/json"), .body = rest};
    default:
        return (struct argument_source){.query = input};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct argument_source source = source_of((char)*data, (struct bytes){(const char *)data + 1, size - 1});
    struct arguments arguments;
    struct json_problem problem;
    enum fault fault = arguments_read(arena, &source, &limits, &arguments, &problem);
    if (fault == FAULT_NONE)
        check_arguments(arena, &arguments);
    else
        check_refusal(fault, &arguments, &problem);
    arena_destroy(arena);
    return 0;
}
