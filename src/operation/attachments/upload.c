/* upload: create, append, show, drop.  The record of an upload (blob/blob_part.h) has its account, the digest
 * that the client has promised, and the metadata as they were sent. */
#include "operation/attachments/upload.h"

#include <inttypes.h>
#include <time.h>

#include "base/crash.h"
#include "base/log.h"
#include "blob/blob_part.h"
#include "model/document/upload_metadata.h"
#include "operation/access/access.h"
#include "operation/attachments/attachment.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/keyed_digest.h"
#include "operation/quota.h"
#include "operation/reader.h"
#include "operation/registry.h"
#include "store/blobs/store_blobs.h"

enum {
    STATUS_OK = 200,
    STATUS_CREATED = 201,
    STATUS_NO_CONTENT = 204,
    SECONDS_OF_HOUR = 3600,
    DATE_ROOM = 40
};

/* `kept` of the attempt. */
struct kept_upload {
    struct attachment_upload file; /* first: attachment_put_work reads it */
    struct bytes id;
    int status;   /* of a success */
    bool is_part; /* the file is not complete: nothing is attached */
};

/* --- the note of a record: account, promised digest, metadata --- */

/* What the client has sent is encrypted as the bytes are; the account is in clear, as elsewhere. */
static enum fault write_note(struct attempt *attempt, const char *id, struct bytes *note_r)
{
    const struct call *call = attempt->call;
    struct builder sent = {0};
    builder_add_bytes(&sent, call->attachment->promised);
    builder_add_text(&sent, "\n");
    builder_add_bytes(&sent, call->attachment->upload->metadata);
    struct bytes text = builder_take(&sent, call->arena);
    enum fault fault = store_blobs_seal_note(documents_store(attempt->worker_context->documents), attempt->ns,
                                             call->arena, bytes_of(id), &text);
    *note_r = bytes_of(arena_printf(call->arena, "%.*s\n%.*s", (int)call->caller.account.size,
                                    call->caller.account.size ? call->caller.account.data : "",
                                    (int)text.size, text.data));
    return fault;
}

struct upload_note {
    struct bytes account, promised, metadata;
};

static struct bytes account_of(struct bytes note)
{
    return bytes_cut(&note, '\n');
}

static enum fault read_note(struct attempt *attempt, struct bytes text, struct upload_note *note_r)
{
    const struct call *call = attempt->call;
    note_r->account = bytes_cut(&text, '\n');
    enum fault fault = store_blobs_open_note(documents_store(attempt->worker_context->documents), attempt->ns,
                                             call->arena, call->attachment->upload->id, &text);
    if (fault)
        return fault;
    note_r->promised = bytes_cut(&text, '\n');
    note_r->metadata = text;
    return FAULT_NONE;
}

/* Whose limits count: those of the account, and of the address, since accounts cost nothing.  Both stand in
 * the file of the upload, and addresses are few: a plain digest would show them. */
static enum fault find_owners(struct attempt *attempt, struct blob_part_state *state)
{
    const struct call *call = attempt->call;
    const struct bytes account = call->caller.account;
    enum fault fault = FAULT_NONE;
    if (access_is_administrator(call))
        return FAULT_NONE;
    if (account.size)
        fault = keyed_digest(attempt, "upload account", account, &state->owner);
    if (!fault && call->client) {
        struct bytes address = bytes_of(arena_printf(call->arena, "%" PRIu64, call->client));
        fault = keyed_digest(attempt, "upload address", address, &state->address);
    }
    return fault;
}

/* --- answers --- */

static struct blob_store *store_of(const struct attempt *attempt)
{
    return attempt->worker_context->blobs;
}

