/* torture_client: a worker whose copies may be old, which the commit must notice. */
#include "torture.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "model/document/stamp.h"
#include "segment/segment.h"
#include "segment/segment_open.h"
#include "store/store.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_load.h"

enum { KEYS = 4 };

static const struct bytes class = BYTES("Doc");
static const struct bytes keys[KEYS] = {BYTES("k"), BYTES("l"), BYTES("m"), BYTES("n")};

static void check_document(struct actor *actor, int which, const struct document *document)
{
    const struct header *header = &document->header;
    /* Without a row the floor speaks, which may lie above a birth that was under way when it rose. */
    int64_t now = header->version ? header->version : header->floor;
    if (now < actor->known[which])
        violation(actor, "document %d went back from %" PRId64 " to %" PRId64, which, actor->known[which],
                  now);
    else if (header->version)
        actor->known[which] = header->version;
    for (uint32_t i = 0; i < document->item_count; i++)
        if (document->items[i].version > header->version)
            violation(actor, "document %d is older than its item", which);
}

/* Loads the chosen documents; now and then takes the copy held for the newest, as a stale cache would. */
static bool load_chosen(struct actor *actor, const int *chosen, int count)
{
    struct load loads[DOCUMENTS];
    int places[DOCUMENTS], wanted = 0;
    for (int i = 0; i < count; i++) {
        if (actor->copies[chosen[i]] && draw(actor, 4) == 0)
            continue;
        places[wanted] = chosen[i];
        loads[wanted++] = (struct load){.class = class,
                                        .id = actor->ids[chosen[i]],
                                        .copy = draw(actor, 8) ? actor->copies[chosen[i]] : NULL};
    }
    if (!wanted)
        return true;
    enum fault fault =
        store_load_many(actor->store, actor->torture->scratch.ns, actor->arena, loads, (size_t)wanted);
    if (fault) {
        violation(actor, "load: %s", fault_code(fault));
        return false;
    }
    for (int i = 0; i < wanted; i++) {
        check_document(actor, places[i], loads[i].document);
        keep(&actor->copies[places[i]], loads[i].document);
    }
    return true;
}

/* The singleton Mark is written by each change of a living document, so it bears the document's version. */
static void change_items(struct actor *actor, struct draft *draft)
{
    struct bytes mark = {NULL, 0};
    mark.data = arena_printf(actor->arena, "[%d,%" PRIu64 "]", actor->process, ++actor->serial);
    mark.size = strlen(mark.data);
    draft_set_item(draft, BYTES("Mark"), BYTES(""), false, mark);
    for (int key = 0; key < KEYS; key++) {
        switch (draw(actor, 6)) {
        case 0:
            draft_set_item(draft, BYTES("Item"), keys[key], draw(actor, 2), mark);
            break;
        case 1:
            draft_remove_item(draft, BYTES("Item"), keys[key]);
            break;
        }
    }
}

/* Lives are short, but for those of documents whose deltas are to be long. */
static void change_document(struct actor *actor, int which, struct draft *draft)
{
    uint64_t dice = draw(actor, 100), deaths = actor->torture->purging ? 36 : which < LASTING ? 2 : 16;
    if (!draft_exists(draft)) {
        if (dice < 50)
            change_items(actor, draft);
        return;
    }
    if (dice < 45)
        return; /* merely read */
    if (dice >= 100 - deaths)
        draft_delete(draft);
    if (dice < 100 - deaths / 2) /* a change, or a new life at once */
        change_items(actor, draft);
}

/* The rule of versions, under a clock that may have stepped back. */
static int64_t next_version(struct actor *actor, const struct commit *commit)
{
    int64_t highest = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        const struct header *header = &document->base->header;
        if (header->version > highest)
            highest = header->version;
        if (document->act != DRAFT_READ && header->ctime == 0 && header->floor > highest)
            highest = header->floor;
    }
    if (draw(actor, 64) == 0)
        actor->behind_ms = draw(actor, 2)                              ? 4000 + (int64_t)draw(actor, 12001)
                           : draw(actor, 3) || actor->torture->purging ? 0
                                                                       : -(int64_t)draw(actor, 1000);
    int64_t now = stamp_from_epoch_ms(clock_wall_ms() - actor->behind_ms);
    return now > highest ? now : stamp_next(highest);
}

static void record(struct actor *actor, const int *chosen, const struct commit *commit, int64_t version)
{
    struct ledger_entry entry = {.version = version, .use_count = (int32_t)commit->count};
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        entry.uses[i] = (struct ledger_use){.document = number_in_ledger(actor, chosen[i]),
                                            .act = (int32_t)document->act,
                                            .seen = document->base->header.version,
                                            .known = actor->known[chosen[i]]};
    }
    ledger_add(actor->torture->ledger, actor->process, &entry);
}

static void drop_moved(struct actor *actor, const int *chosen, const struct commit *commit)
{
    size_t moved = 0;
    for (size_t i = 0; i < commit->count; i++)
        if (commit->documents[i].moved) {
            keep(&actor->copies[chosen[i]], NULL);
            moved++;
        }
    if (!moved)
        violation(actor, "refused, but no document has moved");
    actor->counts->refusals++;
}

static void validate_reading(struct actor *actor, const int *chosen, struct commit *commit)
{
    enum fault fault = store_commit_verify(actor->store, actor->torture->scratch.ns, actor->arena, commit);
    if (fault == FAULT_STALE) {
        drop_moved(actor, chosen, commit);
    } else if (fault) {
        violation(actor, "verify: %s", fault_code(fault));
    } else {
        record(actor, chosen, commit, 0);
        actor->counts->readings++;
    }
}

