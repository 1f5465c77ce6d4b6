/* activity: the last hour of this host: samples of its counters, a ring in the shared segment, with which the
 * charts of the console begin.  The masters of its instances write it (serve/metrics/sampler.h): one of them,
 * every 20 seconds.  It outlives the processes, not the segment: a server that starts with another segment
 * begins with an empty ring.
 *
 * Writers never wait.  A sample that is being written, or whose writer has died, is skipped by readers. */
#ifndef STAMPD_SEGMENT_COUNTS_ACTIVITY_H
#define STAMPD_SEGMENT_COUNTS_ACTIVITY_H

#include <stdatomic.h>

#include "segment/counts/metrics.h"
#include "segment/segment.h"

/* The first counters grow, the others are as they were at that moment. */
#define ACTIVITY_NUMBERS(X)                                                                                  \
    X(requests)                                                                                              \
    X(faults)                                                                                                \
    X(commits)                                                                                               \
    X(conflicts)                                                                                             \
    X(hits)                                                                                                  \
    X(misses)                                                                                                \
    X(due)                                                                                                   \
    X(running)                                                                                               \
    X(parked)                                                                                                \
    X(busy)                                                                                                  \
    X(workers)                                                                                               \
    X(doubt)                                                                                                 \
    X(listeners)
#define ACTIVITY_MEMBER(name) ACTIVITY_##name,
enum activity_number { ACTIVITY_NUMBERS(ACTIVITY_MEMBER) ACTIVITY_COUNT };
#undef ACTIVITY_MEMBER

enum { ACTIVITY_EVERY_MS = 20000, ACTIVITY_KEPT = 181 /* the two ends of an hour */ };

struct activity_sample {
    uint64_t number; /* the first is 1 */
    int64_t at_ms;   /* since the epoch */
    int64_t ms;      /* monotonic */
    uint64_t values[ACTIVITY_COUNT];
    uint64_t latencies[PULSE_LATENCIES]; /* latency.h */
};

/* For activity.c and the layout of the segment only. */
struct activity_board {
    _Alignas(64) _Atomic int64_t next_ms; /* monotonic; 0: there is no sample */
    _Atomic uint64_t count;
    struct activity_entry {
        _Atomic uint64_t words[sizeof(struct activity_sample) /
                               sizeof(uint64_t)]; /* the number is written last, and 0 first */
    } entries[ACTIVITY_KEPT];
};

/* Whether a sample is due; then it is this process's to take. */
bool activity_take_turn(struct segment *segment, int64_t now_ms);
/* Adds a sample; its number is ignored. */
void activity_add(struct segment *segment, const struct activity_sample *sample);
/* The number of the newest; 0: there is none. */
uint64_t activity_newest(const struct segment *segment);
/* False: the ring does not have the sample of this number, or it is being written. */
bool activity_read(const struct segment *segment, uint64_t number, struct activity_sample *sample_r);

/* For board.c. */
size_t activity_size(const struct board_sizes *sizes);
void activity_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
