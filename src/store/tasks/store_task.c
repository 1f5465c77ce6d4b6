/* store_task: tasks in a commit: those that it creates, those that it ends. */
#include "store/tasks/store_task.h"

#include "model/task/cron.h"
#include "store/documents/commit_part.h"
#include "store/store_run.h"
#include "store/store_sealing.h"
#include "store/tasks/store_tasks.h"
#include "edge/json/json.h"
#include "store/documents/store_commit.h"

/* --- what texts are sealed for --- */

struct sealing_place store_task_param_place(struct arena *arena, const struct task *task)
{
    const struct bytes parts[] = {BYTES("task"), task->operation, task->resource.data ? NO_BYTES : task->id,
                                  task->resource};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

struct sealing_place store_task_checkpoint_place(struct arena *arena, struct bytes id)
{
    const struct bytes parts[] = {BYTES("checkpoint"), id};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

struct sealing_place store_task_result_place(struct arena *arena, struct bytes id)
{
    const struct bytes parts[] = {BYTES("result"), id};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

/* --- parameters --- */

static struct bytes seal_result(struct arena *arena, const struct data_keys *keys,
                                const struct task_fence *fence)
{
    return fence->result.data
               ? data_keys_seal_text(keys, arena, store_task_result_place(arena, fence->id), fence->result)
               : NO_BYTES;
}

static void add_result(struct pg_params *params, const struct data_keys *keys, const struct task_fence *fence)
{
    pg_params_add_text(params, seal_result(params->arena, keys, fence));
}

/* A periodic task is alone in its commit, which makes it wait for its next time.  An attempt may have begun
 * a little before its planned time: that time is not the next. */
static bool is_periodic(const struct commit *commit)
{
    struct cron cron;
    return commit->fence_count == 1 && !commit->checkpoint.data && !commit->fences->end &&
           commit->fences->period.data && cron_parse(commit->fences->period, &cron);
}

static void add_periodic_end(struct pg_params *params, const struct data_keys *keys,
                             const struct commit *commit)
{
    const struct task_fence *fence = commit->fences;
    struct cron cron = {0};
    bool is_period = cron_parse(fence->period, &cron);
    assert(is_period);
    int64_t after = commit->stop > fence->start ? commit->stop : fence->start;
    PG_PARAMS_ADD(params, PG_TEXT(fence->id), PG_I64(fence->claim), PG_I32((int32_t)fence->attempt),
                  PG_I64(commit->stop),
                  PG_I64(stamp_from_epoch_ms(cron_next_ms(&cron, stamp_to_epoch_ms(after)))),
                  PG_TEXT(bytes_of(arena_printf(params->arena, "%.*s %s", (int)fence->period.size,
                                                fence->period.data, cron_zone()))));
    add_result(params, keys, fence);
}

void store_task_add_put_back(struct pg_params *params, const struct task_fence *fence,
                             const struct task_end *end, bool is_encrypted, int64_t stop)
{
    PG_PARAMS_ADD(params, PG_TEXT(fence->id), PG_I64(fence->claim), PG_I32((int32_t)fence->attempt),
                  PG_I64(end->start), PG_I32(end->is_failure), PG_TEXT(end->code),
                  PG_TEXT(is_encrypted ? NO_BYTES : end->report), PG_I64(stop));
}

static void add_end(struct pg_params *params, const struct data_keys *keys, const struct commit *commit)
{
    struct arena *arena = params->arena;
    const struct task_fence *fences = commit->fences;
    size_t count = commit->fence_count;
    if (commit->checkpoint.data) {
        assert(count == 1);
        PG_PARAMS_ADD(params, PG_TEXT(fences->id), PG_I32((int32_t)fences->attempt), PG_I64(fences->claim),
                      PG_TEXT(data_keys_seal_text(keys, arena, store_task_checkpoint_place(arena, fences->id),
                                                  commit->checkpoint)));
        /* Its words may be from contents. */
        pg_params_add_text(params, keys->count ? NO_BYTES : fences->progress);
        return;
    }
    if (count == 1) {
        PG_PARAMS_ADD(params, PG_TEXT(fences->id), PG_I32((int32_t)fences->attempt), PG_I64(fences->claim),
                      PG_I64(commit->stop));
        add_result(params, keys, fences);
        if (fences->queues)
            pg_params_add_i64(params, fences->queues);
        return;
    }
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *results = ARENA_ARRAY(arena, struct bytes, count);
    int32_t *attempts = ARENA_ARRAY(arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        assert(fences[i].claim == fences[0].claim);
        ids[i] = fences[i].id;
        attempts[i] = (int32_t)fences[i].attempt;
        results[i] = seal_result(arena, keys, &fences[i]);
    }
    PG_PARAMS_ADD(params, PG_TEXTS(ids, count), PG_I32S(attempts, count), PG_I64(fences[0].claim),
                  PG_I64(commit->stop), PG_TEXTS(results, count));
}

static void add_texts(struct pg_params *params, const struct task *tasks, size_t count, size_t offset)
{
    struct bytes *texts = ARENA_ARRAY(params->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        memcpy(&texts[i], (const char *)&tasks[i] + offset, sizeof texts[i]);
    pg_params_add_text_array(params, texts, count);
}

static void add_numbers(struct pg_params *params, const struct task *tasks, size_t count, size_t offset)
{
    int32_t *numbers = ARENA_ARRAY(params->arena, int32_t, count);
    for (size_t i = 0; i < count; i++)
        memcpy(&numbers[i], (const char *)&tasks[i] + offset, sizeof numbers[i]);
    pg_params_add_i32_array(params, numbers, count);
}

/* One that cannot be merged with another. */
static bool is_lone(const struct commit *commit)
{
    return commit->task_count == 1 && !commit->tasks->resource.data;
}

/* Several that cannot be merged, and that one caller has requested. */
static bool are_plain(const struct commit *commit)
{
    const struct task *first = commit->tasks;
    bool are = commit->task_count > 1;
    for (size_t i = 0; are && i < commit->task_count; i++) {
        const struct task *task = &commit->tasks[i];
        are = !task->resource.data && task->requester == first->requester &&
              task->is_of_client == first->is_of_client && bytes_equal(task->account, first->account) &&
              bytes_equal(task->credential, first->credential) && bytes_equal(task->trace, first->trace);
    }
    return are;
}

static void add_lone(struct pg_params *params, const struct task *task, int64_t created)
{
    PG_PARAMS_ADD(params, PG_TEXT(task->id), PG_TEXT(task->operation), PG_TEXT(task->param),
                  PG_TEXT(task->info), PG_I64(task->start), PG_I32(task->queue), PG_I32(task->priority),
                  PG_I32(task->batch), PG_TEXT(task->domain), PG_I64(created), PG_I32(task->is_strict),
                  PG_I64(task->requester), PG_TEXT(task->account), PG_TEXT(task->credential),
                  PG_I32(task->is_of_client), PG_TEXT(task->key), PG_TEXT(task->trace));
}

static void add_plain(struct pg_params *params, const struct task *tasks, size_t count, int64_t created)
{
    int64_t *starts = ARENA_ARRAY(params->arena, int64_t, count);
    int32_t *strict = ARENA_ARRAY(params->arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        starts[i] = tasks[i].start;
        strict[i] = tasks[i].is_strict;
    }
    add_texts(params, tasks, count, offsetof(struct task, id));
    add_texts(params, tasks, count, offsetof(struct task, operation));
    add_texts(params, tasks, count, offsetof(struct task, param));
    add_texts(params, tasks, count, offsetof(struct task, info));
    pg_params_add_i64_array(params, starts, count);
    add_numbers(params, tasks, count, offsetof(struct task, queue));
    add_numbers(params, tasks, count, offsetof(struct task, priority));
    add_numbers(params, tasks, count, offsetof(struct task, batch));
    add_texts(params, tasks, count, offsetof(struct task, domain));
    PG_PARAMS_ADD(params, PG_I64(created), PG_I32S(strict, count), PG_I64(tasks->requester),
                  PG_TEXT(tasks->account), PG_TEXT(tasks->credential), PG_I32(tasks->is_of_client));
    add_texts(params, tasks, count, offsetof(struct task, key));
    pg_params_add_text(params, tasks->trace);
}

static void add_made(struct pg_params *params, const struct task *tasks, size_t count, int64_t created)
{
    int64_t *starts = ARENA_ARRAY(params->arena, int64_t, count);
    int64_t *latest = ARENA_ARRAY(params->arena, int64_t, count);
    int64_t *requesters = ARENA_ARRAY(params->arena, int64_t, count);
    int32_t *strict = ARENA_ARRAY(params->arena, int32_t, count);
    int32_t *of_client = ARENA_ARRAY(params->arena, int32_t, count);
    int32_t *unique = ARENA_ARRAY(params->arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        starts[i] = tasks[i].start;
        latest[i] = tasks[i].latest;
        requesters[i] = tasks[i].requester;
        strict[i] = tasks[i].is_strict;
        of_client[i] = tasks[i].is_of_client;
        unique[i] = tasks[i].unique_until != 0;
    }
    add_texts(params, tasks, count, offsetof(struct task, id));
    add_texts(params, tasks, count, offsetof(struct task, operation));
    add_texts(params, tasks, count, offsetof(struct task, param));
    add_texts(params, tasks, count, offsetof(struct task, info));
    pg_params_add_i64_array(params, starts, count);
    add_numbers(params, tasks, count, offsetof(struct task, queue));
    add_numbers(params, tasks, count, offsetof(struct task, priority));
    add_numbers(params, tasks, count, offsetof(struct task, batch));
    add_texts(params, tasks, count, offsetof(struct task, resource));
    add_texts(params, tasks, count, offsetof(struct task, domain));
    PG_PARAMS_ADD(params, PG_I64(created), PG_I32S(strict, count), PG_I64S(requesters, count),
                  PG_I64S(latest, count));
    add_texts(params, tasks, count, offsetof(struct task, account));
    add_texts(params, tasks, count, offsetof(struct task, credential));
    pg_params_add_i32_array(params, of_client, count);
    add_texts(params, tasks, count, offsetof(struct task, key));
    pg_params_add_i32_array(params, unique, count);
    add_texts(params, tasks, count, offsetof(struct task, trace));
}

static size_t count_unique(const struct commit *commit)
{
    size_t count = 0;
    for (size_t i = 0; i < commit->task_count; i++)
        count += commit->tasks[i].unique_until != 0;
    return count;
}

/* Those that are unique, before they are created. */
static void plan_unique(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    size_t count = count_unique(commit), next = 0;
    if (!count)
        return;
    struct task *unique = ARENA_ARRAY(run->arena, struct task, count);
    int64_t *starts = ARENA_ARRAY(run->arena, int64_t, count);
    int64_t *untils = ARENA_ARRAY(run->arena, int64_t, count);
    for (size_t i = 0; i < commit->task_count; i++) {
        if (!commit->tasks[i].unique_until)
            continue;
        unique[next] = commit->tasks[i];
        starts[next] = unique[next].start;
        untils[next] = unique[next].unique_until;
        next++;
    }
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_TASK_UNIQUE]);
    add_texts(params, unique, count, offsetof(struct task, id));
    add_texts(params, unique, count, offsetof(struct task, operation));
    add_texts(params, unique, count, offsetof(struct task, resource));
    PG_PARAMS_ADD(params, PG_I64S(starts, count), PG_I64S(untils, count));
}

/* A commit that searches for the next task: an ended task with a domain is alone in its commit. */
static bool has_domain(const struct commit *commit)
{
    return commit->fence_count == 1 && !commit->checkpoint.data && commit->fences->domain.data;
}

static enum statement choose_end(const struct commit *commit)
{
    return commit->checkpoint.data   ? STATEMENT_TASK_STEP
           : is_periodic(commit)     ? STATEMENT_CRON_END
           : commit->fence_count > 1 ? STATEMENT_TASK_END
           : commit->fences->end     ? STATEMENT_TASK_BACK_TAKEN
           : commit->fences->queues  ? STATEMENT_TASK_END_TAKEN
                                     : STATEMENT_TASK_END_ONE;
}

static enum fault plan_ends(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    if (!commit->fence_count)
        return FAULT_NONE;
    const enum statement end = choose_end(commit);
    struct pg_params *params = commit_part_add(run, &statements[end]);
    const struct data_keys *keys = store_sealing_keys(run->store, run->ns);
    if (end == STATEMENT_TASK_BACK_TAKEN)
        store_task_add_put_back(params, commit->fences, commit->fences->end, keys->count, commit->stop);
    else if (end == STATEMENT_CRON_END)
        add_periodic_end(params, keys, commit);
    else
        add_end(params, keys, commit);
    return FAULT_NONE;
}

static void take_ends(struct commit_run *run, struct pg_result *const *results)
{
    struct commit *commit = run->commit;
    enum { DOMAIN, QUEUE };
    if (commit->fence_count == 1 && commit->fences->end)
        commit->fences->again = pg_get_i64(*results, 0, 0);
    if (commit->fence_count != 1 || !commit->fences->queues || !pg_rows(*results))
        return;
    commit->fences->left = pg_get_text(*results, 0, DOMAIN);
    commit->fences->queue = (int)pg_get_i64(*results, 0, QUEUE);
}

const struct commit_part commit_part_task_ends = {.plan = plan_ends, .take = take_ends};

/* --- cancelled ones --- */

static void plan_cancels(struct commit_run *run, bool is_waiting_too)
{
    const struct commit *commit = run->commit;
    if (!commit->cancel_count)
        return;
    struct bytes *operations = ARENA_ARRAY(run->arena, struct bytes, commit->cancel_count);
    struct bytes *resources = ARENA_ARRAY(run->arena, struct bytes, commit->cancel_count);
    struct bytes *own = ARENA_ARRAY(run->arena, struct bytes, commit->fence_count);
    for (size_t i = 0; i < commit->cancel_count; i++) {
        operations[i] = commit->cancels[i].operation;
        resources[i] = commit->cancels[i].resource;
    }
    for (size_t i = 0; i < commit->fence_count; i++)
        own[i] = commit->fences[i].id;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_TASK_CANCEL_FOR]);
    PG_PARAMS_ADD(params, PG_TEXTS(operations, commit->cancel_count),
                  PG_TEXTS(resources, commit->cancel_count), PG_TEXTS(own, commit->fence_count),
                  PG_I32(is_waiting_too));
}

