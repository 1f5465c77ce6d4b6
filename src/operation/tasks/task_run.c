/* task_run: attempts, alone or several in one commit. */
#include "operation/tasks/task_run.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/logging/spans.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"
#include "segment/counts/task_counts.h"
#include "model/document/thumbnails.h"
#include "store/store_long.h"
#include "store/tasks/store_tasks.h"
#include "operation/access/access.h"
#include "operation/quota.h"
#include "operation/registry.h"
#include "operation/tasks/task_attempt.h"
#include "operation/tasks/task_caller.h"
#include "operation/tasks/task_result.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/tasks/task_owner.h"
#include "operation/reply.h"
#include "document/transaction.h"

enum {
    TOGETHER_MS = 1000, /* a request that has run this long begins no further task with a commit of its own */
};
/* Memory that a request may hold before it begins another cycle or task: an eighth of a worker's limit. */
static const size_t held_most = (size_t)128 << 20;

/* --- one try --- */

static bool is_late(const struct task_attempt *work)
{
    return clock_monotonic_ms() > work->call.deadline_ms;
}

/* Is the time of the request over, not only that of an operation? */
static bool is_spent(const struct task_run *run)
{
    return clock_monotonic_ms() > run->call->deadline_ms;
}

/* The session was lost in the middle of a commit: this worker must not begin anything more. */
static bool is_cut_off(const struct task_run *run)
{
    return documents_must_exit(run->worker_context->documents);
}

/* Before each try: the present advances. */
static void begin_try(const struct task_run *run, const struct task_attempt *work)
{
    documents_begin_request(run->worker_context->documents, work->call.deadline_ms);
}

static void wake_managers(const struct task_run *run, const struct transaction *transaction)
{
    task_wakeup_commit(run->worker_context, run->ns, run->call->ns, transaction);
}

/* A task of a client counts among its long requests, and has the time of a task. */
static void begin_share(const struct task_run *run, const struct task *task)
{
    const struct store_requester requester = {.client = (uint64_t)task->requester,
                                              .account = task->account,
                                              .since_ms = clock_monotonic_ms(),
                                              .has_time = true};
    if (task->is_of_client)
        store_set_requester(task_attempt_store(run), &requester);
}

static void end_share(const struct task_run *run)
{
    store_clear_requester(task_attempt_store(run));
}

static bool is_without_place(const struct task_run *run, enum fault fault)
{
    int64_t value;
    return fault == FAULT_XBUSY && store_reading_refused(task_attempt_store(run), fault, &value);
}

static enum fault task_run_enter(struct attempt_commit *commit UNUSED, struct attempt *attempt)
{
    struct task_attempt *work = task_attempt_of(attempt);
    log_set_trace(work->task->trace.data);
    attempt->fence->progress = NO_BYTES;
    enum fault fault = task_caller_enter(attempt);
    if (fault)
        return fault;
    fault = quota_take_commit(attempt->worker_context->segment, attempt->call, attempt->reply, attempt->ns);
    work->wait_s = fault ? attempt->reply->retry_after_s : 0;
    return fault;
}

/* --- alone --- */

static enum cycle finish_cycle(struct task_run *run, struct task_attempt *work)
{
    const struct transaction *transaction = work->attempt.transaction;
    struct bytes checkpoint = transaction_checkpoint(transaction);
    wake_managers(run, transaction);
    if (!checkpoint.data) {
        task_attempt_set_next(run, work, transaction_next_task(transaction));
        return CYCLE_DONE;
    }
    work->task->checkpoint = checkpoint;
    work->task->step++;
    return CYCLE_GOES_ON;
}

/* The commit may or may not have happened, and its session is lost: the outcome is read from the database.
 * FAULT_XAWAY: nothing has happened. */
static enum cycle settle_unknown(struct task_run *run, struct task_attempt *work, enum fault *fault)
{
    struct task_state state;
    if (is_cut_off(run) ||
        store_tasks_state(task_attempt_store(run), run->ns, run->call->arena, &work->fence, &state)) {
        task_attempt_end_unknown(run, work);
        return CYCLE_OVER;
    }
    *fault = FAULT_NONE;
    if (state.is_done || (state.is_held && state.step > work->task->step))
        return finish_cycle(run, work);
    if (state.is_held) {
        attempt_undo_change(&work->attempt);
        *fault = FAULT_XAWAY;
        return CYCLE_FAILED;
    }
    task_attempt_end(work, "late");
    return CYCLE_OVER;
}

