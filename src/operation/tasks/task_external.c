/* task_external: operations made of declarations; who may take their tasks. */
#include "operation/tasks/task_external.h"

#include "operation/access/access.h"
#include "operation/registry.h"

static bool may_schedule(const struct call *call, const struct worker_queue *queue)
{
    return queue->requests == WORKER_REQUESTS_ANYBODY ||
           (queue->requests == WORKER_REQUESTS_ACCOUNTS && call->caller.account.data);
}

const struct operation *task_external_find(const struct call *call, struct bytes name)
{
    const struct operation *operation = registry_find(name);
    const struct worker_queue *queue = operation ? NULL : worker_queues_of(call->workers, name);
    if (!queue)
        return operation;
    struct operation *external = ARENA_NEW(call->arena, struct operation);
    *external = (struct operation){.name = arena_copy(call->arena, name.data, name.size),
                                   .right = RIGHT_PUBLIC,
                                   .obeys_rules = true,
                                   .task = {.queue = queue->number,
                                            .is_external = true,
                                            .may_clients_schedule = may_schedule(call, queue)}};
    return external;
}

uint32_t task_external_queues(const struct call *call)
{
    if (access_is_administrator(call))
        return UINT32_MAX << WORKER_QUEUES_FIRST;
    return call->key_queues |
           worker_queues_by_roles(call->workers, call->caller.roles, call->caller.role_count);
}