/* Before the documents, which the commit of a running task locks after its row. */
static enum fault plan_running_cancels(struct commit_run *run)
{
    plan_cancels(run, false);
    return FAULT_NONE;
}

/* After the documents, as commits that schedule lock the waiting tasks that they change.  Those that have
 * been claimed since the first statement are among them. */
static enum fault plan_waiting_cancels(struct commit_run *run)
{
    plan_cancels(run, true);
    return FAULT_NONE;
}

const struct commit_part commit_part_running_cancels = {.plan = plan_running_cancels};
const struct commit_part commit_part_waiting_cancels = {.plan = plan_waiting_cancels};

/* --- new ones --- */

/* Those of the caller; what the server adds for its documents has no requester. */
static int32_t count_requested(const struct commit *commit)
{
    int32_t count = 0;
    for (size_t i = 0; i < commit->task_count; i++) {
        const struct task *task = &commit->tasks[i];
        count +=
            task->requester == commit->tasks->requester && task->is_of_client == commit->tasks->is_of_client;
    }
    return count;
}

/* The limits of clients count its tasks. */
static enum fault plan_task_quota(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    const struct task_quotas *quotas = &commit->task_quotas;
    const int64_t most[] = {quotas->of_address, quotas->of_account, quotas->of_namespace};
    if (!commit->task_count || (!commit->tasks->requester && !most[0] && !most[1] && !most[2]))
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_TASK_ADMIT]);
    PG_PARAMS_ADD(params, PG_I64(commit->tasks->requester),
                  PG_I32((int32_t)store_settings(run->store)->limit_client_tasks),
                  PG_I32((int32_t)store_settings(run->store)->limit_tasks_waiting),
                  PG_TEXT(commit->tasks->account.data ? commit->tasks->account : BYTES("")),
                  PG_I64S(most, COUNT_OF(most)), PG_I32(count_requested(commit)));
    return FAULT_NONE;
}

