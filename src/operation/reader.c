/* reader: one function for each kind of argument. */
#include "operation/reader.h"

#include <inttypes.h>

#include "document/item.h"

enum fault reader_wrong(const struct reader *reader, const char *member, const char *expected)
{
    return reply_fault(reader->call, reader->reply, FAULT_AARG, expected, member, NULL);
}

enum fault reader_over(const struct reader *reader, const char *limit, int64_t most, int64_t value)
{
    return reply_fault(reader->call, reader->reply, FAULT_ALIMIT, NULL, limit,
                       arena_printf(reader->call->arena, "%" PRId64, most),
                       arena_printf(reader->call->arena, "%" PRId64, value), NULL);
}

enum fault reader_busy(const struct reader *reader, const char *limit, int64_t most)
{
    return reply_fault(reader->call, reader->reply, FAULT_XBUSY, NULL, limit,
                       arena_printf(reader->call->arena, "%lld", (long long)most), NULL);
}

static const struct json *present(const struct json *object, const char *member)
{
    const struct json *value = json_member(object, member);
    return value && value->kind != JSON_NULL ? value : NULL;
}

enum fault reader_array(const struct reader *reader, const struct json *object, const char *member,
                        const char *limit, int64_t most, const struct json **array_r)
{
    const struct json *value = json_member(object, member);
    if (!value || value->kind != JSON_ARRAY || value->is_shallow)
        return reader_wrong(reader, member, "An array is expected.");
    if (value->count > most)
        return reader_over(reader, limit, most, value->count);
    *array_r = value;
    return FAULT_NONE;
}

enum fault reader_integer(const struct reader *reader, const struct json *object, const char *member,
                          int64_t least, int64_t most, int64_t standard, int64_t *value_r)
{
    const struct json *value = present(object, member);
    *value_r = standard;
    if (!value)
        return FAULT_NONE;
    if (!json_is_i64(value, value_r) || *value_r < least || *value_r > most)
        return reader_wrong(reader, member,
                            arena_printf(reader->call->arena,
                                         "An integer from %" PRId64 " to %" PRId64 " is expected.", least,
                                         most));
    return FAULT_NONE;
}

enum fault reader_text(const struct reader *reader, const struct json *object, const char *member,
                       struct bytes *text_r)
{
    const struct json *value = present(object, member);
    *text_r = NO_BYTES;
    if (!value)
        return FAULT_NONE;
    if (value->kind != JSON_STRING)
        return reader_wrong(reader, member, "A string is expected.");
    *text_r = value->value;
    return FAULT_NONE;
}

enum fault reader_boolean(const struct reader *reader, const struct json *object, const char *member,
                          bool *value_r)
{
    const struct json *value = present(object, member);
    *value_r = value && value->kind == JSON_TRUE;
    if (value && value->kind != JSON_TRUE && value->kind != JSON_FALSE)
        return reader_wrong(reader, member, "true or false is expected.");
    return FAULT_NONE;
}

static enum fault take_class(const struct reader *reader, const char *member, const struct json *value,
                             struct bytes *class_r)
{
    if (!value || value->kind != JSON_STRING || !item_is_class_name(value->value))
        return reader_wrong(reader, member,
                            "A class name is expected: a capital, then up to 15 letters and digits.");
    *class_r = value->value;
    return FAULT_NONE;
}

enum fault reader_class(const struct reader *reader, const struct json *object, const char *member,
                        struct bytes *class_r)
{
    return take_class(reader, member, json_member(object, member), class_r);
}

enum fault reader_check_length(const struct reader *reader, const char *member, struct bytes name)
{
    if (!name.data || !name.size)
        return reader_wrong(reader, member, "A string that is not empty is expected.");
    if ((int64_t)name.size > reader->settings->limit_name_bytes)
        return reader_over(reader, "limit_name_bytes", reader->settings->limit_name_bytes,
                           (int64_t)name.size);
    return FAULT_NONE;
}

enum fault reader_take_name(const struct reader *reader, const struct json *class, const struct json *id,
                            struct name *name_r)
{
    enum fault fault = take_class(reader, "c", class, &name_r->class);
    if (fault)
        return fault;
    if (!id || id->kind != JSON_STRING)
        return reader_wrong(reader, "id", "A string is expected.");
    name_r->id = id->value;
    return reader_check_length(reader, "id", name_r->id);
}

enum fault reader_name(const struct reader *reader, const struct json *object, struct name *name_r)
{
    return reader_take_name(reader, json_member(object, "c"), json_member(object, "id"), name_r);
}
