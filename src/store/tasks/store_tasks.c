/* store_tasks: claims, unsuccessful ends, and queries of the queue. */
#include "store/tasks/store_tasks.h"

#include "edge/pg/pg_pipeline.h"
#include "model/task/worker_queues.h"
#include "store/statements.h"
#include "store/store_run.h"
#include "store/store_sealing.h"
#include "store/tasks/store_claimed.h"
#include "store/tasks/store_task.h"

/* --- claims --- */

static struct task_claim *find_claim(struct task_claim *claims, size_t count, struct bytes id)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(claims[i].id, id))
            return &claims[i];
    return NULL;
}

/* A rate allows it at a time; a limit of what runs at once when another task ends. */
static void judge_limit(struct task_claim *claim, int64_t start)
{
    claim->result = start < TASK_PARKED ? CLAIM_WAITING : CLAIM_LIMITED;
    claim->task.start = start < TASK_PARKED ? start : claim->task.start;
}

/* Why it could not be claimed, from the row after the claim. */
static void judge_claim(struct task_claim *claim, const struct pg_result *rows, int row, int64_t latest)
{
    enum { ID, IS_THERE, CLAIM, START, HAS_DOMAIN, QUEUE, IS_PAUSED, FREE, IS_ELSEWHERE };
    claim->task.start = pg_get_i64(rows, row, START);
    if (!pg_get_bool(rows, row, IS_THERE))
        claim->result = CLAIM_GONE;
    else if (worker_queues_is((int)pg_get_i64(rows, row, QUEUE)))
        claim->result = CLAIM_EXTERNAL;
    else if (!pg_is_null(rows, row, CLAIM))
        claim->result = CLAIM_RUNNING;
    else if (claim->task.start > latest)
        claim->result = CLAIM_WAITING;
    else if (pg_get_bool(rows, row, IS_PAUSED))
        claim->result = CLAIM_PAUSED;
    else if (!pg_is_null(rows, row, FREE))
        judge_limit(claim, pg_get_i64(rows, row, FREE));
    else if (pg_get_bool(rows, row, IS_ELSEWHERE))
        claim->result = CLAIM_ELSEWHERE;
    else
        claim->result = pg_get_bool(rows, row, HAS_DOMAIN) ? CLAIM_TURN : CLAIM_BUSY;
}

static void add_claim_params(struct pg_params *params, const struct task_claim *claims, size_t count,
                             int64_t claim, int64_t latest, struct bytes holder, struct bytes elsewhere)
{
    if (count == 1) {
        pg_params_add_text(params, claims->id);
    } else {
        struct bytes *ids = ARENA_ARRAY(params->arena, struct bytes, count);
        for (size_t i = 0; i < count; i++)
            ids[i] = claims[i].id;
        pg_params_add_text_array(params, ids, count);
    }
    PG_PARAMS_ADD(params, PG_I64(claim), PG_I64(latest), PG_TEXT(holder), PG_TEXT(elsewhere));
}

/* 23505: another task of its domain has just begun. */
static enum fault judge_refusal(const struct pg_verdict *verdict, struct task_claim *claims, size_t count)
{
    if (count != 1 || strcmp(verdict->sqlstate, "23505") != 0)
        return verdict->fault == FAULT_STALE ? FAULT_XDATABASE : verdict->fault;
    claims->result = CLAIM_TURN;
    return FAULT_NONE;
}