const struct commit_part commit_part_task_quota = {.plan = plan_task_quota};

/* The new tasks as they are stored. */
static const struct task *seal(const struct commit_run *run)
{
    const struct data_keys *keys = store_sealing_keys(run->store, run->ns);
    const struct commit *commit = run->commit;
    if (!keys->count || !commit->task_count)
        return commit->tasks;
    struct task *sealed = ARENA_ARRAY(run->arena, struct task, commit->task_count);
    for (size_t i = 0; i < commit->task_count; i++) {
        sealed[i] = commit->tasks[i];
        sealed[i].param = data_keys_seal_text(
            keys, run->arena, store_task_param_place(run->arena, &sealed[i]), sealed[i].param);
    }
    return sealed;
}

static enum fault plan_new(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    const struct task *tasks = seal(run);
    plan_unique(run);
    if (is_lone(commit))
        add_lone(commit_part_add(run, &statements[STATEMENT_TASK_MAKE_ONE]), tasks, commit->stop);
    else if (are_plain(commit))
        add_plain(commit_part_add(run, &statements[STATEMENT_TASK_MAKE_PLAIN]), tasks, commit->task_count,
                  commit->stop);
    else if (commit->task_count)
        add_made(commit_part_add(run, &statements[STATEMENT_TASK_MAKE]), tasks, commit->task_count,
                 commit->stop);
    if (has_domain(commit)) {
        struct pg_params *params = commit_part_add(run, &statements[STATEMENT_TASK_NEXT]);
        PG_PARAMS_ADD(params, PG_TEXT(commit->fences->domain), PG_I64(commit->stop));
    }
    return FAULT_NONE;
}

