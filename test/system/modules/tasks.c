/* tasks: a module whose tasks count what they do, fail, die and go on as the test at hand wants. */
#include <stampd.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 200, MANY = 1000000000 };

/* One more in the document Counter/<id>. */
static void count(struct stampd_call *call, const char *id)
{
    struct stampd_document *counter = stampd_fetch(call, "Counter", id);
    const struct stampd_json *value = stampd_item_value(counter, "N", NULL);
    int64_t n = value ? stampd_read_integer(call, value, "n", 0, MANY) : 0;
    struct stampd_writer *writer = stampd_write_object(call);
    stampd_add_integer(writer, "n", n + 1);
    stampd_set_written(counter, "N", NULL, writer);
}

static const char *read_id(struct stampd_call *call)
{
    return stampd_read_text(call, stampd_param(call), "id", 1, WORD);
}

static enum stampd_outcome count_one(struct stampd_call *call)
{
    count(call, read_id(call));
    return STAMPD_DONE;
}

/* Counts, and asks for itself again until nothing is left. */
static enum stampd_outcome chain(struct stampd_call *call)
{
    int64_t left = stampd_read_integer(call, stampd_param(call), "left", 0, MANY);
    const char *id = read_id(call);
    count(call, id);
    if (left) {
        struct stampd_writer *param = stampd_write_object(call);
        stampd_add_text(param, "id", id);
        stampd_add_integer(param, "left", left - 1);
        stampd_schedule(call, &(struct stampd_task){.operation = "Chain", .param = stampd_written(param)});
    }
    return STAMPD_DONE;
}

/* Cancels the tasks of the member `name`: [{"op","resource"}…], or with {"op","odd":true} of a resource that
 * is no text. */
static void cancel(struct stampd_call *call, const char *name)
{
    const struct stampd_json *list = stampd_member(call, stampd_param(call), name);
    for (const struct stampd_json *one = list ? stampd_first(call, list) : NULL; one; one = stampd_next(one))
        stampd_cancel_task(call, stampd_read_text_or(call, one, "op", 0, WORD, NULL),
                           stampd_read_boolean_or(call, one, "odd", false)
                               ? "\xff"
                               : stampd_read_text_or(call, one, "resource", 0, MANY, NULL));
}

/* Asks for the tasks in `tasks`, cancels those in `cancel` before and those in `withdraw` behind, and counts
 * in Counter/<id> when there is an id; then fails if told.  With `steps` it does all that twice, as a task.
 */
static enum stampd_outcome plan(struct stampd_call *call)
{
    cancel(call, "cancel");
    const struct stampd_json *param = stampd_param(call);
    const char *id = stampd_read_text_or(call, param, "id", 0, WORD, NULL);
    const struct stampd_json *tasks = stampd_read_array(call, param, "tasks", 0, 10000);
    for (const struct stampd_json *one = stampd_first(call, tasks); one; one = stampd_next(one)) {
        const struct stampd_json *own = stampd_member(call, one, "param");
        stampd_schedule(call,
                        &(struct stampd_task){
                            .operation = stampd_read_text(call, one, "op", 1, WORD),
                            .param = own ? stampd_json_text(own) : stampd_bytes(NULL, 0),
                            .start = stampd_read_integer_or(call, one, "start", 0, INT64_MAX, 0),
                            .delay_s = stampd_read_integer_or(call, one, "delay", INT64_MIN, INT64_MAX, 0),
                            .info = stampd_read_text_or(call, one, "info", 0, MANY, NULL),
                            .priority = (int)stampd_read_integer_or(call, one, "priority", -9, 999, 0),
                            .resource = stampd_read_text_or(call, one, "resource", 0, WORD, NULL),
                            .domain = stampd_read_text_or(call, one, "domain", 0, WORD, NULL),
                            .unique = stampd_read_text_or(call, one, "unique", 0, WORD, NULL),
                        });
    }
    cancel(call, "withdraw");
    if (id)
        count(call, id);
    if (stampd_read_boolean_or(call, param, "steps", false) && !stampd_checkpoint(call))
        stampd_set_checkpoint(call, stampd_write_object(call));
    return stampd_read_boolean_or(call, param, "fail", false) ? stampd_raise(call, "APLAN", "No.", NULL)
                                                              : STAMPD_DONE;
}

