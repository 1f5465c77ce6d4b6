/* processes: an entry belongs to the instance that set `instance` (compare-and-swap from 0), until that is
 * set to 0 again. */
#include "segment/processes.h"

#include "base/crash.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"

struct process {
    _Alignas(64) _Atomic uint32_t state; /* FREE, HELD, DIRTY (owner dead, not repaired) */
    _Atomic uint32_t instance, pid;
    _Atomic uint32_t ns;        /* 1 + namespace where a commit may be in flight; 0: none */
    _Atomic uint64_t lock_file; /* inode; 0: not yet written */
};
_Static_assert(sizeof(struct process) == 64, "a process is one cache line");
_Static_assert(PROCESS_FREE == 0, "zero is a valid beginning");

size_t processes_size(const struct board_sizes *sizes UNUSED)
{
    return PROCESSES_MOST * sizeof(struct process);
}

void processes_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->processes = memory;
}

static struct process *at(const struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->processes[index];
}

/* Words in use only grow. */
static void raise_words(struct segment *segment, uint32_t needed)
{
    uint32_t present = atomic_load(segment->words);
    while (present < needed && !atomic_compare_exchange_weak(segment->words, &present, needed))
        ;
}

int processes_take(struct segment *segment, uint32_t instance, uint64_t lock_file, int count, int *indexes_r)
{
    assert(instance != 0);
    int taken = 0;
    for (int i = 0; i < PROCESSES_MOST && taken < count; i++) {
        struct process *entry = at(segment, i);
        uint32_t nobody = 0;
        if (!atomic_compare_exchange_strong(&entry->instance, &nobody, instance))
            continue;
        assert(atomic_load(&entry->state) == PROCESS_FREE && atomic_load(&entry->ns) == 0);
        atomic_store(&entry->lock_file, lock_file);
        raise_words(segment, (uint32_t)i / 64 + 1);
        indexes_r[taken++] = i;
        crash_at(CRASH_INSTANCE_ENTRY);
    }
    return taken;
}

enum process_state processes_state(const struct segment *segment, int index)
{
    return (enum process_state)atomic_load(&at(segment, index)->state);
}

void processes_set(struct segment *segment, int index, enum process_state state, uint32_t pid)
{
    struct process *entry = at(segment, index);
    struct pulse *pulse = metrics_pulse(segment, index);
    if (state != PROCESS_HELD) { /* before any process may hold it again */
        atomic_store(&pulse->task_claim, 0);
        metrics_note_wait(pulse, PULSE_WAITS_FOR_NOTHING, 0, 0, 0); /* another one may wait in its place */
    }
    atomic_store(&entry->pid, pid);
    atomic_store(&entry->state, state);
}

uint32_t processes_instance(const struct segment *segment, int index)
{
    return atomic_load(&at(segment, index)->instance);
}

uint64_t processes_lock_file(const struct segment *segment, int index)
{
    return atomic_load(&at(segment, index)->lock_file);
}

uint32_t processes_pid(const struct segment *segment, int index)
{
    return atomic_load(&at(segment, index)->pid);
}

int processes_namespace(const struct segment *segment, int index)
{
    return (int)atomic_load(&at(segment, index)->ns) - 1;
}

int processes_count(const struct segment *segment)
{
    return (int)atomic_load(segment->words) * 64;
}

void processes_set_namespace(struct segment *segment, int index, int ns)
{
    assert(ns >= -1 && ns < NAMESPACES_MOST);
    atomic_store(&at(segment, index)->ns, (uint32_t)(ns + 1));
}

void processes_release(struct segment *segment, int index)
{
    struct process *entry = at(segment, index);
    assert(atomic_load(&entry->ns) == 0); /* else its bits may be set */
    metrics_rest(segment, index);
    atomic_store(&entry->pid, 0);
    atomic_store(&entry->state, PROCESS_FREE);
    crash_at(CRASH_MASTER_RELEASED);
    atomic_store(&entry->lock_file, 0);
    atomic_store(&entry->instance, 0); /* last: from here on another instance may take it */
}