/* Claims the available tasks; `left_r`: how many could not be claimed and must be checked. */
static enum fault claim_free(struct store *store, int ns, struct arena *arena, struct task_claim *claims,
                             size_t count, const struct pg_params *params, int64_t claim, size_t *left_r)
{
    struct pg *pg;
    struct pg_verdict verdict;
    enum fault fault = store_run_begin(store, ns, arena, &pg);
    if (fault)
        return fault;
    *left_r = 0;
    pg_pipeline_add(pg, &statements[count == 1 ? STATEMENT_TASK_CLAIM : STATEMENT_TASK_CLAIM_MANY], params);
    (void)!store_run_end(store, ns, &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return verdict.outcome == PG_REFUSED ? judge_refusal(&verdict, claims, count)
                                             : FAULT_XAWAY; /* tasks that are claimed will be found lost */
    const struct pg_result *claimed = verdict.results[0];
    for (int row = 0; row < pg_rows(claimed); row++) {
        struct task_claim *place = find_claim(claims, count, pg_get_text(claimed, row, 0));
        place->result = CLAIM_DONE;
        place->task = store_claimed_read(claimed, row, claim);
        place->task.requester = pg_get_i64(claimed, row, STORE_CLAIMED_COLUMNS);
        fault = store_claimed_open(store, ns, arena, &place->task);
        if (fault)
            return fault;
    }
    *left_r = count - (size_t)pg_rows(claimed);
    return FAULT_NONE;
}

/* Finds out why the remaining tasks, busy until then, could not be claimed. */
static enum fault look_at_rest(struct store *store, int ns, struct arena *arena, struct task_claim *claims,
                               size_t count, size_t left, int64_t latest, struct bytes elsewhere)
{
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, left);
    struct pg_result *rows;
    size_t named = 0;
    for (size_t i = 0; i < count; i++)
        if (claims[i].result != CLAIM_DONE)
            ids[named++] = claims[i].id;
    assert(named == left);
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_STATES,
                                           PG_PARAMS(arena, PG_TEXTS(ids, left), PG_TEXT(elsewhere)), &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++)
        judge_claim(find_claim(claims, count, pg_get_text(rows, row, 0)), rows, row, latest);
    return fault;
}

enum fault store_tasks_claim(struct store *store, int ns, struct arena *arena, struct task_claim *claims,
                             size_t count, int64_t claim, struct bytes holder, struct bytes elsewhere)
{
    int64_t latest = stamp_add_ms(stamp_now(), TASK_EARLY_MS);
    size_t left;
    struct pg_params params;
    pg_params_start(&params, arena);
    add_claim_params(&params, claims, count, claim, latest, holder, elsewhere);
    for (size_t i = 0; i < count; i++)
        claims[i].result = CLAIM_BUSY;
    enum fault fault = claim_free(store, ns, arena, claims, count, &params, claim, &left);
    if (fault || !left)
        return fault;
    fault = look_at_rest(store, ns, arena, claims, count, left, latest, elsewhere);
    return left < count ? FAULT_NONE : fault; /* the claimed tasks must run */
}

/* --- external workers --- */

static void add_fence(struct pg_params *params, const struct task_fence *fence)
{
    PG_PARAMS_ADD(params, PG_TEXT(fence->id), PG_I64(fence->claim), PG_I32((int32_t)fence->attempt));
}

enum fault store_tasks_hold(struct store *store, int ns, struct arena *arena, const struct task_fence *fence,
                            struct task_hold *hold_r)
{
    enum { QUEUE, OPERATION, DOMAIN, START, UNTIL, RESOURCE, PERIOD, IS_DONE, QUEUE_DONE, CODE };
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    add_fence(&params, fence);
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_HELD, &params, &row);
    if (fault)
        return fault;
    bool is_held = !pg_is_null(row, 0, QUEUE), is_known = is_held || !pg_is_null(row, 0, QUEUE_DONE);
    *hold_r = (struct task_hold){
        .is_held = is_held,
        .is_done = pg_get_bool(row, 0, IS_DONE),
        .code = pg_get_text(row, 0, CODE),
        .queue = is_known ? (int)pg_get_i64(row, 0, is_held ? QUEUE : QUEUE_DONE) : -1,
        .task = {.id = fence->id,
                 .operation = pg_get_text(row, 0, OPERATION),
                 .domain = pg_get_text(row, 0, DOMAIN),
                 .resource = pg_get_text(row, 0, RESOURCE),
                 .period = pg_get_text(row, 0, PERIOD),
                 .start = pg_get_i64(row, 0, START),
                 .claim = fence->claim,
                 .attempt = fence->attempt,
                 .queue = is_held ? (int)pg_get_i64(row, 0, QUEUE) : 0},
        .until = pg_get_i64(row, 0, UNTIL),
    };
    return FAULT_NONE;
}

enum fault store_tasks_keep(struct store *store, int ns, struct arena *arena, const struct task_fence *fence,
                            int64_t until, struct bytes progress, bool *is_kept_r)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    add_fence(&params, fence);
    PG_PARAMS_ADD(&params, PG_I64(until), PG_I64(stamp_now()));
    /* Its words may be from contents. */
    pg_params_add_text(&params, store_sealing_keys(store, ns)->count ? NO_BYTES : progress);
    enum fault fault = store_run_change_again(store, ns, STATEMENT_TASK_KEEP, &params, &row);
    *is_kept_r = !fault && pg_rows(row) > 0;
    if (!fault && !*is_kept_r)
        store_run_forget_change(store);
    return fault;
}

