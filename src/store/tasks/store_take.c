/* store_take: claims of external workers: the statements, and the part of a commit. */
#include "store/tasks/store_take.h"

#include <inttypes.h>

#include "edge/pg/pg_pipeline.h"
#include "model/task/task.h"
#include "model/task/worker_queues.h"
#include "store/documents/commit_part.h"
#include "store/statements.h"
#include "store/tasks/store_claimed.h"
#include "store/store_run.h"

static struct bytes name_attempt(struct arena *arena, const struct task_fence *fence)
{
    return bytes_of(arena_printf(arena, "%.*s %" PRId64 " %" PRId64, (int)fence->id.size, fence->id.data,
                                 fence->claim, fence->attempt));
}

static void add_claim(struct pg_params *params, const struct task_take *take)
{
    PG_PARAMS_ADD(params, PG_I64(take->claim), PG_TEXT(take->holder), PG_I64(take->until));
}

static void add_take_params(struct pg_params *params, const struct task_take *take, int64_t now)
{
    PG_PARAMS_ADD(params, PG_I32(take->queue), PG_TEXT(take->domain), PG_I32((int32_t)take->most),
                  PG_I64(now));
    add_claim(params, take);
    pg_params_add_text(params, take->after ? name_attempt(params->arena, take->after) : NO_BYTES);
}

static void add_queue(struct pg_params *params, struct arena *arena, const struct task_take *take,
                      int64_t now)
{
    pg_params_start(params, arena);
    PG_PARAMS_ADD(params, PG_I32(take->queue), PG_I64(now));
}

/* A worker that was given as many as it wanted comes again at once. */
static enum fault read_next(struct store *store, int ns, struct arena *arena, const struct task_take *take,
                            int64_t now, struct task_taken *taken)
{
    struct pg_params params;
    struct pg_result *row;
    if ((int64_t)taken->count >= take->most)
        return FAULT_NONE;
    add_queue(&params, arena, take, now);
    pg_params_add_text(&params, take->domain);
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_UPCOMING, &params, &row);
    taken->next = fault ? 0 : pg_get_i64(row, 0, 0);
    return taken->count ? FAULT_NONE : fault; /* the claimed tasks must run */
}

static void read_taken(const struct pg_result *rows, struct arena *arena, struct task_taken *taken_r)
{
    enum { CLAIM = STORE_CLAIMED_COLUMNS, UNTIL };
    size_t count = (size_t)pg_rows(rows);
    *taken_r = (struct task_taken){.tasks = ARENA_ARRAY(arena, struct task, count),
                                   .untils = ARENA_ARRAY(arena, int64_t, count),
                                   .count = count};
    for (size_t i = 0; i < count; i++) {
        taken_r->tasks[i] = store_claimed_read(rows, (int)i, pg_get_i64(rows, (int)i, CLAIM));
        taken_r->untils[i] = pg_get_i64(rows, (int)i, UNTIL);
    }
}

static void read_taken_and_late(const struct pg_result *rows, struct arena *arena, struct task_taken *taken_r)
{
    enum { IS_OVERDUE = STORE_CLAIMED_COLUMNS + 2 };
    read_taken(rows, arena, taken_r);
    taken_r->has_overdue = taken_r->count && pg_get_bool(rows, 0, IS_OVERDUE);
}

enum fault store_take_open(struct store *store, int ns, struct arena *arena, struct task_taken *taken)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < taken->count && !fault; i++)
        fault = store_claimed_open(store, ns, arena, &taken->tasks[i]);
    return fault;
}

/* The claims are made: another try would make others. */
static enum fault open_new(struct store *store, int ns, struct arena *arena, struct task_taken *taken)
{
    return store_take_open(store, ns, arena, taken) ? FAULT_XUNKNOWN : FAULT_NONE;
}

/* Why nothing was claimed: FAULT_STALE is a lock of the limits that others have. */
static enum fault why_not(enum fault fault)
{
    return fault == FAULT_STALE ? FAULT_CONTENTION : fault;
}

/* --- one, where nothing but its place in the queue decides --- */