static const char *date_of(struct arena *arena, int64_t at_s)
{
    struct tm parts;
    time_t seconds = (time_t)at_s;
    char *text = ARENA_ROOM(arena, char, DATE_ROOM);
    gmtime_r(&seconds, &parts);
    strftime(text, DATE_ROOM, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return text;
}

static struct reply_upload *upload_answer(struct attempt *attempt, int status, int64_t offset)
{
    struct kept_upload *upload = attempt->kept;
    struct reply_upload *head = ARENA_NEW(attempt->call->arena, struct reply_upload);
    *head = (struct reply_upload){.offset = offset, .length = -1};
    upload->status = status;
    attempt->reply->upload = head;
    attempt->reply->is_secret = true; /* no cache keeps an offset */
    return head;
}

static void add_expiry(const struct attempt *attempt, struct reply_upload *head, int64_t created_s,
                       int64_t changed_s)
{
    int64_t age_s = attempt->worker_context->settings->blob_unused_hours * SECONDS_OF_HOUR;
    int64_t idle_s = changed_s + (!head->offset && age_s > BLOB_PART_EMPTY_S ? BLOB_PART_EMPTY_S : age_s),
            most_s = created_s + BLOB_PART_AGES * age_s;
    head->expires = date_of(attempt->call->arena, idle_s < most_s ? idle_s : most_s);
}

static enum fault upload_refuse(struct attempt *attempt, enum fault fault)
{
    if (fault != FAULT_NUPLOAD && fault != FAULT_XLOCKED)
        return fault;
    struct bytes id = attempt->call->attachment->upload->id;
    return reply_fault(attempt->call, attempt->reply, fault, NULL,
                       arena_copy(attempt->call->arena, id.data, id.size), NULL);
}

/* Others are answered as if there were no such upload. */
static enum fault check_owner(struct attempt *attempt, const struct blob_part_state *state)
{
    const struct call *call = attempt->call;
    struct bytes account = account_of(state->note);
    bool is_own = !account.size || bytes_equal(account, call->caller.account);
    return is_own || access_is_administrator(call) ? FAULT_NONE : FAULT_NUPLOAD;
}

/* --- the bytes --- */

static enum fault refuse_size(struct attempt *attempt, int64_t most, int64_t size)
{
    struct arena *arena = attempt->call->arena;
    attempt->reply->fault_status = 413;
    return reply_fault(attempt->call, attempt->reply, FAULT_ALIMIT, NULL, "Upload-Length",
                       arena_printf(arena, "%" PRId64, most), arena_printf(arena, "%" PRId64, size), NULL);
}

static enum fault upload_copy(struct attempt *attempt, struct blob_upload *blob, int64_t room,
                              int64_t *size_r)
{
    struct inlet *inlet = attempt->call->attachment->inlet;
    struct bytes piece;
    *size_r = 0;
    for (;;) {
        enum fault fault = inlet->read(inlet, &piece);
        if (fault || !piece.size)
            return fault;
        *size_r += (int64_t)piece.size;
        if (*size_r > room)
            return refuse_size(attempt, room, *size_r);
        fault = blob_store_write(blob, piece);
        if (fault)
            return fault;
    }
}

static enum fault upload_finish(struct attempt *attempt, struct blob_part *part, struct blob_upload *blob)
{
    struct kept_upload *upload = attempt->kept;
    enum fault fault = attachment_upload_seal(attempt, blob, &upload->file);
    if (fault == FAULT_ADIGEST) { /* other bytes than promised: they are worth nothing */
        enum fault removing = blob_part_remove(part);
        (void)removing; /* logged; the cleaner removes it */
    }
    struct sealed_file_keys keys;
    if (!fault) /* the name is made by the first key, which stays */
        fault = store_blobs_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    if (!fault)
        fault = blob_part_note_digest(part, &keys, &upload->file.digest);
    if (fault) {
        blob_store_abandon(blob);
        return fault;
    }
    upload->file.is_stored = true;
    return attachment_upload_publish(attempt, blob, &upload->file);
}

/* `is_kept_r`: what was received may be part of the upload now, or have ended it. */
static enum fault upload_receive(struct attempt *attempt, struct blob_part *part, bool *is_kept_r)
{
    struct kept_upload *upload = attempt->kept;
    const struct blob_part_state *state = blob_part_state(part);
    struct blob_upload *blob;
    int64_t size;
    struct sealed_file_keys keys;
    enum fault fault = attachment_upload_keys(attempt, &keys); /* former parts may be under a new one */
    if (!fault)
        fault = blob_part_continue(part, &keys, &blob);
    if (fault)
        return fault;
    fault = upload_copy(attempt, blob, state->size - state->offset, &size);
    if (fault) {
        blob_store_abandon(blob);
        return fault;
    }
    *is_kept_r = true;
    upload->is_part = state->offset + size < state->size;
    if (!upload->is_part)
        return upload_finish(attempt, part, blob);
    fault = blob_store_suspend(blob);
    return fault || !size ? fault : blob_part_advance(part, state->offset + size);
}

static struct blob_part_limits limits_of(const struct settings *settings)
{
    return (struct blob_part_limits){
        .most = settings->limit_partial_uploads,
        .most_bytes = settings->limit_partial_bytes,
        .owner_most = settings->limit_client_partial_uploads,
        .owner_most_bytes = settings->limit_client_partial_bytes,
    };
}

/* request.c names these limits to nginx when the body has not come yet. */
static enum fault refuse_limit(const struct attempt *attempt, enum blob_part_limit limit)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = {settings, attempt->call, attempt->reply};
    switch (limit) {
    case BLOB_PART_OWNER_MOST:
        return reader_busy(&reader, "limit_client_partial_uploads", settings->limit_client_partial_uploads);
    case BLOB_PART_OWNER_BYTES:
        return reader_busy(&reader, "limit_client_partial_bytes", settings->limit_client_partial_bytes);
    case BLOB_PART_MOST:
        return reader_busy(&reader, "limit_partial_uploads", settings->limit_partial_uploads);
    case BLOB_PART_BYTES:
    default:
        return reader_busy(&reader, "limit_partial_bytes", settings->limit_partial_bytes);
    }
}

