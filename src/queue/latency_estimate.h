/* latency_estimate: estimates how long the tasks of an operation take, from their requests; the manager runs
 * quick ones together.  Operations may share a slot of the table; then the last one owns it.  Pure. */
#ifndef STAMPD_QUEUE_LATENCY_ESTIMATE_H
#define STAMPD_QUEUE_LATENCY_ESTIMATE_H

#include "base/base.h"

enum {
    LATENCY_SLOTS = 256,
    LATENCY_UNKNOWN_US = 1000000, /* operations that are unknown, or have failed, run alone */
    LATENCY_LEAST_US = 100,
};

struct latency_estimate {
    struct latency_slot {
        uint64_t name; /* hash of namespace and operation; 0: free */
        int64_t task_us;
    } slots[LATENCY_SLOTS];
};

/* The estimate for a task of the operation. */
int64_t latency_estimate_us(const struct latency_estimate *latency_estimate, int ns, const char *operation);
/* Records a request of tasks of these operations, possibly repeated, which was estimated at `guess_us` and
 * took `took_us`: one observation, whatever their number. */
void latency_estimate_learn(struct latency_estimate *latency_estimate, int ns, const char *const *operations,
                            size_t count, int64_t guess_us, int64_t took_us);

#endif
