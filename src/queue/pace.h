/* pace: how long tasks of an operation take, as their requests have shown; the manager lets quick ones go
 * together.  A guess: several operations may share a place in the table, then the last one has it.  Pure. */
#ifndef STAMPD_QUEUE_PACE_H
#define STAMPD_QUEUE_PACE_H

#include "base/base.h"

enum {
    PACE_PLACES = 256,
    PACE_UNKNOWN_US = 1000000, /* what is not known, or has failed, goes alone */
    PACE_LEAST_US = 100,
};

struct pace {
    struct pace_place {
        uint64_t name; /* hash of namespace and operation; 0: free */
        int64_t task_us;
    } places[PACE_PLACES];
};

/* What a task of the operation will take. */
int64_t pace_guess_us(const struct pace *pace, int space, const char *operation);
/* Tasks of these operations, some perhaps of the same, were a request that was guessed to take `guess_us` and
 * took `took_us`: whatever their number, it is one observation. */
void pace_learn(struct pace *pace, int space, const char *const *operations, size_t count, int64_t guess_us,
                int64_t took_us);

#endif
