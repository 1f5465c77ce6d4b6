/* store_claimed: rows of claims. */
#include "store/tasks/store_claimed.h"

#include "base/log.h"
#include "store/store_sealing.h"
#include "store/collections/store_subscriptions.h"
#include "store/tasks/store_task.h"

struct task store_claimed_read(const struct pg_result *rows, int row, int64_t claim)
{
    enum {
        ID,
        OPERATION,
        PARAM,
        INFO,
        RESOURCE,
        DOMAIN,
        CHECKPOINT,
        START,
        ATTEMPT,
        STEP,
        QUEUE,
        PRIORITY,
        BATCH,
        CREATED,
        PERIOD,
        ACCOUNT,
        CREDENTIAL,
        OF_CLIENT,
        IS_LIMITED,
        TRACE
    };
    return (struct task){
        .id = pg_get_text(rows, row, ID),
        .operation = pg_get_text(rows, row, OPERATION),
        .param = pg_get_text(rows, row, PARAM),
        .info = pg_get_text(rows, row, INFO),
        .resource = pg_get_text(rows, row, RESOURCE),
        .domain = pg_get_text(rows, row, DOMAIN),
        .checkpoint = pg_get_text(rows, row, CHECKPOINT),
        .start = pg_get_i64(rows, row, START),
        .claim = claim,
        .attempt = pg_get_i64(rows, row, ATTEMPT),
        .step = pg_get_i64(rows, row, STEP),
        .queue = (int)pg_get_i64(rows, row, QUEUE),
        .priority = (int)pg_get_i64(rows, row, PRIORITY),
        .batch = (int)pg_get_i64(rows, row, BATCH),
        .created = pg_get_i64(rows, row, CREATED),
        .period = pg_get_text(rows, row, PERIOD),
        .account = pg_get_text(rows, row, ACCOUNT),
        .credential = pg_get_text(rows, row, CREDENTIAL),
        .is_of_client = pg_get_bool(rows, row, OF_CLIENT),
        .is_limited = pg_get_bool(rows, row, IS_LIMITED),
        .trace = pg_get_text(rows, row, TRACE),
    };
}

/* A rule cannot have an argument in an encrypted namespace: its task has an empty one, in clear. */
static bool is_of_rule(const struct task *task)
{
    return task->period.data && bytes_equal(task->param, BYTES("{}"));
}

/* One that the database makes for a session that is to be woken (subscription_wake) names it, in clear. */
static bool is_of_wake(struct arena *arena, const struct task *task)
{
    if (!task->resource.data || !bytes_equal(task->operation, BYTES(PUSH_OPERATION)))
        return false;
    const char *param =
        arena_printf(arena, "{\"session\":\"%.*s\"}", (int)task->resource.size, task->resource.data);
    return bytes_equal(task->param, bytes_of(param));
}

enum fault store_claimed_open(struct store *store, int ns, struct arena *arena, struct task *task)
{
    enum fault fault =
        is_of_rule(task) || is_of_wake(arena, task)
            ? FAULT_NONE
            : store_sealing_open_text(store, ns, arena, store_task_param_place(arena, task), &task->param);
    if (!fault)
        fault = store_sealing_open_text(store, ns, arena, store_task_checkpoint_place(arena, task->id),
                                        &task->checkpoint);
    if (!fault && task->step && !task->checkpoint.data && store_sealing_keys(store, ns)->count) {
        log_often(LOG_LEVEL_ERROR, "", "a task has lost its checkpoint: it was altered");
        fault = FAULT_BCONTENT;
    }
    if (fault == FAULT_BCONTENT)
        task->param = NO_BYTES;
    return fault == FAULT_BCONTENT ? FAULT_NONE : fault;
}
