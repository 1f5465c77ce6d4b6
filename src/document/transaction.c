/* transaction: one try of an operation: its documents and its turns in the writer queue. */
#include "document/transaction.h"

#include <stdlib.h>

#include "base/clock.h"
#include "document/transaction_private.h"
#include "model/content/content.h"
#include "model/document/mutation.h"
#include "model/document/thumbnails.h"
#include "segment/lineage.h"
#include "segment/slots.h"
#include "segment/writer_queue.h"
#include "store/documents/store_load.h"
#include "store/documents/store_schema.h"
#include "store/store_sealing.h"

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
        enum fault fault = FAULT_FIRST(entry->draft ? FAULT_NONE : promote(transaction, entry),
                                       count_entry(transaction, entry));
        if (fault)
            return fault;
        drafts_r[i] = entry->draft;
    }
    if (!missing_count)
        return FAULT_NONE;
    struct found *found = ARENA_ROOM(transaction->arena, struct found, missing_count);
    await_turns(transaction, missing, missing_count);
    return FAULT_FIRST(find_newest(transaction, missing, missing_count, found),
                       open_drafts(transaction, missing, found, missing_count, places));
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

/* The one place through which each content passes that an operation, a task, a module
 * or the mutation of a release writes: the changed items of the drafts, behind the last change, under the
 * schema that the database compares with its own in the commit.  Copies are not checked: their source was. */

/* Beside limit_content_steps, for each byte. */
enum { STEPS_OF_BYTE = 16 };

struct checking {
    const struct schema_class *class;
    struct arena *arena; /* emptied after each content */
    int64_t steps;
    enum content_verdict verdict;
    struct content_violation violation;
};

static bool is_wrong(void *whose, const struct item *item)
{
    struct checking *checking = whose;
    const struct schema_item *declared = schema_find_item(checking->class, item->iclass);
    if (!declared || !declared->content || declared->is_raw != item->raw)
        return false;
    checking->steps += STEPS_OF_BYTE * (int64_t)item->content.size;
    checking->verdict = content_check(declared->content, checking->arena, item->content, &checking->steps,
                                      &checking->violation);
    if (checking->verdict != CONTENT_CONFORMS)
        return true;
    arena_reset(checking->arena);
    return false;
}

static struct bytes transaction_contents_keep(struct arena *arena, const char *text)
{
    size_t size = strlen(text);
    return (struct bytes){arena_copy(arena, text, size), size};
}

static enum fault transaction_contents_refuse(struct transaction *transaction, const struct header *header,
                                              const struct item *item, const struct checking *checking)
{
    struct arena *arena = transaction->arena;
    const int64_t most = transaction->documents->settings->limit_content_steps;
    if (checking->verdict == CONTENT_COSTLY) {
        transaction->refused[0] = BYTES("limit_content_steps");
        transaction->refused[1] = bytes_of(arena_printf(arena, "%lld", (long long)most));
        transaction->refused[2] = bytes_of(arena_printf(arena, "%lld", (long long)most + 1));
        return FAULT_ALIMIT;
    }
    const struct content_violation *violation = &checking->violation;
    const struct bytes parts[TRANSACTION_REFUSED_PARTS] = {
        header->class,
        header->id,
        item->iclass,
        item->key.data ? item->key : BYTES(""),
        transaction_contents_keep(arena, violation->place),
        transaction_contents_keep(arena, violation->keyword),
        transaction_contents_keep(arena, violation->rule),
    };
    memcpy(transaction->refused, parts, sizeof parts);
    transaction->expected = transaction_contents_keep(arena, violation->expected).data;
    return FAULT_ACONTENT;
}