/* A part of unknown size may be all that is missing. */
static enum fault reserve(struct attempt *attempt, struct blob_part *part)
{
    const struct blob_part_limits limits = limits_of(attempt->worker_context->settings);
    int64_t size = attempt->call->attachment->size;
    enum fault fault = blob_part_reserve(part, size < 0 ? INT64_MAX : size, &limits);
    return fault == FAULT_XBUSY ? refuse_limit(attempt, BLOB_PART_BYTES) : fault;
}

static enum fault upload_take(struct attempt *attempt, struct blob_part *part)
{
    const struct blob_part_state *state = blob_part_state(part);
    int64_t size = attempt->call->attachment->size;
    bool is_last = state->offset + size >= state->size;
    bool is_large = attachment_upload_is_large(is_last ? state->size : size);
    enum fault fault = is_large ? attachment_upload_enter(attempt) : FAULT_NONE;
    if (fault)
        return fault;
    fault = reserve(attempt, part);
    if (fault) {
        if (is_large)
            attachment_upload_leave(attempt);
        return fault;
    }
    bool is_kept = false;
    attempt_note_change(attempt);
    fault = upload_receive(attempt, part, &is_kept);
    if (!is_kept)
        attempt_undo_change(attempt);
    if (is_large)
        attachment_upload_leave(attempt);
    return fault;
}

static struct kept_upload *upload_begin(struct attempt *attempt, int64_t size)
{
    struct kept_upload *upload = ARENA_NEW(attempt->call->arena, struct kept_upload);
    *upload = (struct kept_upload){.file = {.size = size}};
    attempt->kept = upload;
    return upload;
}

/* From here on the call is about the attachment that the record names. */
static enum fault name_attachment(struct attempt *attempt, const struct blob_part_state *state)
{
    struct call *call = attempt->call;
    struct resource *resource = ARENA_NEW(call->arena, struct resource);
    struct attachment_request *attachment = ARENA_NEW(call->arena, struct attachment_request);
    struct upload_metadata metadata;
    struct upload_note note;
    enum fault fault = read_note(attempt, state->note, &note);
    if (fault || !upload_metadata_read(call->arena, note.metadata, &metadata))
        return fault ? fault : FAULT_NUPLOAD;
    *resource = *call->resource;
    *attachment = *call->attachment;
    resource->class = metadata.class;
    resource->id = metadata.id;
    attachment->key = metadata.key;
    attachment->mime = metadata.mime;
    attachment->promised = note.promised.size ? note.promised : NO_BYTES;
    call->resource = resource;
    call->attachment = attachment;
    return FAULT_NONE;
}

/* One that begins with no bytes has no body to be refused before. */
static enum fault may_begin(struct attempt *attempt, const struct blob_part_limits *limits,
                            enum blob_part_limit *limit_r)
{
    const struct call *call = attempt->call;
    struct blob_part_state state = {.size = call->attachment->upload->length};
    return FAULT_FIRST(call->attachment->size ? find_owners(attempt, &state) : FAULT_NUPLOAD,
                       blob_part_may_begin(store_of(attempt), call->database, &state, limits, limit_r));
}