static enum attempt_next settle_alone(struct attempt_commit *commit, enum fault *fault)
{
    struct task_run *run = commit->context;
    struct task_attempt *work = task_attempt_of(commit->attempts[0]);
    bool again = false;
    run->scratch->size = 0;
    if (!*fault) {
        work->cycle = finish_cycle(run, work);
    } else if (*fault == FAULT_FENCED) {
        task_attempt_end(work, "late");
        work->cycle = CYCLE_OVER;
    } else if (*fault == FAULT_XUNKNOWN) {
        work->cycle = settle_unknown(run, work, fault);
        again = work->cycle == CYCLE_FAILED;
    } else {
        again = reply_is_retried(&work->outcome->reply, *fault);
    }
    if (again)
        begin_try(run, work);
    return again ? ATTEMPT_AGAIN : ATTEMPT_END;
}

/* One cycle, tried as often as any operation. */
static enum cycle run_cycle(struct task_run *run, struct task_attempt *work)
{
    struct attempt *attempt = &work->attempt;
    struct attempt_commit commit = {.attempts = &attempt,
                                    .count = 1,
                                    .context = run,
                                    .enter = task_run_enter,
                                    .complete = task_result_keep,
                                    .settle = settle_alone};
    work->cycle = CYCLE_FAILED;
    begin_try(run, work);
    enum fault fault = attempt_run(&commit);
    if (work->cycle != CYCLE_FAILED)
        return work->cycle;
    if (fault == FAULT_XTIME && work->cycles)
        task_attempt_interrupt(run, work); /* earlier cycles have used up its time */
    else if (work->wait_s || is_without_place(run, fault))
        task_attempt_wait(run, work);
    else
        task_attempt_fail(run, work, fault);
    return CYCLE_OVER;
}

/* Memory of a request is freed only at its end. */
static bool task_run_has_room(const struct task_run *run)
{
    size_t memory = (size_t)run->worker_context->settings->memory_mb << 20;
    return arena_used(run->call->arena) <= (memory ? memory / 8 : held_most);
}

/* Begins a cycle only if one as long as the longest so far would have twice the time that it needs. */
static bool has_time(const struct task_attempt *work)
{
    int64_t left_ms = work->call.deadline_ms - clock_monotonic_ms();
    return left_ms >= 0 && (!work->cycles || left_ms >= 2 * work->longest_ms);
}

/* The administrator may have stopped the namespace since the request began. */
static bool task_run_is_served(const struct task_run *run)
{
    return access_runs_tasks(run->worker_context, run->call);
}

static void run_alone(struct task_run *run, struct task_attempt *work)
{
    task_owner_work(run->worker_context->segment, work->task->id);
    log_set_trace(work->task->trace.data);
    spans_begin_task(work->task->operation, work->task->trace);
    int64_t begin_us = clock_monotonic_us();
    begin_share(run, work->task);
    while (!work->is_over) {
        if (!has_time(work) || (work->cycles && (!task_run_has_room(run) || !task_run_is_served(run)))) {
            task_attempt_interrupt(run, work);
            break;
        }
        int64_t begin_ms = clock_monotonic_ms();
        if (run_cycle(run, work) == CYCLE_DONE)
            task_attempt_end(work, "done");
        int64_t lasted_ms = clock_monotonic_ms() - begin_ms;
        if (lasted_ms > work->longest_ms)
            work->longest_ms = lasted_ms;
        work->cycles++;
    }
    end_share(run);
    spans_end_task(!work->outcome->result || strcmp(work->outcome->result, "failed") == 0);
    work->spent_us += clock_monotonic_us() - begin_us;
    log_set_trace(NULL);
}

/* --- several in one commit --- */

static void take_out(struct attempt_commit *commit, size_t place)
{
    struct attempt **attempts = commit->attempts;
    memmove(attempts + place, attempts + place + 1, (commit->count - place - 1) * sizeof *attempts);
    commit->count--;
}

/* Removes those that must not be in the commit.  None left: all are to run alone. */
static void part_after(struct attempt_commit *commit, enum fault fault)
{
    if (commit->failed < commit->count) {
        take_out(commit, commit->failed);
        return;
    }
    if (fault != FAULT_FENCED)
        commit->count = 0;
    for (size_t i = commit->count; i-- > 0;)
        if (task_attempt_of(commit->attempts[i])->fence.is_lost) {
            task_attempt_end(task_attempt_of(commit->attempts[i]), "late");
            take_out(commit, i);
        }
}

