/* thumbnail: makes the thumbnails that the images of a document lack (doc/reference/attachments.md): the task
 * of a commit that has added an image, or of a sweep.  param {"c","id"} → out {"made","refused"}: how many
 * thumbnails were made, and of how many images none can be.
 *
 * A cycle compares the document with the declaration of its class, and works on one image.  The decoder runs
 * before the document is fetched, so no writer waits for it; then the image must still have the same file.
 * The last cycle finds nothing to do and notes that. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "document/transaction.h"
#include "model/document/thumbnails.h"
#include "operation/attachments/thumbnail_make.h"
#include "operation/classes.h"
#include "operation/reader.h"
#include "operation/access/stored_caller.h"
#include "segment/counts/metrics.h"
#include "store/blobs/store_thumbnails.h"

enum { ITEM_BYTES = 300 /* of the content of an item P, with its mark; its key comes to that */ };

/* What a cycle has found to do. */
struct thumbnail_plan {
    const struct schema_class *class;
    struct document_name name;
    struct thumbnails_list list;
    const struct thumbnails_file *due; /* an image without some thumbnail; NULL: none */
    const struct schema_thumbnail *missing[SCHEMA_THUMBNAILS_MOST];
    size_t missing_count;
    bool has_stale;
};

struct thumbnail_progress {
    int64_t made, refused;
};

/* --- progress -------------------------------------------------------------------------------------- */

static struct thumbnail_progress read_progress(const struct attempt *attempt)
{
    static const struct json_limits limits = {.depth = 1, .tree_depth = 1};
    const struct task *task = attempt->call->task;
    struct thumbnail_progress progress = {0};
    struct json *root;
    struct json_problem problem;
    if (task && task->checkpoint.data &&
        !json_read(attempt->call->arena, task->checkpoint, &limits, &root, &problem) &&
        json_is_i64(json_member(root, "made"), &progress.made) &&
        json_is_i64(json_member(root, "refused"), &progress.refused))
        return progress;
    return (struct thumbnail_progress){0};
}

static struct bytes write_progress(struct attempt *attempt, const struct thumbnail_progress *progress)
{
    return bytes_of(arena_printf(attempt->call->arena, "{\"made\":%" PRId64 ",\"refused\":%" PRId64 "}",
                                 progress->made, progress->refused));
}

/* --- the plan -------------------------------------------------------------------------------------- */

static size_t key_most(const struct attempt *attempt)
{
    return (size_t)attempt->worker_context->settings->limit_name_bytes;
}

/* May the document have so many items more? */
static bool thumbnail_has_room(const struct attempt *attempt, const struct document *document, size_t count)
{
    const struct settings *settings = attempt->worker_context->settings;
    const int64_t items = (int64_t)document->item_count - (int64_t)document->tombstone_count;
    const int64_t bytes = (int64_t)count * (int64_t)(ITEM_BYTES + key_most(attempt));
    return items + (int64_t)count <= settings->limit_items &&
           document_cost(document) + bytes <= settings->limit_document_bytes;
}

/* The first image that lacks some, and of which some may be made. */
static enum fault find_due(struct attempt *attempt, const struct document *document,
                           struct thumbnail_plan *plan)
{
    struct arena *arena = attempt->call->arena;
    const struct thumbnails_list *list = &plan->list;
    struct blob_digest *digests = ARENA_ARRAY(arena, struct blob_digest, list->count);
    struct bytes *reasons = ARENA_ARRAY(arena, struct bytes, list->count);
    size_t *places = ARENA_ARRAY(arena, size_t, list->count), count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct thumbnails_file *file = &list->files[i];
        size_t missing = thumbnails_missing(arena, plan->class, list, file, key_most(attempt), plan->missing);
        plan->has_stale |= thumbnails_is_stale(plan->class, list, file);
        if (!missing || !thumbnail_has_room(attempt, document, missing))
            continue;
        places[count] = i;
        digests[count++] = file->attachment.digest;
    }
    if (!count)
        return FAULT_NONE;
    enum fault fault = store_thumbnails_reasons(documents_store(attempt->worker_context->documents),
                                                attempt->ns, arena, digests, count, reasons);
    for (size_t i = 0; i < count && !fault && !plan->due; i++)
        if (!reasons[i].data)
            plan->due = &list->files[places[i]];
    if (plan->due)
        plan->missing_count =
            thumbnails_missing(arena, plan->class, list, plan->due, key_most(attempt), plan->missing);
    return fault;
}

