/* of_z: the namespace, the members of `param`, codes. */
#include "operation/administration/of_z.h"

#include "model/namespace.h"

enum fault of_z_check_place(const struct reader *reader, const char *elsewhere)
{
    return bytes_equal(reader->call->ns, BYTES("z"))
               ? FAULT_NONE
               : reply_wrong_argument(reader->call, reader->reply, "path", elsewhere);
}

enum fault of_z_check(const struct reader *reader, const char *members, const char *elsewhere,
                      const char *expected)
{
    const struct json *param = reader->call->param;
    enum fault fault =
        FAULT_FIRST(of_z_check_place(reader, elsewhere), reader_members(reader, param, members));
    if (!fault && (!param || !param->first || param->first->next))
        fault = reader_wrong_value(reader, NULL, "param", expected);
    return fault;
}

enum fault of_z_read_code(const struct reader *reader, const struct json *object, const char *member,
                          struct bytes *code_r)
{
    const struct json *value = json_member(object, member);
    if (!value || value->kind != JSON_STRING ||
        !namespace_is_code(arena_copy(reader->call->arena, value->value.data, value->value.size)))
        return reader_wrong(reader, object, member, "The code of a namespace is expected.");
    *code_r = value->value;
    return FAULT_NONE;
}

struct bytes of_z_content(const struct document *document, struct bytes item_class)
{
    const struct item *item = document_find_item(document, item_class, BYTES(""));
    return item && !item_is_tombstone(item) && !item->raw ? item->content : NO_BYTES;
}

enum fault of_z_refuse_absence(const struct reader *reader, struct bytes code)
{
    return reply_fault(reader->call, reader->reply, FAULT_NNAMESPACE, NULL,
                       arena_copy(reader->call->arena, code.data, code.size), NULL);
}
