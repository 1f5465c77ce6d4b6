/* keeper: deletes what is too old, in each namespace, little by little (doc/operating.md, "What the server
 * forgets").
 *
 * One child of the master, with two sessions at most, one of them for what ends in this minute (ends.h).  It
 * has no entry and no mark: what it changes is told by the triggers of the database, as the changes of
 * administrators are.  Any number of them may be at it: a batch is a transaction under an advisory lock, and
 * one that is killed has done what its transactions have done. */
#ifndef STAMPD_SERVE_KEEPER_H
#define STAMPD_SERVE_KEEPER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Until SIGTERM.  Calls stop_open: the child's signals are its own from then on. */
void keeper_run(const struct settings *settings, struct segment *segment);

#endif
