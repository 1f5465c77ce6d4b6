/* relay: receives PostgreSQL's notifications of changes made elsewhere (psql, other hosts) and advances their
 * slot stamps.
 *
 * One child of the master.  It has no entry and no mark: the only error it can make is to advance a stamp a
 * moment late.  It receives nothing while disconnected, so it advances all stamps after each connect. */
#ifndef STAMPD_SERVE_RELAY_H
#define STAMPD_SERVE_RELAY_H

#include "base/settings.h"
#include "segment/segment.h"

/* Listens in every namespace of the segment, including new ones, until SIGTERM (stop it after the workers,
 * which need it while they drain).  Calls stop_open: from then on the child handles its own signals. */
void relay_run(const struct settings *settings, struct segment *segment);

#endif