/* Nothing is left to do: as of this version of its attachments. */
static enum fault note_thumbnail(struct attempt *attempt, const struct document *document,
                                 const struct thumbnail_plan *plan)
{
    struct arena *arena = attempt->call->arena;
    int64_t version = 0;
    for (uint32_t i = 0; i < document->item_count; i++)
        if (bytes_equal(document->items[i].iclass, ATTACHMENT_CLASS) && document->items[i].version > version)
            version = document->items[i].version;
    return store_thumbnails_note(documents_store(attempt->worker_context->documents), attempt->ns, arena,
                                 plan->name.class, plan->name.id, thumbnails_form(arena, plan->class),
                                 version);
}

/* --- one image ------------------------------------------------------------------------------------- */

/* Meanwhile workers hand over no other image of the namespace (task_run.c). */
static enum fault decode(struct attempt *attempt, const struct thumbnail_plan *plan,
                         struct thumbnail_kept *kept)
{
    const struct segment *segment = attempt->worker_context->segment;
    struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    metrics_note_wait(pulse, PULSE_WAITS_FOR_DECODER, attempt->ns, 0, 0);
    enum fault fault = thumbnail_make(attempt, plan->due, plan->missing, plan->missing_count, kept);
    metrics_note_wait(pulse, PULSE_WAITS_FOR_NOTHING, 0, 0, 0);
    return fault;
}

/* An earlier try of this cycle may have made them. */
static enum fault make_thumbnail(struct attempt *attempt, const struct thumbnail_plan *plan)
{
    struct thumbnail_kept *kept = attempt->kept;
    bool is_there = kept && blob_digest_equal(&kept->image, &plan->due->attachment.digest) &&
                    kept->count == plan->missing_count;
    for (size_t i = 0; is_there && i < kept->count; i++)
        is_there = bytes_equal(kept->made[i].thumbnail->name, plan->missing[i]->name) &&
                   kept->made[i].thumbnail->width == plan->missing[i]->width &&
                   kept->made[i].thumbnail->height == plan->missing[i]->height;
    if (is_there)
        return FAULT_NONE;
    kept = ARENA_NEW(attempt->call->arena, struct thumbnail_kept);
    attempt->kept = NULL;
    enum fault fault = decode(attempt, plan, kept);
    if (!fault)
        attempt->kept = kept;
    return fault;
}

static const struct thumbnail_made *find_made(const struct thumbnail_kept *kept,
                                              const struct schema_thumbnail *wanted)
{
    for (size_t i = 0; i < kept->count; i++)
        if (bytes_equal(kept->made[i].thumbnail->name, wanted->name))
            return &kept->made[i];
    return NULL;
}

/* The image may have been replaced or removed meanwhile: then there is nothing to attach. */
static int64_t attach(struct attempt *attempt, const struct thumbnail_plan *plan, struct draft *draft)
{
    struct arena *arena = attempt->call->arena;
    const struct thumbnail_kept *kept = attempt->kept;
    const struct thumbnails_list list = thumbnails_of_draft(arena, draft);
    const struct schema_thumbnail *missing[SCHEMA_THUMBNAILS_MOST];
    int64_t attached = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct thumbnails_file *file = &list.files[i];
        if (!bytes_equal(file->key, plan->due->key) ||
            !blob_digest_equal(&file->attachment.digest, &kept->image))
            continue;
        size_t count = thumbnails_missing(arena, plan->class, &list, file, key_most(attempt), missing);
        for (size_t k = 0; k < count; k++) {
            const struct thumbnail_made *made = find_made(kept, missing[k]);
            if (!made)
                continue;
            const struct attachment attachment = {thumbnails_mime(arena, missing[k], &kept->image),
                                                  made->size, made->digest};
            draft_set_attachment(draft, thumbnails_key(arena, file->key, missing[k]->name), &attachment);
            attached++;
        }
    }
    return attached;
}

