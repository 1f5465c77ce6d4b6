/* throttle: limits how soon a process that ended is restarted.  Pure.
 *
 * A process that lived for a while is replaced at once; one that keeps dying young waits twice as long each
 * time. */
#ifndef STAMPD_SERVE_THROTTLE_H
#define STAMPD_SERVE_THROTTLE_H

#include "base/base.h"

enum { THROTTLE_LEAST_MS = 100, THROTTLE_MOST_MS = 30000 };

struct throttle {
    int64_t delay_ms; /* the last delay; 0: none */
    int64_t not_before_ms;
};

/* A process started at `started_ms` has died; it died young if it lived less than `young_ms`.  Times are
 * monotonic. */
void throttle_died(struct throttle *throttle, int64_t started_ms, int64_t now_ms, int64_t young_ms);
bool throttle_allows(const struct throttle *throttle, int64_t now_ms);

#endif
