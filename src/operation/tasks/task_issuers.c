/* task_issuers: the state of each issuer is read from the cached document, so a scan with nothing due costs
 * no query. */
#include "operation/tasks/task_issuers.h"

#include "base/clock.h"
#include "operation/access/issuer_keys.h"
#include "operation/registry.h"
#include "operation/tasks/task_request.h"

/* One task at a time for each issuer: further ones are merged with it. */
static enum fault request(struct attempt *attempt, const struct issuer *issuer, struct bytes id)
{
    struct builder param = {0};
    struct task_excess excess;
    json_add_text(&param, "{\"fetch\":", issuer->name);
    builder_add_text(&param, "}");
    const struct task_request request = {
        .operation = attempt->operation,
        .param = {arena_copy(attempt->call->arena, param.data, param.size), param.size},
        .resource = bytes_of(
            arena_printf(attempt->call->arena, TASK_ISSUERS_OPERATION "/%.*s", (int)id.size, id.data)),
        .longest_ms = 1, /* a task that waits keeps its start, else scans would postpone it */
        .priority = TASK_PRIORITY,
    };
    builder_free(&param);
    return task_request_add(attempt, &request, &excess);
}

static enum fault add_due(struct attempt *attempt, const struct issuer *issuer, bool *is_any)
{
    struct worker_context *worker_context = attempt->worker_context;
    struct document_name names[ISSUER_KEYS_DOCUMENTS];
    struct issuer_state state;
    enum fault fault = issuer_keys_find_state(worker_context->documents, attempt->ns, attempt->call->arena,
                                              issuer, names, &state);
    if (fault)
        return fault;
    bool is_wanted = issuer_keys_are_wanted(worker_context->segment, attempt->ns, issuer->name);
    if (!issuer_keys_are_due(worker_context->settings, &state, is_wanted, clock_present_ms()))
        return FAULT_NONE;
    *is_any = true;
    return request(attempt, issuer, names[0].id);
}

static enum fault add_all(struct attempt *attempt, bool *is_any_r)
{
    const struct issuers *issuers = attempt->call->accounts.issuers;
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < issuers->count && !fault; i++)
        fault = add_due(attempt, &issuers->list[i], is_any_r);
    return fault;
}

enum fault task_issuers(struct worker_context *worker_context, struct call *call, int ns)
{
    struct attempt attempt = {.operation = registry_find(BYTES(TASK_ISSUERS_OPERATION)),
                              .worker_context = worker_context,
                              .call = call,
                              .ns = ns};
    return call->accounts.issuers && attempt.operation ? task_request_commit(&attempt, add_all) : FAULT_NONE;
}
