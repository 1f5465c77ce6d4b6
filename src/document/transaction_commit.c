/* transaction_commit: validate() and commit() of freshness.md: how a try ends. */
#include "document/transaction_private.h"

#include <string.h>

#include "base/crash.h"
#include "base/log.h"
#include "model/document/stamp.h"
#include "segment/lineage.h"
#include "segment/counts/metrics.h"
#include "segment/slots.h"
#include "segment/counts/waits.h"
#include "segment/writer_queue.h"
#include "store/documents/store_schema.h"

/* --- commit slots --- */

/* The slots of what a commit writes: of its documents and of their classes (freshness.md). */

struct commit_slots {
    const struct segment *segment;
    int ns;
    uint32_t *list;  /* no duplicates */
    uint64_t *own;   /* parallel to it: the stamps before the commit */
    uint64_t *moved; /* and at their move */
    size_t count;
    struct bytes last_class; /* whose slot was added last; NO_BYTES: none */
};

/* For so many documents at most. */
static struct commit_slots commit_slots_open(const struct segment *segment, int ns, struct arena *arena,
                                             size_t documents)
{
    const size_t most = 2 * documents;
    return (struct commit_slots){.segment = segment,
                                 .ns = ns,
                                 .list = ARENA_ARRAY(arena, uint32_t, most),
                                 .own = ARENA_ARRAY(arena, uint64_t, most),
                                 .moved = ARENA_ARRAY(arena, uint64_t, most)};
}

/* Where the slot, which was added, is in the list. */
static size_t commit_slots_find(const struct commit_slots *slots, uint32_t slot)
{
    size_t place = 0;
    while (place < slots->count && slots->list[place] != slot)
        place++;
    return place;
}

static void add_commit_slots(struct commit_slots *slots, uint32_t slot)
{
    if (commit_slots_find(slots, slot) == slots->count)
        slots->list[slots->count++] = slot;
}

/* Adds the slot of a document of the class, and that of the class.  `class` must stay until the next call.
 * Documents of a class are often neighbours. */
static void commit_slots_add(struct commit_slots *slots, struct bytes class, uint32_t slot)
{
    add_commit_slots(slots, slot);
    if (!bytes_equal(slots->last_class, class))
        add_commit_slots(slots, slots_of_class(slots->segment, slots->ns, class));
    slots->last_class = class;
}

/* --- transaction commit --- */

/* How long a worker waits for the old backend to end after an unknown outcome. */
enum { RECONNECT_MS = 5000 };

/* --- validation of a read-only operation --- */

/* The stamps do not cover other hosts' commits (hosts = many), and cover those of other programs a moment
 * later, so the versions are verified in the database. */
static enum fault verify_in_database(struct transaction *transaction)
{
    struct documents *documents = transaction->documents;
    struct commit commit = {
        .documents = ARENA_ARRAY(transaction->arena, struct commit_document, transaction->fetched)};
    struct transaction_entry **entries =
        ARENA_ARRAY(transaction->arena, struct transaction_entry *, transaction->fetched);
    for (size_t i = 0; i < transaction->count; i++) {
        if (!transaction->entries[i].draft)
            continue;
        entries[commit.count] = &transaction->entries[i];
        commit.documents[commit.count++] =
            (struct commit_document){.base = transaction->entries[i].found.document, .act = DRAFT_READ};
    }
    enum fault fault = store_commit_verify(documents->store, transaction->ns, transaction->arena, &commit);
    for (size_t i = 0; fault == FAULT_STALE && i < commit.count; i++)
        if (commit.documents[i].moved)
            documents_distrust(documents, transaction->ns, &entries[i]->found);
    return fault;
}

/* validate() of freshness.md: none moved, none marked: everything was true at the same instant. */
static enum fault verify_in_memory(struct transaction *transaction)
{
    /* A single document was true at the instant of its observation or load: there is nothing to compare it
     * with. */
    if (transaction->fetched < 2)
        return FAULT_NONE;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft)
            continue;
        struct observation observation = slots_see(transaction->documents->segment, entry->found.slot);
        if (observation.busy || observation.stamp != entry->found.tag)
            return FAULT_STALE;
    }
    return FAULT_NONE;
}

