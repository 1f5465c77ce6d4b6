/* neighbour: reads documents of another namespace, for the tests of what it may. */
#include <stampd.h>

/* {"ns","class","id","age"}: what it finds there; public, since the operation itself decides who may. */
static enum stampd_outcome neighbour(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *ns = stampd_read_text(call, param, "ns", 1, 64);
    const char *document_class = stampd_read_text(call, param, "class", 1, 16);
    const char *id = stampd_read_text(call, param, "id", 1, 64);
    struct stampd_document *document = stampd_read_other(
        call, ns, document_class, id, stampd_read_integer_or(call, param, "age", 0, 1000, 1));
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_boolean(result, "exists", stampd_exists(document));
    stampd_add_integer(result, "v", stampd_version(document));
    return stampd_result(call, result);
}

/* The same, then a change of what may only be read. */
static enum stampd_outcome intruder(struct stampd_call *call)
{
    const char *ns = stampd_read_text(call, stampd_param(call), "ns", 1, 64);
    struct stampd_document *document = stampd_read_other(call, ns, "Secret", "one", 1);
    stampd_set_raw(document, "Main", NULL, stampd_bytes("changed", 7));
    return stampd_result(call, stampd_write_object(call));
}

static const struct stampd_operation operations[] = {
    {.name = "Neighbour", .access = STAMPD_PUBLIC, .work = neighbour},
    {.name = "Intruder", .access = STAMPD_PUBLIC, .work = intruder},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "neighbour", .version = "1.0", .operations = operations};