/* They have used up the time of the request: the one at work has failed, or all of them when it was the
 * commit.  Otherwise the same tasks would be grouped again. */
static void fail_late(const struct task_run *run, const struct attempt_commit *commit)
{
    bool is_one = commit->failed < commit->count;
    for (size_t i = is_one ? commit->failed : 0; i < (is_one ? commit->failed + 1 : commit->count); i++)
        task_attempt_fail(run, task_attempt_of(commit->attempts[i]), FAULT_XTIME);
}

/* One that stores a checkpoint gets a commit of its own. */
static enum fault complete_together(struct attempt_commit *commit, struct attempt *attempt)
{
    (void)task_result_keep(commit, attempt);
    log_set_trace(NULL); /* the lines of the commit are of all */
    return commit->count > 1 && transaction_checkpoint(attempt->transaction).data ? FAULT_CONTENTION
                                                                                  : FAULT_NONE;
}

static enum attempt_next settle_together(struct attempt_commit *commit, enum fault *fault)
{
    struct task_run *run = commit->context;
    run->scratch->size = 0;
    if (!*fault)
        wake_managers(run, commit->attempts[0]->transaction);
    for (size_t i = 0; i < commit->count && !*fault; i++)
        task_attempt_end(task_attempt_of(commit->attempts[i]), "done");
    for (size_t i = 0; i < commit->count && *fault == FAULT_XUNKNOWN && is_cut_off(run); i++)
        task_attempt_end_unknown(run, task_attempt_of(commit->attempts[i]));
    if (!*fault || is_cut_off(run))
        return ATTEMPT_END;
    bool is_conflict = *fault == FAULT_STALE;
    if (*fault == FAULT_XTIME && is_spent(run))
        fail_late(run, commit);
    if (!is_conflict)
        part_after(commit, *fault);
    if (commit->count < 2)
        return ATTEMPT_END;
    begin_try(run, task_attempt_of(commit->attempts[0]));
    return is_conflict ? ATTEMPT_AGAIN : ATTEMPT_CHANGED;
}

/* Tries them together, without those that cannot take part; those not over afterwards are to run alone. */
static void run_together(struct task_run *run, struct attempt **attempts, size_t count)
{
    struct attempt_commit commit = {.attempts = attempts,
                                    .count = count,
                                    .context = run,
                                    .enter = task_run_enter,
                                    .complete = complete_together,
                                    .settle = settle_together};
    task_owner_work(run->worker_context->segment, NO_BYTES);
    if (count < 2 || is_late(task_attempt_of(attempts[0])) || is_cut_off(run))
        return;
    begin_try(run, task_attempt_of(attempts[0]));
    begin_share(run, task_attempt_of(attempts[0])->task);
    spans_begin_task(task_attempt_of(attempts[0])->task->operation,
                     task_attempt_of(attempts[0])->task->trace);
    enum fault fault = attempt_run(&commit);
    spans_end_task(fault != FAULT_NONE);
    end_share(run);
    log_set_trace(NULL);
}

/* --- a request --- */

/* Parses `param`, which a task that was altered does not have; FAULT_NONE when the task can be run. */
static enum fault read_param(struct task_run *run, struct task_attempt *work)
{
    const struct settings *settings = run->worker_context->settings;
    const struct json_limits limits = {
        .depth = (int)settings->limit_depth, .tree_depth = CALL_PARAM_TREE, .nodes = CALL_PARAM_NODES};
    struct json_problem problem = {0};
    struct json *param;
    if (!work->task->param.data) {
        reply_fault(&work->call, &work->outcome->reply, FAULT_BCONTENT, NULL, "param", NULL);
        return FAULT_BCONTENT;
    }
    enum fault fault = json_read(run->call->arena, work->task->param, &limits, &param, &problem);
    if (!fault && param->kind != JSON_OBJECT)
        fault = FAULT_AARG;
    work->call.param = param;
    if (fault)
        reply_fault(&work->call, &work->outcome->reply, fault, problem.what, "param", NULL);
    return fault;
}

