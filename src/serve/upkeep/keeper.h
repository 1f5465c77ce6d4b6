/* keeper: deletes old data of each namespace in small batches (operating.md, "What the server forgets").
 *
 * One child of the master, with two sessions at most, one of them for documents that expire in this
 * minute.  It has no entry and no mark: the database's triggers announce its changes, as they do those of
 * administrators.  Any number of keepers may run at once: each batch is a transaction under an advisory lock,
 * and if a keeper is killed, its committed batches stand. */
#ifndef STAMPD_SERVE_UPKEEP_KEEPER_H
#define STAMPD_SERVE_UPKEEP_KEEPER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until SIGTERM.  Calls stop_open: from then on the child handles its own signals. */
void keeper_run(const struct settings *settings, struct segment *segment);

#endif
