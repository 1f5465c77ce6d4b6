/* throttle: how soon a process that ended may be started again.  Pure.
 *
 * One that lived for a while is replaced at once; one that keeps dying young waits, each time twice as long.
 */
#ifndef STAMPD_SERVE_THROTTLE_H
#define STAMPD_SERVE_THROTTLE_H

#include "base/base.h"

enum { THROTTLE_LEAST_MS = 100, THROTTLE_MOST_MS = 30000 };

struct throttle {
    int64_t delay_ms; /* the last one; 0: all is well */
    int64_t not_before_ms;
};

/* A process started at `started_ms` has died: young when it did not live for `young_ms`.  Times are
 * monotonic. */
void throttle_died(struct throttle *throttle, int64_t started_ms, int64_t now_ms, int64_t young_ms);
bool throttle_allows(const struct throttle *throttle, int64_t now_ms);

#endif