/* An attempt at a claimed task; over at once when it cannot be run. */
static void task_run_prepare(struct task_run *run, struct task_attempt *work, struct task *task,
                             struct task_outcome *outcome)
{
    *work =
        (struct task_attempt){.task = task, .outcome = outcome, .operation = registry_find(task->operation)};
    work->fence = (struct task_fence){.id = task->id,
                                      .claim = task->claim,
                                      .attempt = task->attempt,
                                      .domain = task->domain,
                                      .period = task->period,
                                      .start = task->start};
    work->call = (struct call){
        .arena = run->call->arena,
        .route = CALL_OPERATION,
        .ns = run->call->ns,
        .database = run->call->database,
        .operation = task->operation,
        .request_id = run->call->request_id,
        .trace = task->trace,
        .deadline_ms = run->call->deadline_ms,
        .task = task,
        .workers = run->call->workers,
        .level = run->call->level,
    };
    backlog_begin_task(backlog_of(run->worker_context->segment, run->ns), task->queue, task->start,
                       task->created, clock_monotonic_ms());
    outcome->reply = (struct reply){.body = run->scratch, .phase = PHASE_BEFORE};
    work->attempt = (struct attempt){.operation = work->operation,
                                     .worker_context = run->worker_context,
                                     .call = &work->call,
                                     .reply = &outcome->reply,
                                     .ns = run->ns,
                                     .changes_before = attempt_count_changes(run->worker_context),
                                     .fence = &work->fence};
    if (!work->operation) {
        reply_fault(&work->call, &outcome->reply, FAULT_NOPERATION, NULL,
                    arena_copy(run->call->arena, task->operation.data, task->operation.size), NULL);
        task_attempt_fail(run, work, FAULT_NOPERATION);
        return;
    }
    enum fault fault = read_param(run, work);
    if (fault)
        task_attempt_fail(run, work, fault);
}

/* The limit is from the start of its work, which may come after others of the request, or after a try
 * together. */
static void task_run_start(const struct task_run *run, struct task_attempt *work)
{
    int64_t limit_ms = work->operation->task.limit_s * 1000, now_ms = clock_monotonic_ms();
    struct segment *segment = run->worker_context->segment;
    metrics_note_work(metrics_pulse(segment, segment_index(segment)), work->call.ns, work->call.operation);
    work->call.deadline_ms = run->call->deadline_ms;
    if (limit_ms && now_ms + limit_ms < work->call.deadline_ms)
        work->call.deadline_ms = now_ms + limit_ms;
}

/* May it share a commit? */
static bool is_shared(const struct task_attempt *work)
{
    return !work->is_over && !work->task->period.data && work->operation->task.batch > 1;
}

/* Groups the tasks of operations that share commits, by operation and caller, up to the limit of each. */
static void run_batches(struct task_run *run, struct task_attempt *works, size_t count)
{
    struct attempt **together = ARENA_ARRAY(run->call->arena, struct attempt *, count);
    bool *is_seen = ARENA_ARRAY(run->call->arena, bool, count);
    for (size_t i = 0; i < count; i++) {
        const struct operation *operation = works[i].operation;
        size_t most = is_shared(&works[i]) ? (size_t)operation->task.batch : 0, size = 0;
        for (size_t k = i; k < count && size < most; k++)
            if (!is_seen[k] && is_shared(&works[k]) && works[k].operation == operation &&
                task_caller_is_same(works[i].task, works[k].task)) {
                is_seen[k] = true;
                together[size++] = &works[k].attempt;
            }
        struct attempt **all = ARENA_ARRAY(run->call->arena, struct attempt *, size);
        memcpy(all, together, size * sizeof(struct attempt *));
        for (size_t k = 0; k < size; k++)
            task_run_start(run, task_attempt_of(together[k]));
        int64_t begin_us = clock_monotonic_us();
        run_together(run, together, size);
        for (size_t k = 0; k < size; k++)
            task_attempt_of(all[k])->spent_us += (clock_monotonic_us() - begin_us) / (int64_t)size;
    }
}

/* Runs the others one after the other.  Tasks behind slow ones, or behind those that take much memory, go
 * back: elsewhere they need not wait. */
static void run_rest(struct task_run *run, struct task_attempt *works, size_t count, int64_t begin_ms)
{
    for (size_t i = 0; i < count; i++) {
        struct task_attempt *work = &works[i];
        if (work->is_over)
            continue;
        if (is_cut_off(run)) {
            task_attempt_end(work, "busy"); /* not begun, but still claimed: a scan brings it back */
            continue;
        }
        bool is_behind = clock_monotonic_ms() - begin_ms > TOGETHER_MS || !task_run_has_room(run);
        if (i && ((!is_shared(work) && is_behind) || !task_run_is_served(run))) {
            task_attempt_interrupt(run, work);
        } else {
            task_run_start(run, work);
            run_alone(run, work);
        }
    }
}

