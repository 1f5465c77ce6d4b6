/* thumbnail_make: the bytes pass from the store into the decoder in pieces. */
#include "operation/attachments/thumbnail_make.h"

#include "base/clock.h"
#include "base/log.h"
#include "blob/thumbnailer.h"
#include "operation/attachments/attachment_bytes.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/reply.h"
#include "store/blobs/store_thumbnails.h"

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

enum fault thumbnail_make(struct attempt *attempt, const struct thumbnails_file *file,
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
