/* transaction_effects: what the commit of a try does besides writing documents: stores an answer, creates
 * and ends tasks, matches subscriptions; and how it is validated. */
#include "document/transaction_private.h"

#include "records/records_state.h"
#include "segment/counts/stored.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"
#include "document/transaction.h"

void transaction_keep(struct transaction *transaction, const struct idempotency *idempotency)
{
    transaction->idempotency = idempotency;
}

void transaction_spool(struct transaction *transaction, const struct spool_batch *batch)
{
    transaction->spool = batch;
}

void transaction_require_database(struct transaction *transaction)
{
    transaction->is_as_database = true;
}

/* --- tasks --- */

static struct task *find_for_resource(struct transaction *transaction, const struct task *task)
{
    for (size_t i = 0; task->resource.data && i < transaction->task_count; i++) {
        struct task *other = &transaction->tasks[i];
        if (other->resource.data && bytes_equal(other->resource, task->resource) &&
            bytes_equal(other->operation, task->operation))
            return other;
    }
    return NULL;
}

void transaction_schedule(struct transaction *transaction, const struct task *task)
{
    struct task *waiting = find_for_resource(transaction, task);
    if (waiting) {
        task_join(waiting, task);
        return;
    }
    ARENA_GROW(transaction->arena, transaction->tasks, transaction->task_count, transaction->task_capacity);
    transaction->tasks[transaction->task_count++] = *task;
}

const struct task *transaction_tasks(const struct transaction *transaction, size_t *count_r)
{
    *count_r = transaction->task_count;
    return transaction->tasks;
}

void transaction_cancel_task(struct transaction *transaction, const struct task_cancel *cancel)
{
    ARENA_GROW(transaction->arena, transaction->cancels, transaction->cancel_count,
               transaction->cancel_capacity);
    transaction->cancels[transaction->cancel_count++] = *cancel;
}

size_t transaction_count_cancels(const struct transaction *transaction)
{
    return transaction->cancel_count;
}

void transaction_fence(struct transaction *transaction, struct task_fence *fences, size_t count)
{
    transaction->fences = fences;
    transaction->fence_count = count;
}

const struct task_fence *transaction_fence_of(const struct transaction *transaction)
{
    return transaction->fence_count ? transaction->fences : NULL;
}

void transaction_set_checkpoint(struct transaction *transaction, struct bytes checkpoint)
{
    transaction->checkpoint = checkpoint;
}

struct bytes transaction_checkpoint(const struct transaction *transaction)
{
    return transaction->checkpoint;
}

const struct task *transaction_next_task(const struct transaction *transaction)
{
    return &transaction->next;
}

/* --- bytes --- */

void transaction_count(struct segment *segment, int ns, const struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++) {
        const struct header *base = &commit->documents[i].base->header,
                            *now = &commit->documents[i].rows.header;
        if (commit->documents[i].act != DRAFT_READ)
            stored_add(
                segment, ns, base->class,
                (const int64_t[STORED_KINDS]){header_bytes(now) - header_bytes(base), now->v2 - base->v2});
    }
}

/* --- configurations --- */

void transaction_note_configurations(const struct transaction *transaction, const struct commit *commit)
{
    struct documents *documents = transaction->documents;
    struct records *records = documents->segment->records;
    for (size_t i = 0; records && i < commit->count; i++) {
        const struct header *header = &commit->documents[i].base->header;
        if (commit->documents[i].act != DRAFT_READ && bytes_equal(header->class, BYTES("Namespace")) &&
            transaction->ns == documents_ns(documents, bytes_of(documents->settings->z_database)))
            records_state_move(records, header->id);
    }
}

void transaction_limit_owners(struct transaction *transaction, int64_t most, struct bytes account)
{
    transaction->account_bytes_most = most;
    transaction->account = account;
}

void transaction_limit_tasks(struct transaction *transaction, int64_t of_address, int64_t of_account,
                             int64_t of_namespace)
{
    transaction->task_quotas = (struct task_quotas){of_address, of_account, of_namespace};
}

/* --- subscriptions --- */

void transaction_name_session(struct transaction *transaction, struct bytes session,
                              const struct subscription_caller *caller)
{
    transaction->caller = *caller;
    transaction->session = session;
}

const struct match *transaction_match(const struct transaction *transaction)
{
    return &transaction->match;
}

/* --- refusals --- */

const char *transaction_refused(const struct transaction *transaction,
                                const char *parts_r[TRANSACTION_REFUSED_PARTS + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < TRANSACTION_REFUSED_PARTS && transaction->refused[i].data; i++)
        parts_r[count++] =
            arena_copy(transaction->arena, transaction->refused[i].data, transaction->refused[i].size);
    parts_r[count] = NULL;
    return transaction->expected;
}

/* --- drafts --- */

const struct draft *transaction_next_draft(const struct transaction *transaction, size_t *position)
{
    const struct draft *draft = NULL;
    while (!draft && *position < transaction->count)
        draft = transaction->entries[(*position)++].draft;
    return draft;
}

void transaction_copy(struct transaction *transaction, const struct copy_batch *batch)
{
    transaction->copies = batch;
}
