/* attempt: the tries of a commit. */
#include "operation/attempt.h"

#include "base/clock.h"
#include "base/log.h"
#include "segment/counts/metrics.h"
#include "edge/crypto/crypto.h"
#include "store/store.h"
#include "store/documents/store_commit.h"
#include "store/store_long.h"
#include "operation/access/configuration_check.h"
#include "operation/judge/judge.h"
#include "operation/judge/matches.h"
#include "operation/quota.h"
#include "operation/reply.h"
#include "document/transaction.h"

/* The longest pause before the second and the third try; the pause itself is random. */
static const int64_t pause_ms[ATTEMPT_TRIES] = {0, 10, 60};

static void pause_before(int try)
{
    uint32_t random;
    if (!pause_ms[try])
        return;
    crypto_random(&random, sizeof random);
    clock_sleep_ms(1 + random % pause_ms[try]);
}

enum fault attempt_answer(enum fault fault)
{
    return fault == FAULT_STALE ? FAULT_CONTENTION : fault == FAULT_FENCED ? FAULT_ACLAIM : fault;
}

static struct pulse *attempt_pulse_of(const struct worker_context *worker_context)
{
    return metrics_pulse(worker_context->segment, segment_index(worker_context->segment));
}

uint64_t attempt_count_changes(const struct worker_context *worker_context)
{
    return atomic_load(&attempt_pulse_of(worker_context)->may_have_changed);
}

void attempt_note_change(const struct attempt *attempt)
{
    pulse_begin_change(attempt_pulse_of(attempt->worker_context));
    store_clear_visitor(documents_store(attempt->worker_context->documents));
}

void attempt_undo_change(const struct attempt *attempt)
{
    pulse_undo_change(attempt_pulse_of(attempt->worker_context));
}

void attempt_note_fault(struct attempt *attempt)
{
    if (attempt->reply->phase >= PHASE_AFTERWORK)
        return;
    if (attempt->has_acted)
        reply_enter(attempt->reply, PHASE_AFTERWORK);
    else if (attempt_count_changes(attempt->worker_context) > attempt->changes_before)
        reply_enter(attempt->reply, PHASE_UNKNOWN);
}

/* The names in a refusal of the database become the arguments of the fault. */
static void attempt_explain(const struct attempt *attempt, const struct transaction *transaction,
                            enum fault fault)
{
    struct call *call = attempt->call;
    struct reply *reply = attempt->reply;
    const char *parts[TRANSACTION_REFUSED_PARTS + 1];
    bool is_limit = fault == FAULT_ALIMIT || fault == FAULT_XBUSY || fault == FAULT_NATTACHMENT;
    if (fault != FAULT_AUNIQUE && fault != FAULT_AFIXED && fault != FAULT_ACONTENT && !is_limit)
        return;
    const char *expected = transaction_refused(transaction, parts);
    if (is_limit && !parts[0]) /* it is explained, or not of the commit */
        return;
    (void)reply_fault(call, reply, fault, expected, NULL);
    quota_count_refusal(attempt, parts[0]);
    for (size_t i = 0; parts[i]; i++)
        reply_add_argument(call, reply, parts[i]);
}

static bool is_late(const struct attempt *attempt)
{
    return clock_monotonic_ms() > attempt->call->deadline_ms;
}

/* --- one try --- */

static void clear(struct attempt *attempt)
{
    struct reply *reply = attempt->reply;
    reply_enter(reply, PHASE_WORK);
    reply->body->size = attempt->out;
    reply->fault = FAULT_NONE;
    reply->mime = MIME_JSON;
    reply->cookie = NULL;
    attempt->schema = NULL;
    attempt->grants = NULL;
    attempt->stand_ins = NULL;
    attempt->filtered_bases = NULL;
    attempt->written_count = 0;
    attempt->is_final = false;
    attempt->retry_after_s = 0;
}

static bool may_write(const struct attempt *attempt)
{
    return attempt->fence || (attempt->operation->right != RIGHT_READ && !attempt->operation->only_reads);
}

static enum fault attempt_begin(const struct attempt_commit *commit, bool in_snapshot,
                                struct transaction **transaction_r)
{
    const struct attempt *first = commit->attempts[0];
    enum fault fault = transaction_begin(first->worker_context->documents, first->ns, first->call->arena,
                                         in_snapshot, transaction_r);
    if (fault)
        return fault;
    const struct subscription_caller caller = matches_caller(first->call);
    if (first->call->session.data)
        transaction_name_session(*transaction_r, first->call->session, &caller);
    if (may_write(first))
        transaction_take_turns(*transaction_r);
    return FAULT_NONE;
}

