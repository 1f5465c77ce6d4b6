/* backoff: when to ask a server again that cannot answer at present, and for how long. */
#ifndef STAMPD_CONTROL_BACKOFF_H
#define STAMPD_CONTROL_BACKOFF_H

#include "base/base.h"

/* Of one request; all 0 before its first try. */
struct backoff {
    int tries;                  /* that failed */
    int64_t failing_ms, due_ms; /* monotonic: since when it fails, when to send it again */
};

/* After a failure: sets when it is due again, later each time, and never at the same moment as others that
 * began to fail together.  False: it has failed for more than `most_s` seconds. */
MUST_USE bool backoff_goes_on(struct backoff *backoff, int64_t most_s);

#endif
