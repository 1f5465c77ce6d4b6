/* later: an operation that has another one run later. */
#include <stampd.h>

#include <string.h>

#ifndef ABI
#define ABI STAMPD_ABI
#endif

static enum stampd_outcome schedule(struct stampd_call *call)
{
    stampd_schedule(call, &(struct stampd_task){.operation = "Later"});
    return STAMPD_DONE;
}

/* Records the account that it runs for, and its first role. */
static enum stampd_outcome later(struct stampd_call *call)
{
    struct stampd_document *note = stampd_fetch(call, "Note", "later");
    const char *account = stampd_caller(call);
    const char *json = stampd_format(call, "[\"%s\",\"%s\"]", account ? account : "nobody",
                                     stampd_role_count(call) ? stampd_role(call, 0) : "none");
    stampd_set_json(note, "Main", NULL, stampd_bytes(json, strlen(json)));
    return STAMPD_DONE;
}

static const struct stampd_operation operations[] = {
    {.name = "Schedule", .access = STAMPD_PUBLIC, .work = schedule},
    {.name = "Later", .work = later},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = ABI, .name = "later", .version = "1.0", .operations = operations};
