/* transaction: one try of an operation: its documents, its changes, validate() and commit() of
 * freshness.md. */
#include "document/transaction.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "document/documents_private.h"
#include "model/stamp.h"
#include "document/commit_slots.h"
#include "document/transaction_private.h"
#include "segment/metrics.h"
#include "segment/slots.h"
#include "segment/stored.h"
#include "segment/writer_queue.h"
#include "store/store_commit.h"
#include "store/store_idempotency.h"
#include "store/store_load.h"
#include "store/store_schema.h"

/* How long a worker waits for the old backend to end after an unknown outcome. */
enum { RECONNECT_MS = 5000 };

/* After this time the holder of a turn counts as dead or slow: the next writer takes the turn over. */
enum { TURN_OVERDUE_MS = 500 };

enum fault transaction_begin(struct documents *documents, int ns, struct arena *arena, bool in_snapshot,
                             struct transaction **transaction_r)
{
    struct transaction *transaction = ARENA_NEW(arena, struct transaction);
    transaction->documents = documents;
    transaction->arena = arena;
    transaction->ns = ns;
    if (in_snapshot) {
        enum fault fault = store_snapshot_begin(documents->store, ns);
        if (fault)
            return fault;
        transaction->in_snapshot = true;
    }
    *transaction_r = transaction;
    return FAULT_NONE;
}

static void end_snapshot(struct transaction *transaction)
{
    if (transaction->in_snapshot)
        store_snapshot_end(transaction->documents->store, transaction->ns);
    transaction->in_snapshot = false;
}

void transaction_end(struct transaction *transaction)
{
    end_snapshot(transaction);
    if (transaction->writer_queue)
        writer_queue_give(transaction->writer_queue);
}

/* --- the writer queue --- */

void transaction_take_turns(struct transaction *transaction)
{
    transaction->writer_queue =
        writer_queue_create(transaction->arena, transaction->documents->segment, TURN_OVERDUE_MS);
}

/* Called before these documents are read.  An open snapshot would only age during the wait. */
static void await_turns(struct transaction *transaction, const struct document_name *names, size_t count)
{
    struct documents *documents = transaction->documents;
    if (!transaction->writer_queue || (transaction->in_snapshot && transaction->count))
        return;
    uint32_t *slots = ARENA_ROOM(transaction->arena, uint32_t, count);
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (documents_is_written(documents, transaction->ns, names[i], &slots[wanted]))
            wanted++;
    if (!wanted)
        return;
    int64_t deadline_ms = clock_monotonic_ms() + documents->settings->lock_timeout_ms;
    writer_queue_take(transaction->writer_queue, slots, wanted,
                      deadline_ms < documents->deadline_ms ? deadline_ms : documents->deadline_ms);
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

static struct transaction_entry *find_entry(struct transaction *transaction, uint64_t hash,
                                            struct document_name name)
{
    for (size_t i = 0; i < transaction->count; i++) {
        const struct found *found = &transaction->entries[i].found;
        const struct header *header = &found->document->header;
        if (found->hash == hash && bytes_equal(header->id, name.id) && bytes_equal(header->class, name.class))
            return &transaction->entries[i];
    }
    return NULL;
}

static uint64_t hash_of(const struct transaction *transaction, struct document_name name)
{
    return slots_hash(transaction->documents->segment, transaction->ns, name.class, name.id);
}

static struct transaction_entry *add_entry(struct transaction *transaction, const struct found *found)
{
    ARENA_GROW(transaction->arena, transaction->entries, transaction->count, transaction->capacity);
    struct transaction_entry *entry = &transaction->entries[transaction->count++];
    *entry = (struct transaction_entry){.found = *found};
    return entry;
}

static void release(void *document)
{
    document_release(document);
}

void transaction_limit_bytes(struct transaction *transaction, size_t bytes_most)
{
    transaction->bytes_most = bytes_most;
}

static size_t bytes_most(const struct transaction *transaction)
{
    return transaction->bytes_most ? transaction->bytes_most : SIZE_MAX;
}

/* Inside the REPEATABLE READ snapshot: what is loaded there may be older than the stamps, so it is not
 * cached. */
static enum fault find_in_snapshot(struct transaction *transaction, const struct document_name *names,
                                   size_t count, size_t most, struct found *found)
{
    struct documents *documents = transaction->documents;
    struct load *loads = ARENA_ARRAY(transaction->arena, struct load, count);
    for (size_t i = 0; i < count; i++) {
        loads[i] = (struct load){.class = names[i].class, .id = names[i].id};
        found[i].document = NULL;
    }
    enum fault fault =
        store_load_part(documents->store, transaction->ns, transaction->arena, loads, count, most);
    for (size_t i = 0; !fault && i < count && loads[i].document; i++) {
        arena_defer(transaction->arena, release, loads[i].document);
        found[i] = (struct found){.document = loads[i].document, .from_database = true};
        found[i].hash = slots_hash(documents->segment, transaction->ns, names[i].class, names[i].id);
        found[i].slot = slots_index(documents->segment, found[i].hash);
        documents_judge_expiry(transaction->arena, &found[i]);
    }
    return fault;
}

static enum fault find_newest(struct transaction *transaction, const struct document_name *names,
                              size_t count, struct found *found)
{
    enum fault fault =
        transaction->in_snapshot
            ? find_in_snapshot(transaction, names, count, bytes_most(transaction), found)
            : documents_find_newest(transaction->documents, transaction->ns, transaction->arena, names, count,
                                    bytes_most(transaction), found);
    for (size_t i = 0; i < count && !fault; i++)
        if (!found[i].document)
            fault = FAULT_ALIMIT;
    return fault;
}

/* A document read with a tolerance is now fetched at 0: its copy is used if it is still the newest. */
static enum fault promote(struct transaction *transaction, struct transaction_entry *entry)
{
    struct documents *documents = transaction->documents;
    struct observation observation = slots_see(documents->segment, entry->found.slot);
    if (!transaction->in_snapshot && (observation.busy || observation.stamp != entry->found.tag)) {
        documents_distrust(documents, transaction->ns, &entry->found);
        return FAULT_STALE;
    }
    entry->draft = draft_open(transaction->arena, entry->found.document);
    transaction->fetched++;
    return FAULT_NONE;
}

/* FAULT_ALIMIT above limit_documents. */
static enum fault count_entry(struct transaction *transaction, struct transaction_entry *entry)
{
    if (entry->is_counted)
        return FAULT_NONE;
    entry->is_counted = true;
    return (int64_t)++transaction->counted > transaction->documents->settings->limit_documents ? FAULT_ALIMIT
                                                                                               : FAULT_NONE;
}

/* Opens a draft of each document found; names may be duplicate. */
static enum fault open_drafts(struct transaction *transaction, const struct document_name *names,
                              const struct found *found, size_t count, struct draft ***places)
{
    for (size_t i = 0; i < count; i++) {
        struct transaction_entry *entry = find_entry(transaction, found[i].hash, names[i]);
        if (!entry) {
            entry = add_entry(transaction, &found[i]);
            entry->draft = draft_open(transaction->arena, entry->found.document);
            transaction->fetched++;
            enum fault fault = count_entry(transaction, entry);
            if (fault)
                return fault;
        }
        *places[i] = entry->draft;
    }
    return FAULT_NONE;
}

enum fault transaction_fetch_many(struct transaction *transaction, const struct document_name *names,
                                  size_t count, struct draft **drafts_r)
{
    struct document_name *missing = ARENA_ROOM(transaction->arena, struct document_name, count);
    struct draft ***places = ARENA_ROOM(transaction->arena, struct draft **, count);
    size_t missing_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct transaction_entry *entry =
            transaction->count ? find_entry(transaction, hash_of(transaction, names[i]), names[i]) : NULL;
        if (!entry) {
            places[missing_count] = &drafts_r[i];
            missing[missing_count++] = names[i];
            continue;
        }
        enum fault fault = entry->draft ? FAULT_NONE : promote(transaction, entry);
        if (!fault)
            fault = count_entry(transaction, entry);
        if (fault)
            return fault;
        drafts_r[i] = entry->draft;
    }
    if (!missing_count)
        return FAULT_NONE;
    struct found *found = ARENA_ROOM(transaction->arena, struct found, missing_count);
    await_turns(transaction, missing, missing_count);
    enum fault fault = find_newest(transaction, missing, missing_count, found);
    return fault ? fault : open_drafts(transaction, missing, found, missing_count, places);
}