/* --- for those who have requested a task --- */

enum fault store_tasks_own(struct store *store, int ns, struct arena *arena, struct bytes id,
                           struct bytes owner, struct task_own *own_r)
{
    enum { STATE, OPERATION, ATTEMPT, START, CODE, REPORT, PROGRESS, RESULT };
    struct pg_result *row;
    *own_r = (struct task_own){0};
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_OWN,
                                           PG_PARAMS(arena, PG_TEXT(id), PG_TEXT(owner)), &row);
    if (fault || !pg_rows(row))
        return fault;
    *own_r = (struct task_own){.is_there = true,
                               .state = pg_get_text(row, 0, STATE),
                               .operation = pg_get_text(row, 0, OPERATION),
                               .attempt = pg_get_i64(row, 0, ATTEMPT),
                               .start = pg_get_i64(row, 0, START),
                               .code = pg_get_text(row, 0, CODE),
                               .report = pg_get_text(row, 0, REPORT),
                               .progress = pg_get_text(row, 0, PROGRESS),
                               .result = pg_get_text(row, 0, RESULT)};
    return own_r->result.data
               ? store_sealing_open_text(store, ns, arena, store_task_result_place(arena, id), &own_r->result)
               : FAULT_NONE;
}

enum fault store_tasks_cancel(struct store *store, int ns, struct arena *arena, struct bytes id,
                              struct bytes owner, bool *is_cancelled_r)
{
    struct pg_result *row;
    enum fault fault = store_run_change(store, ns, STATEMENT_TASK_CANCEL,
                                        PG_PARAMS(arena, PG_TEXT(id), PG_TEXT(owner)), &row);
    *is_cancelled_r = !fault && pg_get_bool(row, 0, 0);
    if (!fault && !*is_cancelled_r)
        store_run_forget_change(store);
    return fault;
}

/* --- ends and queries --- */

enum fault store_tasks_put_back(struct store *store, int ns, struct arena *arena,
                                const struct task_fence *fence, const struct task_end *end, int64_t *start_r)
{
    struct pg_params params;
    struct pg_result *row;
    struct pg *pg;
    *start_r = 0;
    enum fault fault = store_use(store, ns, &pg); /* which tells whether the namespace is encrypted */
    if (fault)
        return fault;
    pg_params_start(&params, arena);
    store_task_add_put_back(&params, fence, end, store_sealing_keys(store, ns)->count, stamp_now());
    fault = store_run_change(store, ns, STATEMENT_TASK_BACK, &params, &row);
    bool is_again = fault == FAULT_XUNKNOWN &&
                    store_run_change(store, ns, STATEMENT_TASK_BACK, &params, &row) == FAULT_NONE;
    *start_r = fault && !is_again ? 0 : pg_get_i64(row, 0, 0);
    if (!fault && !*start_r)
        store_run_forget_change(store);
    return *start_r ? FAULT_NONE
                    : fault; /* unknown: which of the two has ended the attempt, or somebody else */
}

enum fault store_tasks_state(struct store *store, int ns, struct arena *arena, const struct task_fence *fence,
                             struct task_state *state_r)
{
    enum { STEP, IS_DONE };
    struct pg_result *row;
    enum fault fault = store_run_statement(
        store, ns, STATEMENT_TASK_FIND,
        PG_PARAMS(arena, PG_TEXT(fence->id), PG_I64(fence->claim), PG_I32((int32_t)fence->attempt)), &row);
    if (!fault)
        *state_r = (struct task_state){.is_held = !pg_is_null(row, 0, STEP),
                                       .is_done = pg_get_bool(row, 0, IS_DONE),
                                       .step = pg_get_i64(row, 0, STEP)};
    return fault;
}

enum fault store_tasks_next(struct store *store, int ns, struct arena *arena, struct bytes domain,
                            struct task *task_r)
{
    struct pg_result *row;
    *task_r = (struct task){0};
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_NEXT,
                                           PG_PARAMS(arena, PG_TEXT(domain), PG_I64(stamp_now())), &row);
    if (!fault && pg_rows(row))
        *task_r = store_task_read_due(row, 0);
    return fault;
}

