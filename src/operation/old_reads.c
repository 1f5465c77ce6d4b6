/* old_reads: the same bound for each document that a decision rests on. */
#include "operation/old_reads.h"

int64_t old_reads_age(const struct worker_context *worker_context, const struct call *call, enum fault fault)
{
    bool is_unreachable = fault == FAULT_XAWAY || fault == FAULT_XTIME;
    int64_t age_s = is_unreachable && call->find_age ? call->find_age(call) : 0;
    int64_t most_s = worker_context->settings->configuration_age_s;
    return age_s < most_s ? age_s : most_s;
}

enum fault old_reads_settle(const struct worker_context *worker_context, struct call *call, int ns,
                            enum fault fault, const struct document_name *names, size_t count,
                            const struct document **documents_r)
{
    int64_t age_s = fault ? old_reads_age(worker_context, call, fault) : 0;
    if (!age_s)
        return fault;
    for (size_t i = 0; i < count; i++)
        if (!documents_find_unmoved(worker_context->documents, ns, call->arena, names[i], age_s,
                                    &documents_r[i]))
            return fault;
    call->is_by_old = true;
    return FAULT_NONE;
}