/* The files count in the quotas of the namespace and its classes as those that clients send. */
static enum fault obey_quotas(struct attempt *attempt)
{
    struct stored_caller_rights rights;
    enum fault fault = stored_caller_find_rights(attempt->worker_context, attempt->call, &rights);
    if (!fault)
        attempt->call->quotas = rights.quotas;
    return fault;
}

static enum fault thumbnail_change(struct attempt *attempt, const struct thumbnail_plan *plan,
                                   struct thumbnail_progress *progress)
{
    struct draft *draft;
    const struct thumbnail_kept *kept = plan->due ? attempt->kept : NULL;
    if (kept && kept->is_refused) {
        progress->refused++;
        return FAULT_NONE;
    }
    enum fault fault = transaction_fetch(attempt->transaction, plan->name, &draft);
    if (!fault)
        fault = obey_quotas(attempt);
    if (fault || !draft_exists(draft))
        return fault;
    const struct thumbnails_list list = thumbnails_of_draft(attempt->call->arena, draft);
    for (size_t i = 0; i < list.count; i++)
        if (thumbnails_is_stale(plan->class, &list, &list.files[i]))
            draft_remove_item(draft, ATTACHMENT_CLASS, list.files[i].key);
    if (kept)
        progress->made += attach(attempt, plan, draft);
    return FAULT_NONE;
}

/* --- a cycle --------------------------------------------------------------------------------------- */

static enum fault find_plan(struct attempt *attempt, struct thumbnail_plan *plan,
                            const struct document **document_r)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct schema *schema;
    *plan = (struct thumbnail_plan){0};
    enum fault fault = reader_members(&reader, attempt->call->param, "c id");
    if (!fault)
        fault = reader_name(&reader, attempt->call->param, &plan->name);
    if (!fault)
        fault = classes_schema(attempt, &schema);
    if (!fault)
        fault = classes_confirm(attempt, FAULT_NONE); /* what is not declared ends the task */
    if (!fault)
        fault = documents_newest(attempt->worker_context->documents, attempt->ns, attempt->call->arena,
                                 &plan->name, 1, document_r);
    if (fault)
        return fault;
    plan->class = schema_find_class(schema, plan->name.class);
    if (!plan->class || !plan->class->thumbnail_count || !document_exists(*document_r))
        return FAULT_NONE;
    plan->list = thumbnails_of_document(attempt->call->arena, *document_r);
    fault = find_due(attempt, *document_r, plan);
    if (!fault && !plan->due && !plan->has_stale)
        fault = note_thumbnail(attempt, *document_r, plan);
    return fault;
}

static enum fault thumbnail_work(struct attempt *attempt)
{
    struct thumbnail_plan plan;
    const struct document *document;
    struct thumbnail_progress progress = read_progress(attempt);
    enum fault fault = find_plan(attempt, &plan, &document);
    if (!fault && plan.due)
        fault = make_thumbnail(attempt, &plan);
    if (!fault && (plan.due || plan.has_stale)) {
        fault = thumbnail_change(attempt, &plan, &progress);
        transaction_set_checkpoint(attempt->transaction, write_progress(attempt, &progress));
    }
    if (!fault)
        builder_add_bytes(attempt->reply->body, write_progress(attempt, &progress));
    return fault;
}

const struct operation builtin_thumbnail = {.name = THUMBNAILS_OPERATION,
                                            .right = RIGHT_ADMIN,
                                            .work = thumbnail_work,
                                            .task = {.queue = THUMBNAILS_QUEUE, .is_internal = true}};