static void report_unclaimed(const struct task_claim *claim, struct task_outcome *outcome)
{
    outcome->result = task_result_word(claim->result);
    if (claim->result == CLAIM_WAITING)
        outcome->start = claim->task.start;
    if (claim->result == CLAIM_ELSEWHERE)
        outcome->start = stamp_add_ms(stamp_now(), TASK_WAIT_MS);
}

/* The operation that waits for the decoder of images: a process of its own does, and no worker. */
static struct bytes elsewhere(const struct task_run *run)
{
    return run->worker_context->decodes ? BYTES("") : BYTES(THUMBNAILS_OPERATION);
}

/* Nothing was claimed, and a task waits for the decoder: that process serves the whole request, unless it is
 * at work for this namespace, which then waits its turn here and not in front of the others. */
static bool is_for_decoder(const struct task_run *run, const struct task_claim *claims, size_t count)
{
    struct pulse_waiting waiting;
    bool is_any = false;
    for (size_t i = 0; i < count; i++) {
        if (claims[i].result == CLAIM_DONE)
            return false;
        is_any |= claims[i].result == CLAIM_ELSEWHERE;
    }
    if (!is_any)
        return false;
    metrics_waiting(run->worker_context->segment, PULSE_WAITS_FOR_DECODER, run->ns, 0, &waiting);
    return !waiting.of_ns;
}

/* Of operations that there are: the names are few, and known. */
static void count_operations(struct segment *segment, const struct task_attempt *works, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (works[i].operation && works[i].outcome->result)
            task_counts_add(segment, works[i].task->operation, strcmp(works[i].outcome->result, "done") == 0,
                            strcmp(works[i].outcome->result, "failed") == 0, works[i].spent_us);
}

static void count_ends(struct segment *segment, const struct task_outcome *outcomes, size_t count)
{
    struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    for (size_t i = 0; i < count; i++) {
        pulse_count(&pulse->tasks_done, strcmp(outcomes[i].result, "done") == 0);
        pulse_count(&pulse->tasks_failed, strcmp(outcomes[i].result, "failed") == 0);
    }
}

enum fault task_run(struct worker_context *worker_context, struct call *call, struct reply *reply, int ns,
                    struct task_outcome *outcomes, size_t count)
{
    struct task_run run = {.worker_context = worker_context, .call = call, .ns = ns, .scratch = reply->body};
    struct task_claim *claims = ARENA_ARRAY(call->arena, struct task_claim, count);
    struct task_attempt *works = ARENA_ARRAY(call->arena, struct task_attempt, count);
    int64_t begin_ms = clock_monotonic_ms();
    size_t claimed = 0;
    for (size_t i = 0; i < count; i++)
        claims[i].id = outcomes[i].id;
    int64_t stamp = task_claim_stamp();
    task_owner_begin(worker_context->segment, stamp);
    crash_at(CRASH_TASK_SHOWN);
    enum fault fault =
        store_tasks_claim(task_attempt_store(&run), ns, call->arena, claims, count, stamp,
                          task_owner_name(worker_context->segment, call->arena), elsewhere(&run));
    crash_at(CRASH_TASK_CLAIMED);
    if (!fault && is_for_decoder(&run, claims, count)) {
        task_owner_end(worker_context->segment);
        reply->is_for_decoder = true;
        return FAULT_ELSEWHERE;
    }
    for (size_t i = 0; i < count && !fault; i++) {
        if (claims[i].result == CLAIM_DONE)
            task_run_prepare(&run, &works[claimed++], &claims[i].task, &outcomes[i]);
        else
            report_unclaimed(&claims[i], &outcomes[i]);
    }
    if (!fault && claimed > 1)
        run_batches(&run, works, claimed);
    run_rest(&run, works, claimed, begin_ms);
    task_owner_end(worker_context->segment);
    task_wakeup_limited(worker_context, ns, call->ns, claims, count);
    if (!fault)
        count_ends(worker_context->segment, outcomes, count);
    count_operations(worker_context->segment, works, claimed);
    return fault;
}
