/* task_sweep: the document is read from the cache, so a scan with nothing to do costs no query. */
#include "operation/tasks/task_sweep.h"

#include "operation/registry.h"
#include "operation/tasks/task_request.h"

struct document_name task_sweep_name(void)
{
    return (struct document_name){BYTES("Ticket"), BYTES("ends")};
}

int64_t task_sweep_read(struct bytes days)
{
    int64_t number;
    return days.data && bytes_to_i64(days, &number) ? number : 0;
}

static enum fault is_due(struct worker_context *worker_context, struct call *call, int ns, bool *is_due_r)
{
    const struct document_name name = task_sweep_name();
    const struct document *document;
    enum fault fault = documents_newest(worker_context->documents, ns, call->arena, &name, 1, &document);
    if (fault)
        return fault;
    const struct item *item = document_find_item(document, BYTES(TASK_SWEEP_ITEM), BYTES(""));
    int64_t days = task_sweep_read(item ? item->content : NO_BYTES);
    *is_due_r = days != call->accounts.anonymous_days;
    return FAULT_NONE;
}

static enum fault add(struct attempt *attempt, bool *is_any_r)
{
    const struct task_request request = {
        .operation = attempt->operation,
        .resource = BYTES(TASK_SWEEP_OPERATION),
        .domain = BYTES(TASK_SWEEP_OPERATION),
        .longest_ms = 1, /* a task that waits keeps its start, else scans would postpone it */
        .priority = TASK_PRIORITY_MOST,
        .is_of_server = true,
    };
    struct task_excess excess;
    *is_any_r = true;
    return task_request_add(attempt, &request, &excess);
}

enum fault task_sweep(struct worker_context *worker_context, struct call *call, int ns)
{
    struct attempt attempt = {.operation = registry_find(BYTES(TASK_SWEEP_OPERATION)),
                              .worker_context = worker_context,
                              .call = call,
                              .ns = ns};
    bool is_wanted = false;
    if (!call->accounts.is_on || !attempt.operation)
        return FAULT_NONE;
    enum fault fault = is_due(worker_context, call, ns, &is_wanted);
    return fault || !is_wanted ? fault : task_request_commit(&attempt, add);
}
