/* throttle: doubles the delay of a process that dies young. */
#include "serve/throttle.h"

void throttle_died(struct throttle *throttle, int64_t started_ms, int64_t now_ms, int64_t young_ms)
{
    if (now_ms - started_ms >= young_ms)
        throttle->delay_ms = 0;
    else if (!throttle->delay_ms)
        throttle->delay_ms = THROTTLE_LEAST_MS;
    else
        throttle->delay_ms =
            throttle->delay_ms * 2 < THROTTLE_MOST_MS ? throttle->delay_ms * 2 : THROTTLE_MOST_MS;
    throttle->not_before_ms = now_ms + throttle->delay_ms;
}

bool throttle_allows(const struct throttle *throttle, int64_t now_ms)
{
    return now_ms >= throttle->not_before_ms;
}