/* --- commit --- */

struct transaction_writing {
    struct commit commit;
    struct idempotency idempotency;     /* its answer */
    int64_t written;                    /* version of the commit, 0 when it writes no document */
    struct transaction_entry **entries; /* parallel to commit.documents */
    struct commit_slots slots;
};

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* version = max(now, 1 + the highest seen, zombies and floor included): commit.md section 6. */
static int64_t choose_version(const struct transaction *transaction, int64_t now)
{
    int64_t version = now;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft)
            continue;
        const struct header *header = &entry->found.document->header;
        version = max_i64(version, stamp_next(header->version));
        if (header->version == 0 && draft_act(entry->draft) == DRAFT_WRITE)
            version = max_i64(version, stamp_next(header->floor));
    }
    return version;
}

/* --- copies --- */

/* Notes the copied items of the changed documents, and schedules a task for each document. */
static void note_copies(struct transaction *transaction, const struct schema *schema,
                        struct transaction_writing *writing)
{
    struct copy_notes *notes = &writing->commit.notes;
    for (size_t i = 0; i < writing->commit.count; i++) {
        const struct commit_document *document = &writing->commit.documents[i];
        size_t before = notes->count;
        if (document->act != DRAFT_READ)
            copies_note(notes, transaction->arena, schema, document->base, document->act, &document->rows);
        if (notes->count == before)
            continue;
        const struct task task =
            copies_task(transaction->arena, &notes->list[before], transaction->documents->settings);
        transaction_schedule(transaction, &task); /* a task that already waits for the document is enough */
    }
}

/* The documents that the copies are written to. */
static void add_slots_of_copies(struct transaction *transaction, struct transaction_writing *writing)
{
    const struct segment *segment = transaction->documents->segment;
    const struct copy_batch *batch = transaction->copies;
    for (size_t i = 0; batch && i < batch->target_count; i++) {
        const struct copy_target *target = &batch->targets[i];
        uint64_t hash = slots_hash(segment, transaction->ns, target->class, target->id);
        commit_slots_add(&writing->slots, target->class, slots_index(segment, hash));
    }
    writing->commit.copies = batch;
}

/* --- what is written --- */

static void prepare_writing(struct transaction *transaction, const struct schema *schema,
                            struct transaction_writing *writing)
{
    struct arena *arena = transaction->arena;
    size_t count = transaction->fetched;
    size_t most = count + (transaction->copies ? transaction->copies->target_count : 0);
    int64_t now = stamp_now();
    int64_t horizon = stamp_add_ms(now, -1000 * transaction->documents->settings->tombstone_s);
    int64_t tombstones = transaction->documents->settings->limit_tombstones;
    *writing = (struct transaction_writing){.commit = {.version = choose_version(transaction, now)}};
    writing->commit.documents = ARENA_ARRAY(arena, struct commit_document, count);
    writing->entries = ARENA_ARRAY(arena, struct transaction_entry *, count);
    writing->slots = commit_slots_open(transaction->documents->segment, transaction->ns, arena, most);
    for (size_t i = 0; i < transaction->count; i++) {
        struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft)
            continue;
        writing->entries[writing->commit.count] = entry;
        struct commit_document *document = &writing->commit.documents[writing->commit.count++];
        *document = (struct commit_document){.base = entry->found.document};
        if (!draft_is_changed(entry->draft))
            continue;
        document->act = draft_act(entry->draft);
        draft_seal(entry->draft, writing->commit.version,
                   max_i64(horizon, draft_forget(entry->draft, tombstones)), &document->rows);
        commit_slots_add(&writing->slots, document->base->header.class, entry->found.slot);
        writing->written = writing->commit.version;
    }
    if (transaction->idempotency) {
        writing->idempotency = *transaction->idempotency;
        writing->idempotency.version = writing->written;
        writing->commit.idempotency = &writing->idempotency;
    }
    writing->commit.spool = transaction->spool;
    add_slots_of_copies(transaction, writing);
    if (schema && copies_exist(schema))
        note_copies(transaction, schema, writing);
    writing->commit.tasks = transaction->tasks;
    writing->commit.task_count = transaction->task_count;
    writing->commit.cancels = transaction->cancels;
    writing->commit.cancel_count = transaction->cancel_count;
    writing->commit.fences = transaction->fences;
    writing->commit.fence_count = transaction->fence_count;
    writing->commit.checkpoint = transaction->checkpoint;
    writing->commit.stop = now;
    writing->commit.task_quotas = transaction->task_quotas;
    writing->commit.account_bytes_most = transaction->account_bytes_most;
    writing->commit.account = transaction->account;
    writing->commit.match.own = transaction->session;
    writing->commit.match.caller = transaction->caller;
}

