/* slow: logs requests that took as long as the setting slow_ms, with where the time went.
 *
 * The phases are those of the header Server-Timing; the time that was waited for PostgreSQL is a part of
 * them. A wait for something to happen, which the client has requested (long_poll.h), is not counted. */
#ifndef STAMPD_SERVE_SLOW_H
#define STAMPD_SERVE_SLOW_H

#include "base/settings.h"
#include "operation/reply.h"
#include "segment/counts/metrics.h"

/* At the arrival of a request. */
void slow_begin(void);
/* Behind its answer; reply->timing is not NULL. */
void slow_note(const struct settings *settings, const struct pulse *pulse, const struct call *call,
               struct reply *reply);

#endif
