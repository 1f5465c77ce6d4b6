/* latency_estimate: how long tasks of an operation take, learned from their requests; the manager lets quick
 * ones run together.  An estimate: operations may share a slot of the table, then the last one has it.  Pure.
 */
#ifndef STAMPD_QUEUE_LATENCY_ESTIMATE_H
#define STAMPD_QUEUE_LATENCY_ESTIMATE_H

#include "base/base.h"

enum {
    LATENCY_SLOTS = 256,
    LATENCY_UNKNOWN_US = 1000000, /* what is not known, or has failed, goes alone */
    LATENCY_LEAST_US = 100,
};

struct latency_estimate {
    struct latency_slot {
        uint64_t name; /* hash of namespace and operation; 0: free */
        int64_t task_us;
    } places[LATENCY_SLOTS];
};

/* What a task of the operation will take. */
int64_t latency_estimate_us(const struct latency_estimate *latency_estimate, int ns, const char *operation);
/* Tasks of these operations, some perhaps of the same, were a request that was guessed to take `guess_us` and
 * took `took_us`: whatever their number, it is one observation. */
void latency_estimate_learn(struct latency_estimate *latency_estimate, int ns, const char *const *operations,
                            size_t count, int64_t guess_us, int64_t took_us);

#endif