/* Takes of a queue, in any namespace, for which this process does not try: where one was for nothing, the
 * next would be, too. */
enum { TAKES_WITHOUT = 15 };
static unsigned takes_without[WORKER_QUEUES_END];

static bool is_worth_trying(const struct task_take *take)
{
    unsigned *without = &takes_without[take->queue];
    if (take->most > 1 || take->domain.data || take->after)
        return false;
    if (!*without)
        return true;
    --*without;
    return false;
}

static enum fault take_one(struct store *store, int ns, struct arena *arena, const struct task_take *take,
                           int64_t now, struct task_taken *taken_r)
{
    struct pg *pg;
    struct pg_verdict verdict;
    struct pg_params params;
    enum fault fault = store_run_begin(store, ns, arena, &pg);
    if (fault)
        return fault;
    add_queue(&params, arena, take, now);
    add_claim(&params, take);
    pg_pipeline_add(pg, &statements[STATEMENT_TASK_TAKE_ONE], &params);
    fault = store_run_end(store, ns, &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return why_not(fault);
    read_taken_and_late(verdict.results[0], arena, taken_r);
    if (taken_r->count)
        return open_new(store, ns, arena, taken_r);
    store_run_forget_change(store);
    takes_without[take->queue] = TAKES_WITHOUT;
    return FAULT_NONE;
}

/* --- any --- */

/* What was taken, in one round trip; when there may be more, in a second one. */
static enum fault take_any(struct store *store, int ns, struct arena *arena, const struct task_take *take,
                           int64_t now, struct task_taken *taken_r)
{
    struct pg *pg;
    struct pg_verdict verdict;
    struct pg_params params, of_late;
    enum fault fault = store_run_begin(store, ns, arena, &pg);
    if (fault)
        return fault;
    pg_params_start(&params, arena);
    add_take_params(&params, take, now);
    add_queue(&of_late, arena, take, now);
    pg_pipeline_add(pg, &statements[STATEMENT_TASK_TAKE], &params);
    pg_pipeline_add(pg, &statements[STATEMENT_TASK_LATE], &of_late);
    fault = store_run_end(store, ns, &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return why_not(fault);
    read_taken(verdict.results[0], arena, taken_r);
    if (!taken_r->count)
        store_run_forget_change(store);
    taken_r->has_overdue = pg_get_bool(verdict.results[1], 0, 0);
    return FAULT_FIRST(open_new(store, ns, arena, taken_r), read_next(store, ns, arena, take, now, taken_r));
}

enum fault store_take(struct store *store, int ns, struct arena *arena, const struct task_take *take,
                      struct task_taken *taken_r)
{
    const int64_t now = stamp_now(); /* of all statements: what starts between two is found by one of them */
    if (is_worth_trying(take)) {
        enum fault fault = take_one(store, ns, arena, take, now, taken_r);
        if (fault || taken_r->count)
            return fault;
    }
    return take_any(store, ns, arena, take, now, taken_r);
}

/* --- what an end claims with it --- */

enum fault store_take_following(struct store *store, int ns, struct arena *arena, int queue,
                                const struct task_fence *fence, struct task_taken *taken_r)
{
    struct pg_result *rows;
    enum fault fault = store_run_statement(
        store, ns, STATEMENT_TASK_FOLLOWING,
        PG_PARAMS(arena, PG_TEXT(name_attempt(arena, fence)), PG_I32(queue), PG_I64(stamp_now())), &rows);
    if (fault)
        return fault;
    read_taken(rows, arena, taken_r);
    return store_take_open(store, ns, arena, taken_r);
}

static enum fault plan_beside(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    if (commit->fence_count != 1 || !commit->fences->take)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_TASK_TAKE_BESIDE]);
    add_take_params(params, commit->fences->take, commit->stop);
    return FAULT_NONE;
}

static void take_beside(struct commit_run *run, struct pg_result *const *results)
{
    read_taken_and_late(*results, run->arena, run->commit->fences->taken);
}

const struct commit_part commit_part_task_takes = {.plan = plan_beside, .take = take_beside};
