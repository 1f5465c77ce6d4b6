/* chores: the operations of the benchmark of tasks (test/bench/tasks). */
#include <stampd.h>

#include <time.h>

static int64_t read_number(struct stampd_call *call)
{
    return stampd_read_integer(call, stampd_param(call), "n", 0, INT64_MAX);
}

/* A line of the log with the clock that all processes share, in microseconds. */
static enum stampd_outcome tell(struct stampd_call *call, const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    stampd_log(STAMPD_WARNING, "%s %lld %lld", what, (long long)read_number(call),
               (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    return STAMPD_DONE;
}

static void ask_for(struct stampd_call *call, const char *operation, int64_t delay_s)
{
    struct stampd_writer *param = stampd_write_object(call);
    stampd_add_integer(param, "n", read_number(call));
    stampd_schedule(call, &(struct stampd_task){
                              .operation = operation, .param = stampd_written(param), .delay_s = delay_s});
}

static enum stampd_outcome nothing(struct stampd_call *call)
{
    (void)call;
    return STAMPD_DONE;
}

/* One item of the document Doc/<n>. */
static enum stampd_outcome write_item(struct stampd_call *call)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const char *id = stampd_format(call, "%lld", (long long)read_number(call));
    struct stampd_writer *value = stampd_write_object(call);
    stampd_add_integer(value, "fresh", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    stampd_set_written(stampd_fetch(call, "Doc", id), "Main", NULL, value);
    return STAMPD_DONE;
}

static enum stampd_outcome write_and_ask(struct stampd_call *call)
{
    ask_for(call, "Nothing", 86400);
    return write_item(call);
}

/* From the end of its commit to the begin of its task. */
static enum stampd_outcome ask(struct stampd_call *call)
{
    ask_for(call, "Begin", 0);
    return STAMPD_DONE;
}

static enum stampd_outcome committed(struct stampd_call *call)
{
    return tell(call, "committed");
}

static enum stampd_outcome begin(struct stampd_call *call)
{
    return tell(call, "began");
}

static const struct stampd_task_class batched = {.batch = 200};

static const struct stampd_operation operations[] = {
    {.name = "Nothing", .access = STAMPD_PUBLIC, .work = nothing},
    {.name = "Batch", .access = STAMPD_PUBLIC, .work = nothing, .task = &batched},
    {.name = "Write", .access = STAMPD_PUBLIC, .work = write_item},
    {.name = "WriteAsk", .access = STAMPD_PUBLIC, .work = write_and_ask},
    {.name = "Ask", .access = STAMPD_PUBLIC, .work = ask, .afterwork = committed},
    {.name = "Begin", .access = STAMPD_PUBLIC, .work = begin},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "chores", .version = "1", .operations = operations};
