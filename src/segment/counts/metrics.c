/* metrics: one pulse per process. */
#include "segment/counts/metrics.h"

#include <string.h>

_Static_assert(sizeof(struct pulse) == 448, "a pulse is seven cache lines");

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
    metrics_note_wait(pulse, PULSE_WAITS_FOR_NOTHING, 0, 0, 0);
}

static void metrics_store_text(_Atomic uint64_t *words, size_t count, struct bytes text)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = 0;
        if (text.size > i * sizeof word)
            memcpy(&word, text.data + i * sizeof word,
                   text.size - i * sizeof word < sizeof word ? text.size - i * sizeof word : sizeof word);
        atomic_store_explicit(&words[i], word, memory_order_relaxed);
    }
}

static void metrics_load_text(const _Atomic uint64_t *words, size_t count, char *text_r)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        memcpy(text_r + i * sizeof word, &word, sizeof word);
    }
    text_r[count * sizeof(uint64_t)] = '\0';
}

void metrics_note_work(struct pulse *pulse, struct bytes ns, struct bytes what)
{
    metrics_store_text(pulse->ns, PULSE_NS_BYTES / 8, ns);
    metrics_store_text(pulse->what, PULSE_WHAT_BYTES / 8, what);
}

void metrics_read_work(const struct pulse *pulse, char ns_r[PULSE_NS_BYTES + 1],
                       char what_r[PULSE_WHAT_BYTES + 1])
{
    metrics_load_text(pulse->ns, PULSE_NS_BYTES / 8, ns_r);
    metrics_load_text(pulse->what, PULSE_WHAT_BYTES / 8, what_r);
}

static uint64_t word_of(enum pulse_wait kind, int ns)
{
    return (uint64_t)(ns + 1) << 8 | kind;
}

void metrics_note_wait(struct pulse *pulse, enum pulse_wait kind, int ns, uint64_t client, uint64_t queue)
{
    atomic_store(&pulse->waits_client, client);
    atomic_store(&pulse->waits_queue, queue);
    atomic_store(&pulse->waits_for, kind ? word_of(kind, ns) : 0);
}

void metrics_waiting(const struct segment *segment, enum pulse_wait kind, int ns, uint64_t client,
                     struct pulse_waiting *waiting_r)
{
    *waiting_r = (struct pulse_waiting){0};
    for (int i = 0; i < PROCESSES_MOST; i++) {
        const struct pulse *pulse = metrics_pulse(segment, i);
        uint64_t waits_for = atomic_load(&pulse->waits_for);
        if ((waits_for & UINT8_MAX) != kind)
            continue;
        waiting_r->processes++;
        waiting_r->of_ns += waits_for == word_of(kind, ns);
        waiting_r->of_client += client && atomic_load(&pulse->waits_client) == client;
    }
}

int64_t metrics_waiting_at(const struct segment *segment, size_t place)
{
    int64_t waiting = 0;
    for (int i = 0; i < PROCESSES_MOST; i++)
        waiting += atomic_load(&metrics_pulse(segment, i)->waits_queue) == place + 1;
    return waiting;
}