/* Caches the documents as written, with a tag only if no other commit moved their slot meanwhile. */
static void keep_written(struct transaction *transaction, const struct transaction_writing *writing)
{
    for (size_t i = 0; i < writing->commit.count; i++) {
        const struct commit_document *written = &writing->commit.documents[i];
        const struct found *found = &writing->entries[i]->found;
        if (written->act == DRAFT_READ)
            continue;
        const size_t s = commit_slots_find(&writing->slots, found->slot);
        struct document *document = draft_snapshot(writing->entries[i]->draft, &written->rows);
        documents_keep_written(transaction->documents, transaction->ns, found, document,
                               writing->slots.moved[s] == writing->slots.own[s], writing->slots.moved[s] + 1);
        document_release(document);
    }
}

static void distrust_moved(struct transaction *transaction, const struct transaction_writing *writing,
                           bool all)
{
    for (size_t i = 0; i < writing->commit.count; i++)
        if (all || writing->commit.documents[i].moved)
            documents_distrust(transaction->documents, transaction->ns, &writing->entries[i]->found);
}

/* The old backend must be gone before any process may trust these slots again. */
static void settle_unknown(struct transaction *transaction, struct transaction_writing *writing)
{
    struct documents *documents = transaction->documents;
    log_error("commit outcome unknown documents=%zu version=%lld", writing->commit.count,
              (long long)writing->commit.version);
    distrust_moved(transaction, writing, true);
    crash_at(CRASH_UNKNOWN_BEGUN);
    enum fault fault = store_reconnect(documents->store, transaction->ns, RECONNECT_MS);
    if (fault) {
        documents->must_exit = true; /* never unmark: the recovery process continues */
        return;
    }
    crash_at(CRASH_UNKNOWN_CONNECTED);
    slots_publish(documents->segment, writing->slots.list, writing->slots.count, NULL); /* as if committed */
    transaction_note_configurations(transaction, &writing->commit);
    feed_publisher_miss(documents->publisher, transaction->ns);
    slots_unmark(documents->segment, writing->slots.list, writing->slots.count);
    slots_end(documents->segment);
    crash_at(CRASH_UNKNOWN_SETTLED);
}

