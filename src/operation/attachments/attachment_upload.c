/* attachment_upload: judges, receives, stores. */
#include "operation/attachments/attachment_upload.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "operation/access/access.h"
#include "operation/quota.h"
#include "operation/reader.h"
#include "operation/registry.h"
#include "operation/worker_context.h"
#include "segment/counts/shares.h"
#include "store/blobs/store_blobs.h"

enum { SMALL_BYTES = 1048576 /* quicker than most operations: the shares do not count it */ };
enum { ALL_CLIENTS = 1 }; /* the subject of the share of all */

/* --- before the bytes --- */

/* All that the commit needs is there: ends the try. */
static enum fault end_trial(struct attempt_commit *commit, struct attempt *attempt UNUSED)
{
    *(bool *)commit->context = true;
    return FAULT_AVERSION; /* any fault: nothing is written */
}

/* The same for a file, whose quotas of accounts are those of the commit. */
static enum fault end_file_trial(struct attempt_commit *commit, struct attempt *attempt)
{
    return FAULT_FIRST(quota_check_owners(attempt), end_trial(commit, attempt));
}

static enum attempt_next settle_trial(struct attempt_commit *commit, enum fault *fault)
{
    bool is_fine = *(bool *)commit->context;
    if (is_fine)
        *fault = FAULT_NONE;
    return !is_fine && reply_is_retried(commit->attempts[0]->reply, *fault) ? ATTEMPT_AGAIN : ATTEMPT_END;
}

static enum fault run_trial(struct attempt *attempt,
                            enum fault (*complete)(struct attempt_commit *commit, struct attempt *attempt))
{
    bool is_fine = false;
    struct attempt_commit commit = {
        .attempts = &attempt, .count = 1, .context = &is_fine, .complete = complete, .settle = settle_trial};
    return attempt_run(&commit);
}

enum fault attachment_upload_try(struct attempt *attempt)
{
    return run_trial(attempt, end_trial);
}

enum fault attachment_upload_keys(struct attempt *attempt, struct sealed_file_keys *keys_r)
{
    return store_blobs_renew_keys(documents_store(attempt->worker_context->documents), attempt->ns, keys_r);
}

enum fault attachment_upload_judge(struct attempt *attempt, struct attachment_upload *upload)
{
    struct bytes promised = attempt->call->attachment->promised;
    if (promised.data && !blob_store_read_digest(promised, &upload->digest))
        return FAULT_BINTERNAL;
    if (!attempt->call->attachment->inlet)
        return FAULT_ABODY;
    return run_trial(attempt, end_file_trial);
}

/* Nothing of the trial stays but a refusal by a quota. */
static enum fault forget_trial(struct attempt *attempt)
{
    struct reply *reply = attempt->reply;
    reply->fault = FAULT_NONE;
    reply->phase = PHASE_BEFORE;
    reply->argument_count = 0;
    reply->detail = NULL;
    reply->at = NULL;
    reply->fault_status = 0;
    return FAULT_NONE;
}

enum fault attachment_upload_may(struct attempt *attempt)
{
    static const char quotas[] = "quotas.";
    struct reply *reply = attempt->reply;
    if (!quota_limits_bytes(attempt->call))
        return FAULT_NONE;
    attempt->out = reply->body->size;
    attempt->changes_before = attempt_count_changes(attempt->worker_context);
    enum fault fault = run_trial(attempt, end_file_trial);
    bool is_quota = fault == FAULT_ALIMIT && reply->argument_count &&
                    strncmp(reply->arguments[0], quotas, sizeof quotas - 1) == 0;
    reply->body->size = attempt->out;
    return is_quota ? fault : forget_trial(attempt);
}

enum fault attachment_upload_may_put(struct worker_context *worker_context, struct call *call,
                                     struct reply *reply)
{
    struct attachment_upload upload = {.size = call->attachment->size};
    struct attempt attempt = {.operation = registry_get_resource(call->resource->act),
                              .worker_context = worker_context,
                              .call = call,
                              .reply = reply,
                              .ns = documents_ns(worker_context->documents, call->database),
                              .kept = &upload};
    return attempt.ns < 0 ? FAULT_NONE : attachment_upload_may(&attempt);
}

/* --- the shares --- */

bool attachment_upload_is_large(int64_t size)
{
    return size > SMALL_BYTES;
}

static int64_t share_of(int64_t setting, int64_t workers, int64_t part)
{
    int64_t share = setting ? setting : workers / part;
    return share > 0 ? share : 1;
}

enum fault attachment_upload_enter(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = {settings, attempt->call, attempt->reply};
    const char *const limits[] = {"limit_client_uploads", "limit_uploads"};
    const struct shares_subject subjects[SHARES_SUBJECTS] = {
        {attempt->call->client, share_of(settings->limit_client_uploads, settings->workers, 4)},
        {ALL_CLIENTS, share_of(settings->limit_uploads, settings->workers, 2)},
    };
    int full;
    if (shares_enter(attempt->worker_context->segment, SHARES_UPLOADS, subjects, &full))
        return FAULT_NONE;
    return reader_busy(&reader, limits[full], subjects[full].most);
}