/* Is the call now about an attachment that is going to have `size_r` bytes? */
static bool find_asked(struct attempt *attempt, int64_t *size_r)
{
    struct call *call = attempt->call;
    struct blob_part_state state;
    *size_r = call->attachment->upload->length;
    if (!call->path_count)
        return call->resource->class.size > 0;
    enum fault fault =
        FAULT_FIRST(blob_part_look(store_of(attempt), call->database, call->path[0], call->arena, &state),
                    check_owner(attempt, &state), name_attachment(attempt, &state));
    *size_r = state.size;
    return !fault && state.offset < state.size;
}

/* By quotas, the file as a whole. */
static enum fault may_be_stored(struct attempt *attempt)
{
    int64_t size;
    if (!quota_limits_bytes(attempt->call) || !find_asked(attempt, &size))
        return FAULT_NONE;
    upload_begin(attempt, size);
    return attachment_upload_may(attempt);
}

enum fault upload_may(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    const struct blob_part_limits limits = limits_of(worker_context->settings);
    struct attempt attempt = {.operation = registry_get_resource(call->resource->act),
                              .worker_context = worker_context,
                              .call = call,
                              .reply = reply,
                              .ns = documents_ns(worker_context->documents, call->database)};
    enum blob_part_limit limit = BLOB_PART_BYTES;
    enum fault fault = attempt.ns < 0 ? FAULT_BINTERNAL
                       : call->path_count
                           ? blob_part_may(worker_context->blobs, call->database, call->path[0], call->arena,
                                           call->attachment->size, &limits)
                           : may_begin(&attempt, &limits, &limit);
    if (fault == FAULT_XBUSY)
        return refuse_limit(&attempt, limit);
    return fault ? FAULT_NONE : may_be_stored(&attempt);
}

/* --- creating --- */

static enum fault create_upload(struct attempt *attempt, char id_r[BLOB_PART_ID + 1])
{
    struct call *call = attempt->call;
    struct blob_part_state state = {.size = call->attachment->upload->length};
    const struct blob_part_limits limits = limits_of(attempt->worker_context->settings);
    enum blob_part_limit limit;
    enum fault fault = find_owners(attempt, &state);
    blob_part_draw_id(id_r);
    if (!fault)
        fault = write_note(attempt, id_r, &state.note);
    if (fault)
        return fault;
    attempt_note_change(attempt);
    fault = blob_part_create(store_of(attempt), call->database, id_r, &state, &limits, &limit);
    if (fault != FAULT_XBUSY)
        return fault;
    attempt_undo_change(attempt);
    return refuse_limit(attempt, limit);
}

/* The upload is there, and has had its part of the body. */
static enum fault continue_upload(struct attempt *attempt, struct blob_part *part)
{
    return attachment_upload_begin_commit(attempt, upload_take(attempt, part));
}

enum fault upload_create(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct upload_request *request = call->attachment->upload;
    int64_t most = attempt->worker_context->settings->limit_blob_bytes;
    char *id = ARENA_ROOM(call->arena, char, BLOB_PART_ID + 1);
    struct blob_part *part;
    struct blob_part_state state;
    struct kept_upload *upload = upload_begin(attempt, request->length);
    if (request->length > most)
        return refuse_size(attempt, most, request->length);
    enum fault fault =
        FAULT_FIRST(attachment_upload_judge(attempt, &upload->file), create_upload(attempt, id));
    if (fault)
        return fault;
    upload->id = bytes_of(id);
    upload->is_part = true;
    if (request->has_bytes || !request->length) {
        fault = blob_part_open(store_of(attempt), call->database, upload->id, call->arena, &part);
        if (!fault) {
            fault = continue_upload(attempt, part);
            blob_part_close(part);
        }
    }
    if (!fault)
        fault = blob_part_look(store_of(attempt), call->database, upload->id, call->arena, &state);
    if (fault)
        return fault;
    struct reply_upload *head =
        upload_answer(attempt, STATUS_CREATED, upload->is_part ? state.offset : state.size);
    head->location = arena_printf(call->arena, "/%.*s/upload/%s", (int)call->ns.size, call->ns.data, id);
    if (upload->is_part)
        add_expiry(attempt, head, state.created_s, state.changed_s);
    return FAULT_NONE;
}