/* Raises `code` in the first `times` attempts, then counts. */
static enum stampd_outcome fail(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    count(call, read_id(call));
    if (stampd_read_boolean_or(call, param, "final", false))
        stampd_never_retry(call);
    if (stampd_task_retry(call) < stampd_read_integer_or(call, param, "times", 0, MANY, MANY))
        return stampd_raise(call, stampd_read_text_or(call, param, "code", 1, WORD, "AFAIL"), "As told.",
                            "one", "two", NULL);
    return STAMPD_DONE;
}

/* Counts once in each of `cycles` commits, the last one, or the one with the number `gated`, when there is
 * the file `gate`, with `bytes` of memory for each; dies in the cycle `die` of the first attempt. */
static enum stampd_outcome cycles(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    int64_t wanted = stampd_read_integer(call, param, "cycles", 1, MANY);
    int64_t die = stampd_read_integer_or(call, param, "die", 0, MANY, MANY);
    int64_t fail_at = stampd_read_integer_or(call, param, "fail", 0, MANY, MANY);
    const struct stampd_json *checkpoint = stampd_checkpoint(call);
    int64_t done = checkpoint ? stampd_read_integer(call, checkpoint, "done", 0, MANY) : 0;
    count(call, read_id(call));
    (void)stampd_format(call, "%*s", (int)stampd_read_integer_or(call, param, "bytes", 0, 1 << 30, 0), "");
    if (stampd_task_retry(call) == 0 && done == die)
        kill(getpid(), SIGKILL);
    if (stampd_task_retry(call) == 0 && done == fail_at)
        return stampd_raise(call, "ACYCLE", NULL, NULL);
    usleep((useconds_t)stampd_read_integer_or(call, param, "pause_ms", 0, 10000, 0) * 1000);
    if (done + 1 < wanted) {
        struct stampd_writer *left = stampd_write_object(call);
        stampd_add_integer(left, "done", done + 1);
        stampd_set_checkpoint(call, left);
        stampd_set_progress(call, stampd_read_text_or(call, param, "progress", 0, MANY, NULL));
    }
    const char *gate = stampd_read_text_or(call, param, "gate", 1, WORD, NULL);
    int64_t gated = stampd_read_integer_or(call, param, "gated", 1, MANY, wanted);
    while (gate && done + 1 == gated && access(gate, F_OK) != 0 && stampd_time_left_ms(call) > 0)
        usleep(2000);
    return STAMPD_DONE;
}

/* Counts, and ends its worker in the first `times` attempts. */
static enum stampd_outcome die(struct stampd_call *call)
{
    count(call, read_id(call));
    if (stampd_task_retry(call) < stampd_read_integer(call, stampd_param(call), "times", 0, MANY))
        kill(getpid(), SIGKILL);
    return STAMPD_DONE;
}

/* Crashes in the first `times` attempts. */
static enum stampd_outcome crash(struct stampd_call *call)
{
    count(call, read_id(call));
    if (stampd_task_retry(call) < stampd_read_integer(call, stampd_param(call), "times", 0, MANY))
        abort();
    return STAMPD_DONE;
}

/* Does not return in the first `times` attempts. */
static enum stampd_outcome hang(struct stampd_call *call)
{
    count(call, read_id(call));
    while (stampd_task_retry(call) < stampd_read_integer(call, stampd_param(call), "times", 0, MANY))
        usleep(10000);
    return STAMPD_DONE;
}

/* Makes the file `here`, waits for the file `gate`, then counts. */
static enum stampd_outcome gate(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *here = stampd_read_text_or(call, param, "here", 1, WORD, NULL);
    const char *gate = stampd_read_text(call, param, "gate", 1, WORD);
    count(call, read_id(call));
    if (stampd_failed(call) || !stampd_is_task(call))
        return STAMPD_DONE;
    if (here && symlink("here", here) != 0 && access(here, F_OK) == 0)
        stampd_log(STAMPD_INFO, "here again");
    while (access(gate, F_OK) != 0 && stampd_time_left_ms(call) > 0)
        usleep(2000);
    return STAMPD_DONE;
}

/* Counts in a document of its own; takes time or raises when told. */
static enum stampd_outcome bulk(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    count(call, read_id(call));
    usleep((useconds_t)stampd_read_integer_or(call, param, "pause_ms", 0, 10000, 0) * 1000);
    if (stampd_read_boolean_or(call, param, "fail", false))
        return stampd_raise(call, "ABULK", NULL, NULL);
    if (stampd_read_boolean_or(call, param, "steps", false) && !stampd_checkpoint(call))
        stampd_set_checkpoint(call, stampd_write_object(call));
    static char letters[10000];
    memset(letters, 'a', sizeof letters);
    size_t answer = (size_t)stampd_read_integer_or(call, param, "answer", 0, sizeof letters - 2, 0);
    letters[0] = letters[answer ? answer - 1 : 1] = '"';
    return answer ? stampd_result_json(call, stampd_bytes(letters, answer)) : STAMPD_DONE;
}

