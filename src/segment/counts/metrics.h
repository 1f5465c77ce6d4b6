/* metrics: the current activity and counters of each process, in the shared segment.  The master monitors
 * them and /metrics adds them up.  Written by the process of the index. */
#ifndef STAMPD_SEGMENT_COUNTS_METRICS_H
#define STAMPD_SEGMENT_COUNTS_METRICS_H

#include "base/bytes.h"
#include "segment/segment.h"

/* What a request may wait for, while its process has nothing else to do (operation/long_poll.h). */
enum pulse_wait {
    PULSE_WAITS_FOR_NOTHING,
    PULSE_WAITS_FOR_TASK,
    PULSE_WAITS_FOR_RECORDS,
    PULSE_WAITS_FOR_END,     /* of a task that the caller has requested */
    PULSE_WAITS_FOR_DECODER, /* of images: the process of the thumbnails */
    PULSE_WAITS_FOR_HOSTS    /* that hold the records of spread namespaces */
};

enum { PULSE_NAME_BYTES = 64, PULSE_LATENCIES = 18, PULSE_NS_BYTES = 16, PULSE_WHAT_BYTES = 32 };
struct pulse {
    _Alignas(64) _Atomic int64_t request_since_ms; /* monotonic; 0: idle */
    _Atomic uint64_t requests, commits, conflicts, hits, misses, faults, replica_reads;
    _Atomic int64_t
        limit_ms; /* of the present request, if it differs from that of an operation; 0: it does not */
    _Atomic int64_t task_claim; /* stamp of the claim of the tasks that it runs; 0: none */
    _Atomic uint64_t tasks_done, tasks_failed, tasks_lost;
    /* Of the present request: how many of its changes, of the database or of anything else that lasts, may be
     * made or under way. */
    _Atomic uint64_t may_have_changed;
    /* What the present request waits for, the index of its namespace + 1 above; its client, 0: unknown; and
     * of tasks the queue: 1 + its place (task_counts.h). */
    _Atomic uint64_t waits_for, waits_client, waits_queue;
    /* Application code must have returned by then (monotonic); 0: none runs. */
    _Atomic int64_t deadline_ms;
    /* Of the request since request_since_ms: the code of its namespace, and what it does; cut if longer. */
    _Atomic uint64_t ns[PULSE_NS_BYTES / 8], what[PULSE_WHAT_BYTES / 8];
    char application[PULSE_NAME_BYTES]; /* the operation that is running or ran last, for the log */
    _Atomic uint64_t database_us;       /* of all requests: waiting for PostgreSQL */
    _Atomic uint64_t latency_us,
        latencies[PULSE_LATENCIES]; /* of requests: sum and histogram counts (latency.h) */
};
struct pulse *metrics_pulse(const struct segment *segment, int index);
/* Notes what the process does now: an operation, or what else the request is.  For people: readers may find
 * words of two requests. */
void metrics_note_work(struct pulse *pulse, struct bytes ns, struct bytes what);
void metrics_read_work(const struct pulse *pulse, char ns_r[PULSE_NS_BYTES + 1],
                       char what_r[PULSE_WHAT_BYTES + 1]);
/* Notes for what the process waits; `queue`: of tasks, 1 + its place, otherwise 0. */
void metrics_note_wait(struct pulse *pulse, enum pulse_wait kind, int ns, uint64_t client, uint64_t queue);
/* How many processes wait for that; those of the namespace; those of the client (0: none). */
struct pulse_waiting {
    int64_t processes, of_ns, of_client;
};
void metrics_waiting(const struct segment *segment, enum pulse_wait kind, int ns, uint64_t client,
                     struct pulse_waiting *waiting_r);
/* How many wait for tasks of the queue at this place. */
int64_t metrics_waiting_at(const struct segment *segment, size_t place);
/* The process is gone: clears its present activity. */
void metrics_rest(struct segment *segment, int index);

/* A pulse has one writer, so counting needs no locked instruction. */
static inline void pulse_count(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + more, memory_order_relaxed);
}

/* Before the present request changes something; and when that is known not to have happened.  Read by others
 * when this process is gone. */
static inline void pulse_begin_change(struct pulse *pulse)
{
    atomic_store(&pulse->may_have_changed, atomic_load(&pulse->may_have_changed) + 1);
}
static inline void pulse_undo_change(struct pulse *pulse)
{
    assert(atomic_load(&pulse->may_have_changed));
    atomic_store(&pulse->may_have_changed, atomic_load(&pulse->may_have_changed) - 1);
}

/* For board.c. */
size_t metrics_size(const struct board_sizes *sizes);
void metrics_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
