/* metrics: the metrics of the instance that answers, all its workers together, in the format of Prometheus;
 * for administrators, in the namespace z.  param {} → the text, which is not JSON. */
#include "operation/builtin.h"

#include "operation/administration/of_z.h"
#include "operation/reader.h"

static enum fault metrics_work(struct attempt *attempt)
{
    const struct worker_context *context = attempt->worker_context;
    const struct reader reader = {context->settings, attempt->call, attempt->reply};
    enum fault fault =
        of_z_check_place(&reader, "Metrics are those of the server: call it in the namespace z.");
    if (!fault)
        fault = reader_members(&reader, attempt->call->param, "");
    if (fault)
        return fault;
    if (!context->write_metrics)
        return reply_fault(attempt->call, attempt->reply, FAULT_BINTERNAL, NULL, NULL);
    attempt->reply->mime = MIME_METRICS;
    context->write_metrics(context, attempt->reply->body);
    return FAULT_NONE;
}

const struct operation builtin_metrics = {
    .name = "metrics", .right = RIGHT_ADMIN, .only_reads = true, .is_safe = true, .work = metrics_work};
