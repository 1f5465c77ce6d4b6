/* transaction: one try of an operation: its documents and its turns in the writer queue. */
#include "document/transaction.h"

#include <stdlib.h>

#include "base/clock.h"
#include "document/transaction_private.h"
#include "segment/lineage.h"
#include "segment/slots.h"
#include "segment/writer_queue.h"
#include "store/documents/store_load.h"

/* After this time the holder of a turn counts as dead or slow: the next writer takes the turn over. */
enum { TURN_OVERDUE_MS = 500 };

enum fault transaction_begin(struct documents *documents, int ns, struct arena *arena, bool in_snapshot,
                             struct transaction **transaction_r)
{
    struct transaction *transaction = ARENA_NEW(arena, struct transaction);
    transaction->documents = documents;
    transaction->arena = arena;
    transaction->ns = ns;
    transaction->drops = lineage_drops(documents->segment);
    if (in_snapshot) {
        enum fault fault = store_snapshot_begin(documents->store, ns);
        if (fault)
            return fault;
        transaction->in_snapshot = true;
    }
    *transaction_r = transaction;
    return FAULT_NONE;
}

void transaction_end_snapshot(struct transaction *transaction)
{
    if (transaction->in_snapshot)
        store_snapshot_end(transaction->documents->store, transaction->ns);
    transaction->in_snapshot = false;
}

void transaction_end(struct transaction *transaction)
{
    transaction_end_snapshot(transaction);
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

static struct transaction_entry *transaction_find_entry(struct transaction *transaction, uint64_t hash,
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

static uint64_t transaction_hash_of(const struct transaction *transaction, struct document_name name)
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

static void transaction_release(void *document)
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
        arena_defer(transaction->arena, transaction_release, loads[i].document);
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
        struct transaction_entry *entry = transaction_find_entry(transaction, found[i].hash, names[i]);
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
            transaction->count
                ? transaction_find_entry(transaction, transaction_hash_of(transaction, names[i]), names[i])
                : NULL;
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
    struct transaction_entry *entry =
        transaction_find_entry(transaction, transaction_hash_of(transaction, name), name);
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
    struct transaction_entry *entry =
        transaction_find_entry(transaction, transaction_hash_of(transaction, name), name);
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
