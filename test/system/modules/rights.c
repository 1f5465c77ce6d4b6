/* rights: says who calls and what it may do. */
#include <stampd.h>

#include <string.h>

static enum stampd_outcome who(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_text(result, "caller", stampd_caller(call));
    stampd_add_boolean(result, "is_editor", stampd_has_role(call, "editor"));
    stampd_open_array(result, "roles");
    for (size_t i = 0; i < stampd_role_count(call); i++)
        stampd_add_text(result, NULL, stampd_role(call, i));
    stampd_close(result);
    return stampd_result(call, result);
}

/* {"id","age"?,"set"?: an object for its item Main, or false: it is deleted} */
static enum stampd_outcome may(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call), *set = stampd_member(call, param, "set");
    const char *id = stampd_read_text(call, param, "id", 1, 64);
    int64_t age = stampd_read_integer_or(call, param, "age", 1, 100, 0);
    struct stampd_document *note = age ? stampd_read(call, "Note", id, age) : stampd_fetch(call, "Note", id);
    if (stampd_kind(set) == STAMPD_OBJECT)
        stampd_set_value(note, "Main", NULL, set);
    else if (set)
        stampd_delete(note);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_boolean(result, "read", stampd_may_read(note));
    stampd_add_boolean(result, "list", stampd_may_list(note));
    stampd_add_boolean(result, "see Main", stampd_may_see(note, "Main"));
    stampd_add_boolean(result, "see Secret", stampd_may_see(note, "Secret"));
    stampd_add_boolean(result, "change", stampd_may_change(note));
    if (set) {
        struct stampd_bytes text = stampd_written(result);
        return stampd_raise(call, "ATRIED", NULL, stampd_copy(call, text.data, text.size), NULL);
    }
    return stampd_result(call, result);
}

/* Three a day for each account. */
static enum stampd_outcome ration(struct stampd_call *call)
{
    const char *account = stampd_caller(call);
    stampd_limit(call, "invite", account ? account : "", "9/d, burst 3");
    return who(call);
}

/* {"documents":[{"c","id","i"}…]}: writes something new into the item "i" of each, whatever the caller may
 * do. */
static enum stampd_outcome touch(struct stampd_call *call)
{
    const struct stampd_json *list = stampd_read_array(call, stampd_param(call), "documents", 1, 10);
    for (const struct stampd_json *one = stampd_first(call, list); one; one = stampd_next(one)) {
        struct stampd_document *document = stampd_fetch(call, stampd_read_text(call, one, "c", 1, 64),
                                                        stampd_read_text(call, one, "id", 1, 64));
        const char *item = stampd_read_text(call, one, "i", 1, 64);
        const char *json = stampd_format(call, "\"%s\"", stampd_random_token(call));
        stampd_set_json(document, item, strcmp(item, "Line") ? NULL : "touched",
                        stampd_bytes(json, strlen(json)));
    }
    return STAMPD_DONE;
}

static const struct stampd_operation operations[] = {
    {.name = "Who", .access = STAMPD_PUBLIC, .is_read_only = true, .work = who},
    {.name = "May", .access = STAMPD_PUBLIC, .work = may},
    {.name = "Touch", .access = STAMPD_PUBLIC, .work = touch},
    {.name = "Ration", .access = STAMPD_PUBLIC, .work = ration},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "rights", .version = "1.0", .operations = operations};