static enum fault commit(struct transaction *transaction, int64_t *version_r)
{
    struct documents *documents = transaction->documents;
    struct segment *segment = documents->segment;
    transaction_end_snapshot(transaction); /* no longer needed: the commit verifies what was read in it */
    const struct schema *schema = NULL;
    enum fault fault = store_connect(documents->store, transaction->ns); /* not after the marks */
    if (!fault && waits_are_crowded(segment, documents->settings->workers, documents->now_ms))
        return FAULT_XAWAY;
    if (!fault && lineage_drops(segment) != transaction->drops)
        return FAULT_STALE;             /* read in a former history, which may have the same versions */
    if (!fault && transaction->fetched) /* the schema under which the database judges the commit */
        fault = store_schema(documents->store, transaction->ns, transaction->arena, &schema);
    if (fault)
        return fault;
    if (schema && transaction->stood && schema->number != transaction->stood->number)
        return FAULT_STALE; /* the reported states of its documents may not hold under this one */
    if (schema && !transaction->stood)
        transaction_adjust(transaction, schema);
    if (schema && schema->has_contents && (fault = transaction_check_contents(transaction, schema)))
        return fault;
    struct transaction_writing writing;
    prepare_writing(transaction, schema, &writing);
    crash_at(CRASH_COMMIT_CONNECTED);
    slots_begin(segment, transaction->ns);
    crash_at(CRASH_COMMIT_BEGUN);
    slots_mark(segment, writing.slots.list, writing.slots.count, writing.slots.own);
    crash_at(CRASH_COMMIT_MARKED);
    pulse_begin_change(documents->pulse);
    switch (store_commit(documents->store, transaction->ns, transaction->arena, &writing.commit, &fault)) {
    case COMMIT_DONE:
        crash_at(CRASH_COMMIT_ANSWERED);
        slots_publish(segment, writing.slots.list, writing.slots.count, writing.slots.moved);
        crash_at(CRASH_COMMIT_PUBLISHED);
        transaction_note_configurations(transaction, &writing.commit);
        documents_announce(documents, transaction->ns, transaction->arena, &writing.commit, writing.written);
        keep_written(transaction, &writing);
        crash_at(CRASH_COMMIT_KEPT);
        *version_r = writing.written;
        transaction->next = writing.commit.next;
        transaction->match = writing.commit.match;
        pulse_count(&documents->pulse->commits, 1);
        transaction_count(segment, transaction->ns, &writing.commit);
        fault = FAULT_NONE;
        break;
    case COMMIT_REFUSED:
        pulse_undo_change(documents->pulse);
        crash_at(CRASH_COMMIT_REFUSED);
        distrust_moved(transaction, &writing, false);
        if (fault == FAULT_STALE)
            pulse_count(&documents->pulse->conflicts, 1);
        memcpy(transaction->refused, writing.commit.refused, sizeof writing.commit.refused);
        break;
    case COMMIT_UNKNOWN:
        settle_unknown(transaction, &writing);
        return FAULT_XUNKNOWN;
    }
    slots_unmark(segment, writing.slots.list, writing.slots.count);
    crash_at(CRASH_COMMIT_UNMARKED);
    slots_end(segment);
    crash_at(CRASH_COMMIT_ENDED);
    return fault;
}

/* After a turn, a document that was only read, such as a configuration, takes no turn next time. */
static void learn_turns(struct transaction *transaction)
{
    for (size_t i = 0; transaction->writer_queue && i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        bool is_written = entry->draft && draft_is_changed(entry->draft);
        if (is_written || (entry->draft && writer_queue_has(transaction->writer_queue, entry->found.slot)))
            documents_set_written(transaction->documents, transaction->ns, &entry->found, is_written);
    }
}

enum fault transaction_validate(struct transaction *transaction, int64_t *version_r)
{
    *version_r = 0;
    if (lineage_drops(transaction->documents->segment) != transaction->drops)
        return FAULT_STALE;
    learn_turns(transaction);
    bool writes = transaction->idempotency || transaction->task_count || transaction->fence_count ||
                  transaction->cancel_count || transaction->copies || transaction->spool;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        if (entry->draft &&
            documents_has_ended(&entry->found)) /* it existed; all must be true at one instant */
            return FAULT_STALE;
        writes |= entry->draft && draft_is_changed(entry->draft);
    }
    if (writes)
        return commit(transaction, version_r);
    if (transaction->in_snapshot || !transaction->fetched)
        return FAULT_NONE;
    if (transaction->documents->other_hosts || transaction->is_as_database)
        return verify_in_database(transaction);
    return verify_in_memory(transaction);
}
