/* task_sweep: the document is read from the cache, so a scan with nothing to do costs no query. */
#include "operation/tasks/task_sweep.h"

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

enum fault task_sweep(struct worker_context *worker_context, struct call *call, int ns)
{
    bool is_wanted = false;
    if (!call->accounts.is_on)
        return FAULT_NONE;
    enum fault fault = is_due(worker_context, call, ns, &is_wanted);
    return fault || !is_wanted ? fault
                               : task_request_own(worker_context, call, ns, BYTES(TASK_SWEEP_OPERATION));
}
