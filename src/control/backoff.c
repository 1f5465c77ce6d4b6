/* backoff: pauses that double, half of each random. */
#include "control/backoff.h"

#include <stdlib.h>

#include "base/clock.h"

enum { PAUSE_FIRST_MS = 200, PAUSE_MOST_MS = 10 * 1000, DOUBLINGS = 6 };

bool backoff_goes_on(struct backoff *backoff, int64_t most_s)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!backoff->tries)
        backoff->failing_ms = now_ms;
    if (now_ms - backoff->failing_ms > most_s * 1000)
        return false;
    int64_t pause_ms = (int64_t)PAUSE_FIRST_MS << (backoff->tries < DOUBLINGS ? backoff->tries : DOUBLINGS);
    if (pause_ms > PAUSE_MOST_MS)
        pause_ms = PAUSE_MOST_MS;
    backoff->tries++;
    backoff->due_ms = now_ms + pause_ms / 2 + random() % (pause_ms / 2 + 1);
    return true;
}