enum fault store_tasks_due(struct store *store, int ns, struct arena *arena, int64_t limit, int64_t before,
                           const struct backlog_scan *scan, struct task **tasks_r, size_t *count_r)
{
    struct pg_result *rows;
    enum fault fault =
        store_run_statement(store, ns, STATEMENT_TASK_DUE,
                            PG_PARAMS(arena, PG_I32((int32_t)limit), PG_I64(before), PG_I64(scan->since),
                                      PG_I64(scan->mark), PG_I64(stamp_now())),
                            &rows);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(rows);
    *tasks_r = ARENA_ARRAY(arena, struct task, *count_r);
    for (size_t i = 0; i < *count_r; i++)
        (*tasks_r)[i] = store_task_read_due(rows, (int)i);
    return FAULT_NONE;
}

enum fault store_tasks_oldest(struct store *store, int ns, struct arena *arena,
                              const struct backlog_scan *scan, struct backlog_bound *bound_r)
{
    enum { OLDEST, MARK, RUNNING, BOUND, TRANSACTION };
    struct pg_result *row;
    enum fault fault = store_run_statement(store, ns, STATEMENT_TASK_OLDEST,
                                           PG_PARAMS(arena, PG_I64(scan->since), PG_I64(scan->mark)), &row);
    if (!fault)
        *bound_r = (struct backlog_bound){
            .oldest = pg_is_null(row, 0, OLDEST) ? STAMP_MAX : pg_get_i64(row, 0, OLDEST),
            .mark = pg_get_i64(row, 0, MARK),
            .running = pg_get_i64(row, 0, RUNNING),
            .start = pg_get_i64(row, 0, BOUND),
            .transaction = pg_get_i64(row, 0, TRANSACTION),
        };
    return fault;
}

static enum fault read_held(struct store *store, int ns, struct arena *arena, enum statement statement,
                            const struct pg_params *params, struct held_task **tasks_r, size_t *count_r)
{
    enum { ID, OPERATION, QUEUE, CLAIM, ATTEMPT, HOLDER, START, UNTIL };
    struct pg_result *rows;
    enum fault fault = store_run_statement(store, ns, statement, params, &rows);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(rows);
    *tasks_r = ARENA_ARRAY(arena, struct held_task, *count_r);
    for (int row = 0; row < pg_rows(rows); row++)
        (*tasks_r)[row] = (struct held_task){
            .task = {.id = pg_get_text(rows, row, ID),
                     .operation = pg_get_text(rows, row, OPERATION),
                     .queue = (int)pg_get_i64(rows, row, QUEUE),
                     .claim = pg_get_i64(rows, row, CLAIM),
                     .attempt = pg_get_i64(rows, row, ATTEMPT),
                     .start = pg_get_i64(rows, row, START)},
            .holder = pg_get_text(rows, row, HOLDER),
            .until = pg_get_i64(rows, row, UNTIL),
        };
    return FAULT_NONE;
}

enum fault store_tasks_running(struct store *store, int ns, struct arena *arena, struct held_task **tasks_r,
                               size_t *count_r)
{
    return read_held(store, ns, arena, STATEMENT_TASK_RUNNING, PG_NO_PARAMS(arena), tasks_r, count_r);
}

enum fault store_tasks_overdue(struct store *store, int ns, struct arena *arena, int queue, int64_t most,
                               struct held_task **tasks_r, size_t *count_r)
{
    return read_held(store, ns, arena, STATEMENT_TASK_OVERDUE,
                     PG_PARAMS(arena, PG_I32(queue), PG_I64(stamp_now()), PG_I32((int32_t)most)), tasks_r,
                     count_r);
}

/* A batch of what was over before; zero of them with a fault. */
static enum fault run_batch(struct store *store, int ns, struct arena *arena, enum statement statement,
                            int64_t before, int64_t batch, int64_t *count_r)
{
    struct pg_result *row;
    enum fault fault = store_run_statement(store, ns, statement,
                                           PG_PARAMS(arena, PG_I64(before), PG_I32((int32_t)batch)), &row);
    *count_r = fault ? 0 : pg_get_i64(row, 0, 0);
    return fault;
}