/* The transaction ends the tasks; returns the copies of the fences that it has. */
static struct task_fence *fence(const struct attempt_commit *commit, struct transaction *transaction)
{
    if (!commit->attempts[0]->fence)
        return NULL;
    struct task_fence *fences =
        ARENA_ROOM(commit->attempts[0]->call->arena, struct task_fence, commit->count);
    for (size_t i = 0; i < commit->count; i++)
        fences[i] = *commit->attempts[i]->fence;
    transaction_fence(transaction, fences, commit->count);
    return fences;
}

static void note_lost(const struct attempt_commit *commit, const struct task_fence *fences)
{
    for (size_t i = 0; fences && i < commit->count; i++)
        commit->attempts[i]->fence->is_lost = fences[i].is_lost;
}

static enum fault work(struct attempt_commit *commit, struct attempt *attempt)
{
    attempt->reply->body->size = attempt->out;
    enum fault fault = commit->enter ? commit->enter(commit, attempt) : FAULT_NONE;
    if (!fault && attempt->operation->work)
        fault = attempt->operation->work(attempt);
    if (!fault && is_late(attempt))
        fault = FAULT_XTIME;
    if (!fault)
        fault = FAULT_FIRST(judge_changes(attempt), configuration_check(attempt), quota_check_bytes(attempt));
    if (!fault && may_write(attempt))
        fault = quota_limit_owners(attempt);
    if (!fault && commit->complete)
        fault = commit->complete(commit, attempt);
    return fault;
}

static enum fault validate(struct attempt_commit *commit, struct transaction *transaction)
{
    const struct attempt *first = commit->attempts[0];
    int64_t version;
    for (size_t i = 0; i < commit->count; i++)
        reply_enter(commit->attempts[i]->reply, PHASE_VALIDATION);
    enum fault fault = transaction_validate(transaction, &version);
    if (commit->count == 1)
        attempt_explain(first, transaction, fault);
    for (size_t i = 0; i < commit->count && !fault; i++)
        commit->attempts[i]->version = version;
    return fault;
}

static enum fault try_once(struct attempt_commit *commit, bool in_snapshot)
{
    struct transaction *transaction;
    commit->failed = commit->count;
    for (size_t i = 0; i < commit->count; i++)
        clear(commit->attempts[i]);
    enum fault fault = attempt_begin(commit, in_snapshot, &transaction);
    if (fault)
        return fault;
    struct task_fence *fences = fence(commit, transaction);
    for (size_t i = 0; i < commit->count; i++) {
        commit->attempts[i]->transaction = transaction;
        commit->attempts[i]->is_open = true;
    }
    for (size_t i = 0; i < commit->count && !fault; i++) {
        fault = work(commit, commit->attempts[i]);
        if (fault)
            commit->failed = i;
        else if (fences) {
            fences[i].result = commit->attempts[i]->fence->result;
            fences[i].progress = commit->attempts[i]->fence->progress;
        }
    }
    if (!fault)
        fault = validate(commit, transaction);
    transaction_end(transaction);
    for (size_t i = 0; i < commit->count; i++)
        commit->attempts[i]->is_open = false;
    note_lost(commit, fences);
    return fault;
}

/* --- several --- */

/* May a try that was in conflict be repeated?  One that keeps conflicting is long: it needs a place. */
static enum fault enter_again(const struct attempt *first, enum fault fault)
{
    struct store *store = documents_store(first->worker_context->documents);
    return fault == FAULT_STALE ? store_long_enter_late(store, first->ns) : FAULT_NONE;
}

/* What the tries leave in the arena goes with the request. */
enum fault attempt_run(struct attempt_commit *commit)
{
    enum fault fault = FAULT_NONE;
    for (int try = 0; try < ATTEMPT_TRIES;) {
        pause_before(try);
        enum fault refusal = enter_again(commit->attempts[0], fault);
        if (refusal)
            return refusal;
        /* Validation in memory cannot succeed while others keep writing: the last try reads in one snapshot.
         */
        bool in_snapshot = commit->may_read_snapshot && try == ATTEMPT_TRIES - 1 && fault == FAULT_STALE;
        fault = try_once(commit, in_snapshot);
        enum attempt_next next = commit->settle(commit, &fault);
        if (!fault || next == ATTEMPT_END || !commit->count || is_late(commit->attempts[0]))
            break;
        try += next == ATTEMPT_AGAIN;
        log_debug("try again operation=%s code=%s try=%d", commit->attempts[0]->operation->name,
                  fault_code(fault), try);
    }
    return attempt_answer(fault);
}