enum fault transaction_check_contents(struct transaction *transaction, const struct schema *schema)
{
    struct documents *documents = transaction->documents;
    struct checking checking = {.arena = arena_create("contents"),
                                .steps = documents->settings->limit_content_steps};
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < transaction->count && !fault; i++) {
        const struct draft *draft = transaction->entries[i].draft;
        if (!draft || !draft_is_changed(draft))
            continue;
        const struct header *header = &draft_base(draft)->header;
        checking.class = schema_find_class(schema, header->class);
        const struct item *wrong = checking.class ? draft_find_changed(draft, is_wrong, &checking) : NULL;
        if (wrong)
            fault = transaction_contents_refuse(transaction, header, wrong, &checking);
    }
    arena_destroy(checking.arena);
    if (!fault)
        return FAULT_NONE;
    enum fault moved = store_schema_confirm(documents->store, transaction->ns, transaction->arena, schema);
    return moved ? moved : fault;
}

/* What the schema adds to the changes of a try, and the states that its documents then
 * have.
 *
 * A commit that removes or replaces an image removes its thumbnails, and one that adds an image creates the
 * task that makes them (model/document/thumbnails.h). */

/* --- releases --- */

struct mutating {
    struct arena *arena;
    const struct schema_class *class;
};

static struct bytes mutate(void *whose, const struct item *item)
{
    const struct mutating *mutating = whose;
    return mutation_apply(mutating->arena, mutating->class, item->iclass, item->content);
}

static void mutate_drafts(struct transaction *transaction, const struct schema *schema)
{
    for (size_t i = 0; i < transaction->count; i++) {
        struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft || !draft_is_changed(entry->draft))
            continue;
        struct mutating mutating = {transaction->arena,
                                    schema_find_class(schema, draft_base(entry->draft)->header.class)};
        if (mutating.class && mutation_applies(mutating.class))
            draft_mutate(entry->draft, mutate, &mutating);
    }
}

/* --- thumbnails --- */

static void follow_images(struct transaction *transaction, const struct schema *schema)
{
    const struct settings *settings = transaction->documents->settings;
    for (size_t i = 0; i < transaction->count; i++) {
        const struct transaction_entry *entry = &transaction->entries[i];
        if (!entry->draft || !draft_is_changed(entry->draft))
            continue;
        const struct header *header = &draft_base(entry->draft)->header;
        const struct schema_class *class = schema_find_class(schema, header->class);
        if (!class || !class->thumbnail_count || !thumbnails_follow(transaction->arena, class, entry->draft))
            continue;
        const struct task task =
            task_of_document(transaction->arena, settings, BYTES(THUMBNAILS_OPERATION), THUMBNAILS_QUEUE,
                             header->class, header->id,
                             store_sealing_id(transaction->documents->store, transaction->ns,
                                              transaction->arena, header->class, header->id));
        transaction_schedule(transaction, &task); /* a task that already waits for the document is enough */
    }
}

void transaction_adjust(struct transaction *transaction, const struct schema *schema)
{
    if (schema->has_old)
        mutate_drafts(transaction, schema);
    if (schema->has_thumbnails)
        follow_images(transaction, schema);
}

/* --- states after the commit --------------------------------------------------------------------- */

static bool is_any_changed(const struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->entries[i].draft && draft_is_changed(transaction->entries[i].draft))
            return true;
    return false;
}

static struct version_after version_after(const struct transaction_entry *entry)
{
    const struct header *header = &entry->found.document->header;
    struct version_after after = {.name = {header->class, header->id}};
    if (draft_is_changed(entry->draft))
        after.is_written = draft_exists(entry->draft);
    else if (document_exists(entry->found.document))
        after.version = header->version;
    return after;
}

enum fault transaction_versions_after(struct transaction *transaction, struct version_after **versions_r,
                                      size_t *count_r)
{
    struct documents *documents = transaction->documents;
    *versions_r = NULL;
    *count_r = 0;
    if (is_any_changed(transaction)) {
        enum fault fault =
            store_schema(documents->store, transaction->ns, transaction->arena, &transaction->stood);
        if (fault)
            return fault;
        transaction_adjust(transaction, transaction->stood);
    }
    *versions_r = ARENA_ARRAY(transaction->arena, struct version_after, transaction->fetched);
    for (size_t i = 0; i < transaction->count; i++)
        if (transaction->entries[i].draft)
            (*versions_r)[(*count_r)++] = version_after(&transaction->entries[i]);
    return FAULT_NONE;
}
