/* thumbnail: makes the thumbnails that the images of a document lack (doc/reference/attachments.md): the task
 * of a commit that has added an image, or of a sweep.  param {"c","id"} → out {"made","refused"}: how many
 * thumbnails were made, and of how many images none can be.
 *
 * A cycle compares the document with the declaration of its class, and works on one image.  The decoder runs
 * before the document is fetched, so no writer waits for it; then the image must still have the same file.
 * The last cycle finds nothing to do and notes that. */
#include "operation/builtin.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "blob/blob_sealed.h"
#include "blob/object_stores.h"
#include "blob/thumbnailer.h"
#include "document/transaction.h"
#include "model/document/attachment.h"
#include "model/document/thumbnails.h"
#include "operation/access/stored_caller.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/attempt.h"
#include "operation/classes.h"
#include "operation/reader.h"
#include "segment/counts/metrics.h"
#include "operation/reply.h"
#include "seal/sealed_feed.h"
#include "store/blobs/store_blobs.h"
#include "store/blobs/store_thumbnails.h"

/* --- bytes of an attachment --- */

/* The bytes of an attachment, for an operation that works on them: from the directory or an
 * object store, decrypted where the namespace is encrypted.  The directory first; then the row of the file
 * names its object; then the directory again, into which it may just have moved. */

enum { TIMEOUT_S = 30 };

/* Keys last as long as the session, which any statement may find dead. */
static enum fault attachment_bytes_read_file(struct attempt *attempt, const struct attachment *attachment,
                                             bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_file_keys keys;
    enum fault fault =
        store_blobs_renew_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    return fault ? fault
                 : blob_sealed_read(attempt->worker_context->blobs, attempt->call->database, &keys,
                                    &attachment->digest, take, context);
}

static bool feed_piece(void *context, struct bytes piece)
{
    return sealed_feed_add(context, piece);
}

static enum fault attachment_bytes_read_object(struct attempt *attempt, const struct attachment *attachment,
                                               struct object_store *store, const char *name,
                                               bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_file_keys keys;
    struct sealed_feed *feed = NULL;
    enum sealed_file_state state = SEALED_FILE_FINE;
    enum fault fault =
        store_blobs_renew_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    if (fault)
        return fault;
    const int64_t size = blob_sealed_size(&keys, attachment->size);
    const struct blob_digest stored = blob_sealed_name(&keys, &attachment->digest);
    if (keys.count)
        feed = sealed_feed_create(&keys, stored.bytes, size, take, context);
    bool is_read =
        object_store_read(store, name, size, feed ? feed_piece : take, feed ? (void *)feed : context);
    if (feed) {
        state = sealed_feed_end(feed);
        sealed_feed_destroy(feed);
    }
    if (!is_read) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: %s: %s", name, object_store_problem(store));
        return FAULT_XSTORE;
    }
    return state == SEALED_FILE_FINE ? FAULT_NONE
                                     : blob_sealed_report(state, attempt->call->database, &stored);
}

static enum fault read_from_store(struct attempt *attempt, const struct attachment *attachment,
                                  const struct blob_object *object,
                                  bool (*take)(void *context, struct bytes piece), void *context)
{
    const struct object_stores *stores = attempt->worker_context->object_stores;
    const struct object_store_place *place;
    char problem[400] = "there are no object stores";
    if (!stores || !object_stores_find(stores, object->store, &place, problem, sizeof problem)) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: a file is in an object store: %s", problem);
        return FAULT_XSTORE;
    }
    struct object_store_place own = *place;
    own.timeout_s = TIMEOUT_S;
    struct object_store *store = object_store_open(&own);
    enum fault fault = attachment_bytes_read_object(attempt, attachment, store, object->name, take, context);
    object_store_close(store);
    return fault;
}

/* In pieces that are valid during the call; `take` returns false to end early.  FAULT_BCONTENT: the file is
 * missing or was altered; FAULT_XSTORE: its store cannot be used.  The cause is logged. */
