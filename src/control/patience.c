/* patience: pauses that double, half of each random. */
#include "control/patience.h"

#include <stdlib.h>

#include "base/clock.h"

enum { PAUSE_FIRST_MS = 200, PAUSE_MOST_MS = 10 * 1000, DOUBLINGS = 6 };

bool patience_goes_on(struct patience *patience, int64_t most_s)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!patience->tries)
        patience->failing_ms = now_ms;
    if (now_ms - patience->failing_ms > most_s * 1000)
        return false;
    int64_t pause_ms = (int64_t)PAUSE_FIRST_MS << (patience->tries < DOUBLINGS ? patience->tries : DOUBLINGS);
    if (pause_ms > PAUSE_MOST_MS)
        pause_ms = PAUSE_MOST_MS;
    patience->tries++;
    patience->due_ms = now_ms + pause_ms / 2 + random() % (pause_ms / 2 + 1);
    return true;
}
