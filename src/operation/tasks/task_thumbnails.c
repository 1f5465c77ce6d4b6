/* task_thumbnails: the database decides, since the schema that this process has cached may be an older one.
 */
#include "operation/tasks/task_thumbnails.h"

#include "model/thumbnails.h"
#include "operation/registry.h"
#include "operation/tasks/task_request.h"
#include "store/store_thumbnails.h"

enum { WAITING_MOST = 100 /* while so many documents wait for thumbnails, no more are looked for */ };

static enum fault add(struct attempt *attempt, bool *is_any_r)
{
    const struct task_request request = {
        .operation = attempt->operation,
        .resource = BYTES(THUMBNAILS_SWEEP),
        .domain = BYTES(THUMBNAILS_SWEEP),
        .longest_ms = 1, /* a task that waits keeps its start, else scans would postpone it */
        .priority = TASK_PRIORITY_MOST,
        .is_of_server = true,
    };
    struct task_excess excess;
    *is_any_r = true;
    return task_request_add(attempt, &request, &excess);
}

enum fault task_thumbnails(struct worker_context *worker_context, struct call *call, int ns)
{
    struct attempt attempt = {.operation = registry_find(BYTES(THUMBNAILS_SWEEP)),
                              .worker_context = worker_context,
                              .call = call,
                              .ns = ns};
    bool is_due = false;
    enum fault fault = store_thumbnails_due(documents_store(worker_context->documents), ns, call->arena,
                                            WAITING_MOST, &is_due);
    return fault || !is_due || !attempt.operation ? fault : task_request_commit(&attempt, add);
}
