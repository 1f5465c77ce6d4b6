/* patience: when to ask a server again that cannot answer at present, and for how long. */
#ifndef STAMPD_CONTROL_PATIENCE_H
#define STAMPD_CONTROL_PATIENCE_H

#include "base/base.h"

/* Of one request; all 0 before its first try. */
struct patience {
    int tries;                  /* that failed */
    int64_t failing_ms, due_ms; /* monotonic: since when it fails, when to send it again */
};

/* After a failure: sets when it is due again, later each time, and never at the same moment as others that
 * began to fail together.  False: it has failed for more than `most_s` seconds. */
MUST_USE bool patience_goes_on(struct patience *patience, int64_t most_s);

#endif
