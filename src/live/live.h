/* live: server-sent change notifications with gap-free resume (live.md).
 *
 * One child of the master serves only live events: it holds thousands of connections and occupies no worker.
 * It receives commits from the workers (segment/feed.h) and all other changes as notifications of PostgreSQL.
 * Nothing is lost when it dies: clients reconnect with the id of their last event, and the database returns
 * what they have missed. */
#ifndef STAMPD_LIVE_LIVE_H
#define STAMPD_LIVE_LIVE_H

#include "serve/heritage.h"

/* Runs until it is signalled to stop; then it ends the streams, and their clients reconnect.  Returns the
 * exit status. */
int live_run(const struct heritage *heritage);

#endif