enum fault store_tasks_purge_history(struct store *store, int ns, struct arena *arena, int64_t before,
                                     int64_t batch, int64_t *count_r)
{
    return run_batch(store, ns, arena, STATEMENT_TASK_PURGE, before, batch, count_r);
}

enum fault store_tasks_administer(struct store *store, int ns, enum statement statement,
                                  const struct pg_params *params, struct pg_result **rows_r)
{
    assert(statement >= STATEMENT_TASK_LIST && statement <= STATEMENT_TASK_BACKLOG);
    return store_run_statement(store, ns, statement, params, rows_r);
}

enum fault store_tasks_count(struct store *store, int ns, enum statement statement,
                             const struct pg_params *params, struct pg_result **rows_r)
{
    assert(statement == STATEMENT_TASK_DO || statement == STATEMENT_TASK_REDRIVE);
    return store_run_dry(store, ns, statement, params, rows_r);
}

enum fault store_tasks_change(struct store *store, int ns, enum statement statement,
                              const struct pg_params *params, struct pg_result **rows_r)
{
    assert(statement >= STATEMENT_TASK_LIST && statement <= STATEMENT_TASK_BACKLOG);
    return store_run_change(store, ns, statement, params, rows_r);
}

/* Tasks with unreported failures, tasks parked too long ago, tasks requested by clients; task
 * declarations of operations. */

enum fault store_tasks_unreported(struct store *store, int ns, struct arena *arena, int64_t failures,
                                  int64_t limit, struct failed_task **tasks_r, size_t *count_r)
{
    enum { ID, OPERATION, INFO, RETRY, START, CODE, REPORT };
    struct pg_result *rows;
    enum fault fault =
        store_run_statement(store, ns, STATEMENT_TASK_UNREPORTED,
                            PG_PARAMS(arena, PG_I32((int32_t)failures), PG_I32((int32_t)limit)), &rows);
    *count_r = fault ? 0 : (size_t)pg_rows(rows);
    *tasks_r = ARENA_ARRAY(arena, struct failed_task, *count_r);
    for (int row = 0; row < (int)*count_r; row++)
        (*tasks_r)[row] = (struct failed_task){
            .id = pg_get_text(rows, row, ID),
            .operation = pg_get_text(rows, row, OPERATION),
            .info = pg_get_text(rows, row, INFO),
            .code = pg_get_text(rows, row, CODE),
            .report = pg_get_text(rows, row, REPORT),
            .failures = pg_get_i64(rows, row, RETRY),
            .start = pg_get_i64(rows, row, START),
        };
    return fault;
}

enum fault store_tasks_reported(struct store *store, int ns, struct arena *arena, struct bytes id,
                                int64_t failures)
{
    struct pg_result *rows;
    return store_run_change_again(store, ns, STATEMENT_TASK_REPORTED,
                                  PG_PARAMS(arena, PG_TEXT(id), PG_I32((int32_t)failures)), &rows);
}

enum fault store_tasks_expire(struct store *store, int ns, struct arena *arena, int64_t before, int64_t batch,
                              int64_t *count_r)
{
    return run_batch(store, ns, arena, STATEMENT_TASK_EXPIRE, before, batch, count_r);
}

enum fault store_tasks_declare(struct store *store, int ns, struct arena *arena,
                               const struct task_declaration *operations, size_t count, int64_t param_bytes)
{
    struct pg_result *rows;
    struct bytes *names = ARENA_ARRAY(arena, struct bytes, count);
    int32_t *queues = ARENA_ARRAY(arena, int32_t, count), *batches = ARENA_ARRAY(arena, int32_t, count);
    int32_t *kept = ARENA_ARRAY(arena, int32_t, count);
    for (size_t i = 0; i < count; i++) {
        names[i] = operations[i].operation;
        queues[i] = operations[i].queue;
        batches[i] = operations[i].batch;
        kept[i] = operations[i].kept_bytes;
    }
    return store_run_statement(store, ns, STATEMENT_TASK_OPERATIONS,
                               PG_PARAMS(arena, PG_TEXTS(names, count), PG_I32S(queues, count),
                                         PG_I32S(batches, count), PG_I32((int32_t)param_bytes),
                                         PG_I32S(kept, count)),
                               &rows);
}
