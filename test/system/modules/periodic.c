/* periodic: an operation that runs again and again by itself; PERIOD is chosen where it is built. */
#include <stampd.h>

#ifndef PERIOD
#define PERIOD NULL
#endif

/* One more in Counter/<own name>. */
static enum stampd_outcome again(struct stampd_call *call)
{
    struct stampd_document *counter = stampd_fetch(call, "Counter", "again");
    const struct stampd_json *value = stampd_item_value(counter, "N", NULL);
    int64_t n = value ? stampd_read_integer(call, value, "n", 0, 1000000) : 0;
    struct stampd_writer *writer = stampd_write_object(call);
    stampd_add_integer(writer, "n", n + 1);
    stampd_set_written(counter, "N", NULL, writer);
    return STAMPD_DONE;
}

/* The time that follows "after" by the text "period". */
static enum stampd_outcome next(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "next",
                       stampd_cron_next(stampd_read_text(call, param, "period", 0, 100),
                                        stampd_read_integer(call, param, "after", 0, INT64_MAX)));
    return stampd_result_json(call, stampd_written(result));
}

static const struct stampd_task_class often = {.batch = 10, .period = PERIOD};

static const struct stampd_operation operations[] = {
    {.name = "Again", .work = again, .task = &often},
    {.name = "Next", .access = STAMPD_PUBLIC, .is_read_only = true, .work = next},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "periodic", .version = "1", .operations = operations};