void attachment_upload_leave(struct attempt *attempt)
{
    shares_leave(attempt->worker_context->segment, SHARES_UPLOADS);
}

/* --- the bytes --- */

static enum fault attachment_upload_copy(const struct attachment_request *request, struct blob_upload *blob)
{
    struct bytes piece;
    for (;;) {
        enum fault fault = request->inlet->read(request->inlet, &piece);
        if (fault || !piece.size)
            return fault;
        fault = blob_store_write(blob, piece);
        if (fault)
            return fault;
    }
}

static enum fault check_digest(struct attempt *attempt, const struct blob_digest *digest)
{
    char sha[BLOB_HEX + 1];
    struct bytes promised = attempt->call->attachment->promised;
    blob_store_write_digest(digest, sha);
    if (!promised.data || bytes_equal(promised, bytes_of(sha)))
        return FAULT_NONE;
    return reply_fault(attempt->call, attempt->reply, FAULT_ADIGEST, NULL, sha, NULL);
}

enum fault attachment_upload_seal(struct attempt *attempt, struct blob_upload *blob,
                                  struct attachment_upload *upload)
{
    return FAULT_FIRST(blob_store_seal(blob, &upload->digest, &upload->size),
                       check_digest(attempt, &upload->digest));
}

/* Where rules decide, the account that has sent a file may attach it by its digest, too. */
static enum fault claim(struct attempt *attempt, const struct attachment_upload *upload)
{
    const struct call *call = attempt->call;
    if (!call->rules || !call->caller.account.size)
        return FAULT_NONE;
    return store_blobs_claim(documents_store(attempt->worker_context->documents), attempt->ns, call->arena,
                             &upload->digest, call->caller.account);
}

/* The order matters: a file is registered before it appears, so that the cleaner finds it
 * (store_blobs.h). */
enum fault attachment_upload_publish(struct attempt *attempt, struct blob_upload *blob,
                                     const struct attachment_upload *upload)
{
    enum fault fault = store_blobs_touch(documents_store(attempt->worker_context->documents), attempt->ns,
                                         attempt->call->arena, &upload->digest, upload->size);
    if (fault) {
        blob_store_abandon(blob);
        return fault;
    }
    crash_at(CRASH_BLOB_REGISTERED);
    return FAULT_FIRST(blob_store_finish(blob), claim(attempt, upload));
}

enum fault attachment_upload_bytes(struct attempt *attempt, struct bytes content,
                                   struct attachment_upload *upload_r)
{
    struct blob_upload *blob;
    struct sealed_file_keys keys;
    *upload_r = (struct attachment_upload){0};
    enum fault fault =
        FAULT_FIRST(attachment_upload_keys(attempt, &keys),
                    blob_store_begin(attempt->worker_context->blobs, attempt->call->database, &keys, &blob));
    if (fault)
        return fault;
    fault = FAULT_FIRST(blob_store_write(blob, content),
                        blob_store_seal(blob, &upload_r->digest, &upload_r->size));
    if (!fault)
        return attachment_upload_publish(attempt, blob, upload_r);
    blob_store_abandon(blob);
    return fault;
}

static enum fault attachment_upload_store(struct attempt *attempt, struct blob_upload *blob)
{
    enum fault fault = FAULT_FIRST(attachment_upload_copy(attempt->call->attachment, blob),
                                   attachment_upload_seal(attempt, blob, attempt->kept));
    if (!fault)
        return attachment_upload_publish(attempt, blob, attempt->kept);
    blob_store_abandon(blob);
    return fault;
}

static enum fault receive_attachment_upload(struct attempt *attempt)
{
    struct blob_upload *blob;
    struct sealed_file_keys keys;
    bool is_large = attachment_upload_is_large(attempt->call->attachment->size);
    enum fault fault = is_large ? attachment_upload_enter(attempt) : FAULT_NONE;
    if (fault)
        return fault;
    fault =
        FAULT_FIRST(attachment_upload_keys(attempt, &keys),
                    blob_store_begin(attempt->worker_context->blobs, attempt->call->database, &keys, &blob),
                    attachment_upload_store(attempt, blob));
    if (is_large)
        attachment_upload_leave(attempt);
    return fault;
}

enum fault attachment_upload_begin_commit(struct attempt *attempt, enum fault fault)
{
    struct worker_context *worker_context = attempt->worker_context;
    struct call *call = attempt->call;
    call->deadline_ms = clock_monotonic_ms() + worker_context->settings->limit_operation_s * 1000;
    documents_begin_request(worker_context->documents, call->deadline_ms);
    return fault ? fault : access_renew(worker_context, call, attempt->reply, attempt->operation);
}

enum fault attachment_upload_receive(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct attachment_upload *upload = ARENA_NEW(call->arena, struct attachment_upload);
    *upload = (struct attachment_upload){.size = call->attachment->size};
    attempt->kept = upload;
    enum fault fault = attachment_upload_judge(attempt, upload); /* before anything is on the disk */
    if (!fault)
        fault = receive_attachment_upload(attempt);
    upload->is_stored = !fault;
    return attachment_upload_begin_commit(attempt, fault);
}
