/* task_retry: the setting of the operation, else what it declares, else the setting of all. */
#include "operation/tasks/task_retry.h"

#include "base/schedule.h"
#include "edge/crypto/crypto.h"
#include "operation/registry.h"

static struct bytes policy_of(const struct settings *settings, const struct worker_queues *workers,
                              struct bytes name)
{
    struct bytes retries;
    if (schedule_retries_of(settings->task_retries_of, name, &retries))
        return retries;
    const struct operation *operation = registry_find(name);
    if (operation && operation->task.retries)
        return bytes_of(operation->task.retries);
    const struct worker_queue *queue = operation ? NULL : worker_queues_of(workers, name);
    return queue && queue->retries.data ? queue->retries : bytes_of(settings->task_retries);
}

int64_t task_retry_start(const struct settings *settings, const struct worker_queues *workers,
                         struct bytes operation, int64_t failures)
{
    int64_t after_ms;
    uint32_t dice;
    crypto_random(&dice, sizeof dice);
    return schedule_retry_ms(policy_of(settings, workers, operation), failures, dice, &after_ms)
               ? stamp_add_ms(stamp_now(), after_ms)
               : TASK_PARKED;
}
