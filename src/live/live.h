/* live: server-sent change notifications with gap-free resume (doc/live.md).
 *
 * One child of the master, which does nothing else: it holds thousands of connections, and none of a worker.
 * It receives commits from the workers (segment/feed.h) and all other changes as notifications of PostgreSQL.
 * Nothing is lost when it dies: clients reconnect with the id of their last event, and the database returns
 * what they have missed. */
#ifndef STAMPD_LIVE_LIVE_H
#define STAMPD_LIVE_LIVE_H

#include "serve/heritage.h"

/* Until it is told to stop; then those who listen are sent away, to come again.  Returns the exit status. */
int live_run(const struct heritage *heritage);

#endif
