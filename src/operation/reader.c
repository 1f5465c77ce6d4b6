/* reader: one function for each kind of argument. */
#include "operation/reader.h"

#include <inttypes.h>

#include "base/names.h"
#include "model/document/item.h"
#include "operation/reply.h"

/* --- where --------------------------------------------------------------------------------------- */

/* Appends the pointer to a value of the arguments; false: it does not belong to this call. */
static bool add_place(const struct call *call, const struct json *value, struct builder *place)
{
    const char *const param = call->param_at ? call->param_at : call->resource ? "/items" : "/param";
    if (!value || value == call->param) {
        builder_add_bytes(place, bytes_of(param));
        return true;
    }
    builder_add_bytes(place, bytes_of(param));
    if (call->param && json_add_pointer(place, call->param, value))
        return true;
    place->size = 0;
    builder_add_text(place, "/syncs");
    return call->syncs && json_add_pointer(place, call->syncs, value);
}

void reader_place(const struct reader *reader, const struct json *value, const char *member)
{
    struct builder place = {0};
    reader->reply->at = NULL;
    if (add_place(reader->call, value, &place)) {
        if (member)
            json_add_pointer_name(&place, bytes_of(member));
        reader->reply->at = arena_copy(reader->call->arena, place.data, place.size);
    }
    builder_free(&place);
}

/* --- what ---------------------------------------------------------------------------------------- */

enum fault reader_wrong(const struct reader *reader, const struct json *object, const char *member,
                        const char *expected)
{
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_AARG, expected, member, NULL);
    reader_place(reader, object, member);
    return fault;
}

enum fault reader_wrong_value(const struct reader *reader, const struct json *value, const char *name,
                              const char *expected)
{
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_AARG, expected, name, NULL);
    reader_place(reader, value, NULL);
    return fault;
}

enum fault reader_over(const struct reader *reader, const struct json *value_at, const char *limit,
                       int64_t most, int64_t value)
{
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_ALIMIT, NULL, limit,
                                   arena_printf(reader->call->arena, "%" PRId64, most),
                                   arena_printf(reader->call->arena, "%" PRId64, value), NULL);
    if (value_at)
        reader_place(reader, value_at, NULL);
    return fault;
}

enum fault reader_busy(const struct reader *reader, const char *limit, int64_t most)
{
    return reply_fault(reader->call, reader->reply, FAULT_XBUSY, NULL, limit,
                       arena_printf(reader->call->arena, "%lld", (long long)most), NULL);
}

static enum fault refuse_member(const struct reader *reader, const struct json *member, const char *known)
{
    struct arena *arena = reader->call->arena;
    struct bytes nearest = names_nearest(known, member->name);
    struct builder sentence = {0};
    names_explain(known, "member", member->name, &sentence);
    builder_add(&sentence, "", 1);
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_AARG, sentence.data,
                                   arena_copy(arena, member->name.data, member->name.size),
                                   nearest.data ? arena_copy(arena, nearest.data, nearest.size) : NULL, NULL);
    builder_free(&sentence);
    reader_place(reader, member, NULL);
    return fault;
}

enum fault reader_members(const struct reader *reader, const struct json *object, const char *known)
{
    if (!object || object->kind != JSON_OBJECT)
        return FAULT_NONE;
    for (const struct json *member = object->first; member; member = member->next)
        if (!names_have(known, member->name))
            return refuse_member(reader, member, known);
    return FAULT_NONE;
}

/* --- kinds --------------------------------------------------------------------------------------- */

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
        return reader_wrong(reader, object, member, "An array is expected.");
    if (value->count > most)
        return reader_over(reader, value, limit, most, value->count);
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
        return reader_wrong(reader, object, member,
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
        return reader_wrong(reader, object, member, "A string is expected.");
    *text_r = value->value;
    return FAULT_NONE;
}

enum fault reader_boolean(const struct reader *reader, const struct json *object, const char *member,
                          bool *value_r)
{
    const struct json *value = present(object, member);
    *value_r = value && value->kind == JSON_TRUE;
    if (value && value->kind != JSON_TRUE && value->kind != JSON_FALSE)
        return reader_wrong(reader, object, member, "true or false is expected.");
    return FAULT_NONE;
}

static enum fault take_class(const struct reader *reader, const struct json *object, const char *member,
                             const struct json *value, struct bytes *class_r)
{
    if (!value || value->kind != JSON_STRING || !item_is_class_name(value->value))
        return reader_wrong(reader, object, member,
                            "A class name is expected: a capital, then up to 15 letters and digits.");
    *class_r = value->value;
    return FAULT_NONE;
}

enum fault reader_class(const struct reader *reader, const struct json *object, const char *member,
                        struct bytes *class_r)
{
    return take_class(reader, object, member, json_member(object, member), class_r);
}

enum fault reader_check_length(const struct reader *reader, const struct json *object, const char *member,
                               struct bytes name)
{
    int64_t most = reader->settings->limit_name_bytes;
    if (!name.data || !name.size)
        return reader_wrong(reader, object, member, "A string that is not empty is expected.");
    if ((int64_t)name.size <= most)
        return FAULT_NONE;
    enum fault fault = reader_over(reader, NULL, "limit_name_bytes", most, (int64_t)name.size);
    reader_place(reader, object, member);
    return fault;
}

enum fault reader_take_name(const struct reader *reader, const struct json *object, const struct json *class,
                            const struct json *id, struct document_name *name_r)
{
    enum fault fault = take_class(reader, object, "c", class, &name_r->class);
    if (fault)
        return fault;
    if (!id || id->kind != JSON_STRING)
        return reader_wrong(reader, object, "id", "A string is expected.");
    name_r->id = id->value;
    return reader_check_length(reader, object, "id", name_r->id);
}

enum fault reader_name(const struct reader *reader, const struct json *object, struct document_name *name_r)
{
    return reader_take_name(reader, object, json_member(object, "c"), json_member(object, "id"), name_r);
}