static void commit_changes(struct actor *actor, const int *chosen, struct commit *commit,
                           struct draft *const *drafts)
{
    int ns = actor->torture->scratch.ns;
    commit->version = next_version(actor, commit);
    int64_t horizon = stamp_add_ms(commit->version, -(int64_t)draw(actor, draw(actor, 2) ? 4000 : 20));
    for (size_t i = 0; i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ)
            draft_seal(drafts[i], commit->version, horizon, &commit->documents[i].rows);
    enum fault fault = store_connect(actor->store, ns);
    if (fault) {
        violation(actor, "connect: %s", fault_code(fault));
        return;
    }
    switch (store_commit(actor->store, ns, actor->arena, commit, &fault)) {
    case COMMIT_DONE:
        record(actor, chosen, commit, commit->version);
        actor->counts->commits++;
        for (size_t i = 0; i < commit->count; i++)
            if (commit->documents[i].act != DRAFT_READ) {
                actor->counts->forgotten += (int64_t)commit->documents[i].rows.purge_count;
                keep(&actor->copies[chosen[i]], draft_snapshot(drafts[i], &commit->documents[i].rows));
                check_document(actor, chosen[i], actor->copies[chosen[i]]);
            }
        break;
    case COMMIT_REFUSED:
        if (fault == FAULT_STALE) {
            drop_moved(actor, chosen, commit);
            break;
        } /* fall through */
    default:
        violation(actor, "commit: %s", fault_code(fault));
    }
}

/* A random half of the documents in random order. */
static int choose(struct actor *actor, int chosen[DOCUMENTS])
{
    int count = 0;
    for (int i = 0; i < DOCUMENTS; i++)
        if (draw(actor, 2))
            chosen[count++] = i;
    if (!count)
        chosen[count++] = (int)draw(actor, DOCUMENTS);
    for (int i = count - 1; i > 0; i--) {
        int k = (int)draw(actor, (uint64_t)i + 1), swap = chosen[i];
        chosen[i] = chosen[k];
        chosen[k] = swap;
    }
    return count;
}

static void run_operation(struct actor *actor)
{
    name_documents(actor);
    int chosen[DOCUMENTS], count = choose(actor, chosen);
    if (!load_chosen(actor, chosen, count))
        return;
    struct commit_document documents[DOCUMENTS];
    struct commit commit = {.documents = documents, .count = (size_t)count};
    struct draft *drafts[DOCUMENTS];
    bool changed = false;
    for (int i = 0; i < count; i++) {
        drafts[i] = draft_open(actor->arena, actor->copies[chosen[i]]);
        change_document(actor, chosen[i], drafts[i]);
        documents[i] =
            (struct commit_document){.base = actor->copies[chosen[i]], .act = draft_act(drafts[i])};
        changed |= documents[i].act != DRAFT_READ;
    }
    if (changed)
        commit_changes(actor, chosen, &commit, drafts);
    else
        validate_reading(actor, chosen, &commit);
}

static bool is_known(const struct document *document, const struct item *item)
{
    return !item_is_tombstone(item) || item->version > document->header.dtime;
}

/* Do both hold the same header and items?  Tombstones that need not be remembered may be there or not. */
static bool is_same(const struct document *a, const struct document *b)
{
    if (a->header.version != b->header.version || a->header.ctime != b->header.ctime ||
        a->header.dtime != b->header.dtime || a->header.v1 != b->header.v1)
        return false;
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->item_count && !is_known(a, &a->items[i]))
            i++;
        while (k < b->item_count && !is_known(b, &b->items[k]))
            k++;
        if (i == a->item_count || k == b->item_count)
            return i == a->item_count && k == b->item_count;
        const struct item *one = &a->items[i++], *other = &b->items[k++];
        if (item_compare(one->iclass, one->key, other->iclass, other->key) != 0 ||
            one->version != other->version || one->vop != other->vop || one->raw != other->raw ||
            item_is_tombstone(one) != item_is_tombstone(other) || !bytes_equal(one->content, other->content))
            return false;
    }
}

/* In one snapshot: what the whole of the last comparison becomes by its delta, and the whole. */
static void compare_delta(struct actor *actor)
{
    int ns = actor->torture->scratch.ns, which = (int)draw(actor, DOCUMENTS);
    name_documents(actor);
    struct load delta = {.class = class, .id = actor->ids[which], .copy = actor->old_copies[which]};
    struct load whole = {.class = class, .id = actor->ids[which]};
    enum fault fault = store_snapshot_begin(actor->store, ns);
    if (!fault)
        fault = store_load(actor->store, ns, actor->arena, &delta);
    if (!fault)
        fault = store_load(actor->store, ns, actor->arena, &whole);
    store_snapshot_end(actor->store, ns);
    if (fault)
        violation(actor, "snapshot: %s", fault_code(fault));
    else if (!is_same(delta.document, whole.document))
        violation(actor, "document %d: its delta is not the whole:\n%.*s\n%.*s", which,
                  (int)delta.document->json.size, delta.document->json.data, (int)whole.document->json.size,
                  whole.document->json.data);
    actor->counts->comparisons++;
    document_release(delta.document);
    keep(&actor->old_copies[which], whole.document);
}

void run_client(struct actor *actor)
{
    struct scratch *scratch = &actor->torture->scratch;
    segment_join(scratch->segment, scratch->indexes[actor->process]);
    actor->store = store_create(&scratch->settings, scratch->segment);
    while (goes_on(actor)) {
        if (draw(actor, 32) == 0)
            compare_delta(actor);
        else
            run_operation(actor);
        arena_reset(actor->arena);
    }
    for (int i = 0; i < DOCUMENTS; i++) {
        keep(&actor->copies[i], NULL);
        keep(&actor->old_copies[i], NULL);
    }
    store_destroy(actor->store);
}