static enum fault attachment_bytes_read(struct attempt *attempt, const struct attachment *attachment,
                                        bool (*take)(void *context, struct bytes piece), void *context)
{
    struct blob_object object;
    enum fault fault = attachment_bytes_read_file(attempt, attachment, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    fault = store_blobs_find_object(documents_store(attempt->worker_context->documents), attempt->ns,
                                    attempt->call->arena, &attachment->digest, &object);
    if (fault)
        return fault;
    fault = object.store ? read_from_store(attempt, attachment, &object, take, context)
                         : attachment_bytes_read_file(attempt, attachment, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    log_error("attachments: a file is missing database=%.*s", (int)attempt->call->database.size,
              attempt->call->database.data);
    return FAULT_BCONTENT;
}

/* --- the decoder --- */

/* The thumbnails of one image: read, decoded by a process of its own, stored as files that no
 * item has yet.  The bytes pass from the store into the decoder in pieces. */

struct thumbnail_made {
    const struct schema_thumbnail *thumbnail;
    struct blob_digest digest;
    int64_t size;
};

/* `kept` of the attempt: the tries of a cycle share it. */
struct thumbnail_kept {
    struct blob_digest image;
    bool is_refused; /* none can be made; the row of the file has the reason */
    struct thumbnail_made made[SCHEMA_THUMBNAILS_MOST];
    size_t count;
};

_Static_assert((int)THUMBNAILER_BOXES_MOST == (int)SCHEMA_THUMBNAILS_MOST, "all of a class are made at once");

enum {
    WALL_FACTOR = 5, /* on a busy machine the decoder waits for a processor */
    KILLS_MOST = 3,  /* the attempt at which a kill is noted as the reason */
};

static int64_t wall_ms(const struct attempt *attempt)
{
    return attempt->worker_context->settings->limit_thumbnail_s * 1000 * WALL_FACTOR;
}

static struct thumbnailer_job thumbnail_make_plan(const struct attempt *attempt,
                                                  const struct schema_thumbnail *const *wanted, size_t count)
{
    const struct settings *settings = attempt->worker_context->settings;
    int64_t most_ms = wall_ms(attempt);
    int64_t left_ms = attempt->call->deadline_ms - clock_monotonic_ms();
    struct thumbnailer_job job = {
        .program = settings->thumbnail_program,
        .bytes_most = settings->limit_thumbnail_bytes,
        .pixels_most = settings->limit_thumbnail_pixels,
        .memory_mb = settings->limit_thumbnail_memory_mb,
        .cpu_s = settings->limit_thumbnail_s,
        .wall_ms = left_ms < most_ms ? left_ms : most_ms,
        .box_count = count,
    };
    for (size_t i = 0; i < count; i++)
        job.boxes[i] = (struct thumbnailer_box){wanted[i]->width, wanted[i]->height};
    return job;
}

static enum fault thumbnail_make_refuse(struct attempt *attempt, const struct thumbnails_file *file,
                                        const char *reason, struct thumbnail_kept *kept)
{
    const struct call *call = attempt->call;
    log_info("thumbnails: none can be made namespace=%.*s task=%.*s size=%lld: %s", (int)call->ns.size,
             call->ns.data, call->task ? (int)call->task->id.size : 0, call->task ? call->task->id.data : "",
             (long long)file->attachment.size, reason);
    kept->is_refused = true;
    return store_thumbnails_refuse(documents_store(attempt->worker_context->documents), attempt->ns,
                                   call->arena, &file->attachment.digest, reason);
}

/* A decoder that is killed again and again is noted too, else the task would never end; not one that had less
 * than its time, as the task's own was over. */
static bool is_final(const struct attempt *attempt, const struct thumbnailer_job *job,
                     enum thumbnailer_end end)
{
    const struct task *task = attempt->call->task;
    return end == THUMBNAILER_REFUSED || (end == THUMBNAILER_KILLED && job->wall_ms >= wall_ms(attempt) &&
                                          task && task->attempt + 1 >= KILLS_MOST);
}

/* Makes these thumbnails of the image.  FAULT_XSTORE, XFULL, BCONTENT: the file cannot be read, or the
 * thumbnails not stored; FAULT_XTIME: the decoder was killed: another attempt may succeed; FAULT_OTHUMBNAILS:
 * this server makes none; FAULT_BINTERNAL: the decoder cannot be run.  What is the fault of the image is
 * noted. */
static enum fault thumbnail_make(struct attempt *attempt, const struct thumbnails_file *file,
                                 const struct schema_thumbnail *const *wanted, size_t count,
                                 struct thumbnail_kept *kept)
{
    const struct thumbnailer_job job = thumbnail_make_plan(attempt, wanted, count);
    struct bytes images[THUMBNAILER_BOXES_MOST];
    const char *reason;
    *kept = (struct thumbnail_kept){.image = file->attachment.digest};
    if (!thumbnailer_is_there(job.program))
        return reply_fault(attempt->call, attempt->reply, FAULT_OTHUMBNAILS, NULL, NULL);
    if (file->attachment.size > job.bytes_most)
        return thumbnail_make_refuse(attempt, file, "too many bytes", kept);
    struct thumbnailer *thumbnailer = thumbnailer_start(attempt->call->arena, &job);
    if (!thumbnailer)
        return FAULT_BINTERNAL;
    enum fault fault = attachment_bytes_read(attempt, &file->attachment, thumbnailer_feed, thumbnailer);
    if (fault) {
        thumbnailer_abandon(thumbnailer);
        return fault;
    }
    enum thumbnailer_end end = thumbnailer_finish(thumbnailer, images, &reason);
    if (is_final(attempt, &job, end))
        return thumbnail_make_refuse(attempt, file, reason, kept);
    if (end != THUMBNAILER_MADE)
        return end == THUMBNAILER_KILLED ? FAULT_XTIME : FAULT_BINTERNAL;
    for (size_t i = 0; i < count && !fault; i++) {
        struct attachment_upload stored;
        fault = attachment_upload_bytes(attempt, images[i], &stored);
        kept->made[i] = (struct thumbnail_made){wanted[i], stored.digest, stored.size};
        kept->count += !fault;
    }
    return fault;
}

/* --- the operation --- */

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
    const struct task *task = attempt->call->task;
    struct thumbnail_progress progress = {0};
    struct json *root;
    if (task && task->checkpoint.data && json_is_tree(attempt->call->arena, task->checkpoint, 1, 1, &root) &&
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
    enum fault fault =
        FAULT_FIRST(transaction_fetch(attempt->transaction, plan->name, &draft), obey_quotas(attempt));
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
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "c id"),
                                   reader_name(&reader, attempt->call->param, &plan->name),
                                   classes_schema(attempt, &schema));
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
