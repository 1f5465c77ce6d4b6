/* put_files: the whole form is in memory, and no larger than any other body. */
#include "operation/attachments/put_files.h"

#include "base/crash.h"
#include "edge/crypto/crypto.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/reply.h"

_Static_assert(sizeof((struct blob_digest *)0)->bytes == CRYPTO_SHA256, "a digest is a SHA-256");

/* `kept` of the attempt: one for each file of the call. */
struct put_file {
    struct blob_digest digest;
    bool is_named; /* by an item */
};

void put_files_take(struct attempt *attempt, size_t place, struct attachment *attachment)
{
    struct put_file *files = attempt->kept;
    files[place].is_named = true;
    attachment->digest = files[place].digest;
    attachment->size = (int64_t)attempt->call->files[place].content.size;
}

static enum fault store_named(struct attempt *attempt, const struct put_file *files)
{
    const struct call *call = attempt->call;
    int64_t size = 0;
    for (size_t i = 0; i < call->file_count; i++)
        size += files[i].is_named ? (int64_t)call->files[i].content.size : 0;
    bool is_large = attachment_upload_is_large(size);
    enum fault fault = is_large ? attachment_upload_enter(attempt) : FAULT_NONE;
    if (fault)
        return fault;
    struct attachment_upload stored;
    for (size_t i = 0; i < call->file_count && !fault; i++)
        if (files[i].is_named)
            fault = attachment_upload_bytes(attempt, call->files[i].content, &stored);
    if (is_large)
        attachment_upload_leave(attempt);
    return fault;
}

static bool is_any_named(const struct call *call, const struct put_file *files)
{
    for (size_t i = 0; i < call->file_count; i++)
        if (files[i].is_named)
            return true;
    return false;
}

enum fault put_files_store(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    if (!call->file_count)
        return FAULT_NONE;
    struct put_file *files = ARENA_ARRAY(call->arena, struct put_file, call->file_count);
    for (size_t i = 0; i < call->file_count; i++)
        crypto_sha256(call->files[i].content, files[i].digest.bytes);
    attempt->kept = files;
    enum fault fault = attachment_upload_try(attempt);
    if (!fault && !is_any_named(call, files))
        return FAULT_NONE;
    return fault ? fault : store_named(attempt, files);
}