/* --- continuing --- */

static enum fault refuse_offset(struct attempt *attempt, int64_t offset)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_AOFFSET, NULL,
                       arena_printf(attempt->call->arena, "%" PRId64, offset), NULL);
}

static enum fault append_upload(struct attempt *attempt, struct blob_part *part)
{
    struct call *call = attempt->call;
    const struct blob_part_state *state = blob_part_state(part);
    struct kept_upload *upload = upload_begin(attempt, state->size);
    upload->id = call->attachment->upload->id;
    enum fault fault = FAULT_FIRST(check_owner(attempt, state), name_attachment(attempt, state));
    if (!fault && call->attachment->upload->offset != state->offset)
        fault = refuse_offset(attempt, state->offset);
    if (!fault && state->offset < state->size)
        fault = attachment_upload_judge(attempt, &upload->file);
    upload->is_part = true;
    if (!fault && state->offset < state->size)
        fault = continue_upload(attempt, part);
    if (fault)
        return fault;
    struct reply_upload *head =
        upload_answer(attempt, STATUS_NO_CONTENT, upload->is_part ? state->offset : state->size);
    if (upload->is_part)
        add_expiry(attempt, head, state->created_s, time(NULL));
    return FAULT_NONE;
}

enum fault upload_append(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct blob_part *part;
    enum fault fault =
        blob_part_open(store_of(attempt), call->database, call->attachment->upload->id, call->arena, &part);
    if (fault)
        return upload_refuse(attempt, fault);
    fault = append_upload(attempt, part);
    blob_part_close(part);
    return upload_refuse(attempt, fault);
}

/* --- looking and dropping --- */

enum fault upload_show(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct blob_part_state state;
    struct upload_note note;
    upload_begin(attempt, 0)->is_part = true;
    enum fault fault =
        blob_part_look(store_of(attempt), call->database, call->attachment->upload->id, call->arena, &state);
    if (!fault)
        fault = FAULT_FIRST(check_owner(attempt, &state), read_note(attempt, state.note, &note));
    if (fault)
        return upload_refuse(attempt, fault);
    struct reply_upload *head = upload_answer(attempt, STATUS_OK, state.offset);
    head->length = state.size;
    head->metadata = arena_copy(call->arena, note.metadata.data, note.metadata.size);
    if (state.offset < state.size)
        add_expiry(attempt, head, state.created_s, state.changed_s);
    return FAULT_NONE;
}

enum fault upload_drop(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct blob_part *part;
    upload_begin(attempt, 0)->is_part = true;
    enum fault fault =
        blob_part_open(store_of(attempt), call->database, call->attachment->upload->id, call->arena, &part);
    if (fault)
        return upload_refuse(attempt, fault);
    fault = check_owner(attempt, blob_part_state(part));
    if (!fault) {
        attempt_note_change(attempt);
        fault = blob_part_remove(part);
    }
    blob_part_close(part);
    if (fault)
        return upload_refuse(attempt, fault);
    upload_answer(attempt, STATUS_NO_CONTENT, -1);
    return FAULT_NONE;
}

/* --- the commit --- */

enum fault upload_work(struct attempt *attempt)
{
    const struct kept_upload *upload = attempt->kept;
    return upload->is_part ? FAULT_NONE : attachment_put_work(attempt);
}

/* The file is attached: from now on the upload counts as complete. */
static void upload_complete(struct attempt *attempt, const struct kept_upload *upload)
{
    struct blob_part *part;
    crash_at(CRASH_PART_ATTACHED);
    enum fault fault =
        blob_part_open(store_of(attempt), attempt->call->database, upload->id, attempt->call->arena, &part);
    if (!fault) {
        fault = blob_part_complete(part);
        blob_part_close(part);
    }
    if (fault && fault != FAULT_XLOCKED) /* sending its last part again changes nothing */
        log_warning("attachments: an upload that is attached cannot be completed");
}

enum fault upload_afterwork(struct attempt *attempt)
{
    const struct kept_upload *upload = attempt->kept;
    if (!upload->is_part)
        upload_complete(attempt, upload);
    attempt->reply->body->size = attempt->out;
    attempt->reply->status = upload->status;
    return FAULT_NONE;
}