/* --- the answers --- */

static struct task *find_made(struct commit *commit, struct bytes id, struct bytes operation,
                              struct bytes resource)
{
    for (size_t i = 0; i < commit->task_count; i++) {
        struct task *task = &commit->tasks[i];
        if (resource.data ? task->resource.data && bytes_equal(task->resource, resource) &&
                                bytes_equal(task->operation, operation)
                          : bytes_equal(task->id, id))
            return task;
    }
    return NULL;
}

static void take_made(struct pg_result *made, struct commit *commit)
{
    enum { ID, OPERATION, RESOURCE, START, PRIORITY, ATTEMPT };
    for (int row = 0; row < pg_rows(made); row++) {
        struct bytes id = pg_get_text(made, row, ID);
        struct task *task =
            find_made(commit, id, pg_get_text(made, row, OPERATION), pg_get_text(made, row, RESOURCE));
        if (!task) /* of a function that was altered */
            continue;
        task->id = id;
        task->start = pg_get_i64(made, row, START);
        task->priority = (int)pg_get_i64(made, row, PRIORITY);
        task->attempt = pg_get_i64(made, row, ATTEMPT);
    }
}

struct task store_task_read_due(const struct pg_result *rows, int row)
{
    enum { ID, OPERATION, QUEUE, PRIORITY, START, ATTEMPT, BATCH, DOMAIN };
    return (struct task){
        .id = pg_get_text(rows, row, ID),
        .operation = pg_get_text(rows, row, OPERATION),
        .queue = (int)pg_get_i64(rows, row, QUEUE),
        .priority = (int)pg_get_i64(rows, row, PRIORITY),
        .start = pg_get_i64(rows, row, START),
        .attempt = pg_get_i64(rows, row, ATTEMPT),
        .batch = (int)pg_get_i64(rows, row, BATCH),
        .domain = pg_get_text(rows, row, DOMAIN),
    };
}

/* The tasks that exist already. */
static void take_unique(struct pg_result *found, struct commit *commit)
{
    enum { ID, OPERATION, RESOURCE, START };
    for (int row = 0; row < pg_rows(found); row++) {
        struct task *task = find_made(commit, NO_BYTES, pg_get_text(found, row, OPERATION),
                                      pg_get_text(found, row, RESOURCE));
        if (!task)
            continue;
        task->id = pg_get_text(found, row, ID);
        task->start = pg_get_i64(found, row, START);
    }
}

static void take_new(struct commit_run *run, struct pg_result *const *results)
{
    struct commit *commit = run->commit;
    if (count_unique(commit))
        take_unique(*results++, commit);
    if (commit->task_count)
        take_made(*results++, commit); /* no rows where nothing can be merged: they are as requested */
    if (has_domain(commit) && pg_rows(*results))
        commit->next = store_task_read_due(*results, 0);
}

const struct commit_part commit_part_new_tasks = {.plan = plan_new, .take = take_new};
