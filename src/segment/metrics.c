/* metrics: one pulse per process. */
#include "segment/metrics.h"

_Static_assert(sizeof(struct pulse) == 384, "a pulse is six cache lines");

size_t metrics_size(const struct board_sizes *sizes UNUSED)
{
    return PROCESSES_MOST * sizeof(struct pulse);
}

void metrics_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->metrics = memory;
}

struct pulse *metrics_pulse(const struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->metrics[index];
}

void metrics_rest(struct segment *segment, int index)
{
    struct pulse *pulse = metrics_pulse(segment, index);
    atomic_store(&pulse->request_since_ms, 0);
    atomic_store(&pulse->deadline_ms, 0);
    atomic_store(&pulse->limit_ms, 0);
    atomic_store(&pulse->may_have_changed, 0);
    atomic_store(&pulse->task_claim, 0);
    atomic_store(&pulse->waits_for_task, 0);
}

int64_t metrics_waiting(const struct segment *segment)
{
    int64_t waiting = 0;
    for (int i = 0; i < PROCESSES_MOST; i++)
        waiting += atomic_load(&metrics_pulse(segment, i)->waits_for_task) != 0;
    return waiting;
}

int64_t metrics_waiting_at(const struct segment *segment, size_t place)
{
    int64_t waiting = 0;
    for (int i = 0; i < PROCESSES_MOST; i++)
        waiting += atomic_load(&metrics_pulse(segment, i)->waits_for_task) == place + 1;
    return waiting;
}
