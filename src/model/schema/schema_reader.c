/* schema_reader: the first error is recorded with its path. */
#include "model/schema/schema_reader.h"

#include "base/builder.h"
#include "edge/json/json.h"

bool schema_reader_refuse(struct schema_reader *reader, const char *path, const char *expected)
{
    *reader->problem = (struct schema_problem){path, expected};
    return false;
}

struct schema_node schema_reader_member(struct schema_reader *reader, struct schema_node object,
                                        const struct json *member)
{
    const char *path =
        arena_printf(reader->arena, "%s%s%.*s", object.path, *object.path ? "." : "",
                     (int)(member->name.size < 64 ? member->name.size : 64), member->name.data);
    return (struct schema_node){path, member};
}

bool schema_reader_is_object(struct schema_reader *reader, struct schema_node node, const char *expected)
{
    return (node.value->kind == JSON_OBJECT && !node.value->is_shallow) ||
           schema_reader_refuse(reader, node.path, expected);
}

bool schema_reader_is_list(struct schema_reader *reader, struct schema_node node, size_t most,
                           const char *expected)
{
    return schema_reader_is_object(reader, node, expected) &&
           (node.value->count <= most ||
            schema_reader_refuse(reader, node.path,
                                 arena_printf(reader->arena, "At most %zu members are expected.", most)));
}

bool schema_reader_has_only(struct schema_reader *reader, struct schema_node node, const char *const *names)
{
    for (const struct json *member = node.value->first; member; member = member->next) {
        size_t i = 0;
        while (names[i] && !bytes_equal(member->name, bytes_of(names[i])))
            i++;
        if (names[i])
            continue;
        struct builder words = {0};
        for (i = 0; names[i]; i++)
            builder_printf(&words, "%s%s", !i ? "" : names[i + 1] ? ", " : " and ", names[i]);
        const char *expected = arena_printf(reader->arena, "The members here are %.*s.", (int)words.size,
                                            words.size ? words.data : "");
        builder_free(&words);
        return schema_reader_refuse(reader, schema_reader_member(reader, node, member).path, expected);
    }
    return true;
}

bool schema_reader_flag(struct schema_reader *reader, struct schema_node object, const char *name,
                        bool *flag_r)
{
    const struct json *member = json_member(object.value, name);
    *flag_r = member && member->kind == JSON_TRUE;
    return !member || member->kind == JSON_TRUE || member->kind == JSON_FALSE ||
           schema_reader_refuse(reader, schema_reader_member(reader, object, member).path,
                                "true or false is expected.");
}

bool schema_reader_number(struct schema_reader *reader, struct schema_node object, const char *name,
                          int64_t least, int64_t most, int64_t standard, int64_t *number_r)
{
    const struct json *member = json_member(object.value, name);
    *number_r = standard;
    return !member || (json_is_i64(member, number_r) && *number_r >= least && *number_r <= most) ||
           schema_reader_refuse(reader, schema_reader_member(reader, object, member).path,
                                arena_printf(reader->arena, "An integer from %lld to %lld is expected.",
                                             (long long)least, (long long)most));
}