/* Writes down what it is told of itself. */
static enum stampd_outcome tell(struct stampd_call *call)
{
    struct stampd_writer *told = stampd_write_object(call);
    stampd_add_boolean(told, "is_task", stampd_is_task(call));
    stampd_add_text(told, "id", stampd_task_id(call));
    stampd_add_text(told, "info", stampd_task_info(call));
    stampd_add_integer(told, "start", stampd_task_start(call));
    stampd_add_integer(told, "retry", stampd_task_retry(call));
    stampd_add_integer(told, "step", stampd_task_step(call));
    stampd_add_text(told, "account", stampd_account(call));
    stampd_add_boolean(told, "admin", stampd_is_administrator(call));
    stampd_add_integer(told, "left_ms", stampd_time_left_ms(call));
    stampd_set_written(stampd_fetch(call, "Told", read_id(call)), "Told", NULL, told);
    return stampd_result_json(call, stampd_bytes("{\"nobody\":1}", 12));
}

static enum stampd_outcome after(struct stampd_call *call)
{
    stampd_log(STAMPD_INFO, "afterwork was run");
    cancel(call, "cancel");
    return stampd_failed(call) ? STAMPD_FAULT : STAMPD_DONE;
}

/* What only tasks may do. */
static enum stampd_outcome checkpoint_anyway(struct stampd_call *call)
{
    stampd_set_checkpoint(call, stampd_write_object(call));
    return STAMPD_DONE;
}

static const struct stampd_task_class for_clients = {.clients_may_schedule = true};
static const struct stampd_task_class slow = {.queue = 3, .seconds = 4, .clients_may_schedule = true};
static const struct stampd_task_class idempotency = {.never_retry = true, .clients_may_schedule = true};
static const struct stampd_task_class brief = {.seconds = 1, .clients_may_schedule = true};
static const struct stampd_task_class together = {.batch = 10, .clients_may_schedule = true};
static const struct stampd_task_class soon_over = {.batch = 10, .seconds = 4, .clients_may_schedule = true};

static const struct stampd_task_class patient = {.retries = "2h..8hx3", .clients_may_schedule = true};

static const struct stampd_operation operations[] = {
    {.name = "Count", .access = STAMPD_PUBLIC, .work = count_one, .task = &for_clients},
    {.name = "Secret", .work = count_one},
    {.name = "Quiet", .access = STAMPD_PUBLIC, .work = count_one},
    {.name = "Chain", .access = STAMPD_PUBLIC, .work = chain, .task = &for_clients},
    {.name = "Plan", .access = STAMPD_PUBLIC, .work = plan, .task = &for_clients},
    {.name = "Look", .access = STAMPD_PUBLIC, .is_read_only = true, .work = plan, .task = &for_clients},
    {.name = "Fail", .access = STAMPD_PUBLIC, .work = fail, .task = &for_clients},
    {.name = "Once", .access = STAMPD_PUBLIC, .work = fail, .task = &idempotency},
    {.name = "Patient", .access = STAMPD_PUBLIC, .work = fail, .task = &patient},
    {.name = "Cycles", .access = STAMPD_PUBLIC, .work = cycles, .task = &for_clients},
    {.name = "Slow", .access = STAMPD_PUBLIC, .work = cycles, .task = &slow},
    {.name = "Die", .access = STAMPD_PUBLIC, .work = die, .task = &for_clients},
    {.name = "OnceDie", .access = STAMPD_PUBLIC, .work = die, .task = &idempotency},
    {.name = "Crash", .access = STAMPD_PUBLIC, .work = crash, .task = &for_clients},
    {.name = "Hang", .access = STAMPD_PUBLIC, .work = hang, .task = &brief},
    {.name = "Gate", .access = STAMPD_PUBLIC, .work = gate, .task = &for_clients},
    {.name = "Bulk", .access = STAMPD_PUBLIC, .work = bulk, .task = &together},
    {.name = "Brief", .access = STAMPD_PUBLIC, .work = bulk, .task = &soon_over},
    {.name = "Tell", .access = STAMPD_PUBLIC, .work = tell, .afterwork = after, .task = &for_clients},
    {.name = "Checkpoint", .access = STAMPD_PUBLIC, .work = checkpoint_anyway},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "tasks", .version = "1", .operations = operations};