enum fault transaction_fetch(struct transaction *transaction, struct document_name name,
                             struct draft **draft_r)
{
    return transaction_fetch_many(transaction, &name, 1, draft_r);
}

enum fault transaction_consult(struct transaction *transaction, struct document_name name,
                               const struct document **document_r)
{
    struct transaction_entry *entry = find_entry(transaction, hash_of(transaction, name), name);
    struct found found;
    enum fault fault = FAULT_NONE;
    if (entry && !entry->draft)
        fault = promote(transaction, entry);
    if (!entry && !(fault = find_newest(transaction, &name, 1, &found))) {
        entry = add_entry(transaction, &found);
        entry->draft = draft_open(transaction->arena, found.document);
        transaction->fetched++;
    }
    if (!fault)
        *document_r = entry->found.document;
    return fault;
}

enum fault transaction_read(struct transaction *transaction, struct document_name name, int64_t tolerance_s,
                            const struct document **document_r)
{
    struct transaction_entry *entry = find_entry(transaction, hash_of(transaction, name), name);
    if (!entry) {
        struct found found;
        enum fault fault =
            transaction->in_snapshot
                ? find_in_snapshot(transaction, &name, 1, bytes_most(transaction), &found)
                : documents_find_tolerated(transaction->documents, transaction->ns, transaction->arena, name,
                                           tolerance_s * 1000, &found);
        if (fault)
            return fault;
        entry = add_entry(transaction, &found);
    }
    *document_r = entry->found.document;
    return FAULT_NONE;
}

enum fault transaction_newest(struct transaction *transaction, const struct document_name *names,
                              size_t count, size_t most, const struct document **documents_r)
{
    if (!transaction->in_snapshot)
        return documents_newest_part(transaction->documents, transaction->ns, transaction->arena, names,
                                     count, most, documents_r);
    struct found *found = ARENA_ARRAY(transaction->arena, struct found, count);
    enum fault fault = find_in_snapshot(transaction, names, count, most, found);
    for (size_t i = 0; !fault && i < count; i++)
        documents_r[i] = found[i].document;
    return fault;
}

bool transaction_is_in_snapshot(const struct transaction *transaction)
{
    return transaction->in_snapshot;
}

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
    end_snapshot(transaction); /* no longer needed: the commit verifies what was read in it */
    const struct schema *schema = NULL;
    enum fault fault = store_connect(documents->store, transaction->ns); /* not after the marks */
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
    uint64_t before = atomic_load(&documents->pulse->may_have_changed);
    atomic_store(&documents->pulse->may_have_changed, 1);
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
        atomic_store(&documents->pulse->may_have_changed, before);
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

enum fault transaction_validate(struct transaction *transaction, int64_t *version_r)
{
    *version_r = 0;
    learn_turns(transaction);
    bool writes = transaction->idempotency || transaction->task_count || transaction->fence_count ||
                  transaction->copies || transaction->spool;
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
