/* relay: hears of changes that this host's workers did not make (psql, other hosts) and moves their stamps.
 *
 * One child of the master.  It has no entry and no mark: a stamp moved a moment late is all that it can be
 * wrong in.  While its connection was away it heard nothing, so after each connection all stamps are moved.
 */
#ifndef STAMPD_SERVE_RELAY_H
#define STAMPD_SERVE_RELAY_H

#include "base/settings.h"
#include "segment/segment.h"

/* Listens in every namespace of the segment, also in those that come, until SIGTERM (end it after the
 * workers, which need it while they drain).  Calls stop_open: the child's signals are its own from then on.
 */
void relay_run(const struct settings *settings, struct segment *segment);

#endif
