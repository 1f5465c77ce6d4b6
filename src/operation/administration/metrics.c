/* metrics: the metrics of the instance that answers, all its workers together, in the format of Prometheus;
 * for administrators, in the namespace z.  param {} → the text, which is not JSON.  param {"after"} → out
 * {"every_s","generation","names","samples","now"}: the last hour of the host, behind the sample of this
 * number. */
#include "operation/builtin.h"

#include "model/document/stamp.h"
#include "operation/administration/of_z.h"
#include "operation/reader.h"
#include "segment/warnings.h"

static const int64_t NO_AFTER = -1, AFTER_MOST = INT64_C(1) << 53;

static enum fault metrics_work(struct attempt *attempt)
{
    const struct worker_context *context = attempt->worker_context;
    const struct reader reader = {context->settings, attempt->call, attempt->reply};
    int64_t after = NO_AFTER;
    enum fault fault =
        of_z_check_place(&reader, "Metrics are those of the server: call it in the namespace z.");
    if (!fault)
        fault = FAULT_FIRST(
            reader_members(&reader, attempt->call->param, "after"),
            reader_integer(&reader, attempt->call->param, "after", 0, AFTER_MOST, NO_AFTER, &after));
    if (fault)
        return fault;
    if (!context->write_metrics || !context->write_activity)
        return reply_fault(attempt->call, attempt->reply, FAULT_BINTERNAL, NULL, NULL);
    if (after != NO_AFTER) {
        context->write_activity(context, (uint64_t)after, attempt->reply->body);
        return FAULT_NONE;
    }
    attempt->reply->mime = MIME_METRICS;
    context->write_metrics(context, attempt->reply->body);
    return FAULT_NONE;
}

const struct operation builtin_metrics = {
    .name = "metrics", .right = RIGHT_ADMIN, .only_reads = true, .is_safe = true, .work = metrics_work};

/* The last warnings and errors of the instance that answers, of all its processes; for
 * administrators, in the namespace z.  param {"limit"} → out {"warnings":[{"at","level","pid","text"}…]}, the
 * newest first. */

enum { LIMIT_STANDARD = 100 };

static void write_warning(struct builder *body, const struct warning *warning)
{
    builder_printf(body, "{\"at\":%lld,\"level\":\"%s\",\"pid\":%d,\"text\":",
                   (long long)stamp_from_epoch_ms(warning->at_ms),
                   warning->level == LOG_LEVEL_ERROR ? "error" : "warning", warning->pid);
    json_add_string(body, bytes_of(warning->text));
    builder_add_text(body, "}");
}

static enum fault warnings_work(struct attempt *attempt)
{
    const struct worker_context *context = attempt->worker_context;
    const struct reader reader = {context->settings, attempt->call, attempt->reply};
    struct builder *body = attempt->reply->body;
    int64_t limit = LIMIT_STANDARD;
    enum fault fault =
        of_z_check_place(&reader, "Warnings are those of the server: call it in the namespace z.");
    if (!fault)
        fault = FAULT_FIRST(
            reader_members(&reader, attempt->call->param, "limit"),
            reader_integer(&reader, attempt->call->param, "limit", 1, WARNINGS_KEPT, LIMIT_STANDARD, &limit));
    if (fault)
        return fault;
    struct warning *warnings = ARENA_ARRAY(attempt->call->arena, struct warning, (size_t)limit);
    size_t count = warnings_read(context->segment, warnings, (size_t)limit);
    builder_add_text(body, "{\"warnings\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(body, ",");
        write_warning(body, &warnings[i]);
    }
    builder_add_text(body, "]}");
    return FAULT_NONE;
}

const struct operation builtin_warnings = {
    .name = "warnings", .right = RIGHT_ADMIN, .only_reads = true, .is_safe = true, .work = warnings_work};
