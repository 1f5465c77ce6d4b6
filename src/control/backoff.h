/* backoff: when to retry a request that a server cannot serve at present, and for how long. */
#ifndef STAMPD_CONTROL_BACKOFF_H
#define STAMPD_CONTROL_BACKOFF_H

#include "base/base.h"

/* State of one request; all 0 before its first try. */
struct backoff {
    int tries;                  /* failed so far */
    int64_t failing_ms, due_ms; /* monotonic: time of the first failure, of the next try */
};

/* After a failure: sets the time of the next try.  Pauses grow and are random, so that requests that began to
 * fail together are not retried together.  False: the request has been failing for more than `most_s`
 * seconds. */
MUST_USE bool backoff_goes_on(struct backoff *backoff, int64_t most_s);

#endif
