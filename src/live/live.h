/* live: tells those who listen which documents have changed, by server-sent events (doc/live.md).
 *
 * One child of the master, which does nothing else: thousands of connections, and none of a worker.  It hears
 * of commits from the workers (document/ears), of all others by notifications, and is wrong in nothing when
 * it dies: those who listened come again with the id of their last event, and the database tells what they
 * have missed. */
#ifndef STAMPD_LIVE_LIVE_H
#define STAMPD_LIVE_LIVE_H

#include "serve/heritage.h"

/* Until it is told to stop; then those who listen are sent away, to come again.  Returns the exit status. */
int live_run(const struct heritage *heritage);

#endif
