/* ends: deletes expired documents (maxLife) in the minute in which they expire.  Subscribers are notified by
 * live events and by push, as of any commit made outside the workers.
 *
 * Part of the keeper.  Expiry has a resolution of one minute: each minute the keeper checks the databases
 * that may have expired documents, with one session at a time.  The relay marks them in the segment
 * (segment/counts/purge_counts.h): databases that it has begun to listen to, and those whose schema has
 * changed.  A check that finds no class with expiry clears the mark. */
#ifndef STAMPD_SERVE_UPKEEP_ENDS_H
#define STAMPD_SERVE_UPKEEP_ENDS_H

#include "base/settings.h"
#include "segment/segment.h"

struct ends;
struct ends *ends_create(const struct settings *settings, struct segment *segment);
void ends_destroy(struct ends *ends);

/* When ends_run is due; monotonic. */
int64_t ends_due_ms(const struct ends *ends);
/* Deletes expired documents for a few seconds at most; the rest is due again soon.  Calls `pause` between two
 * batches; false: stop. */
void ends_run(struct ends *ends, bool (*pause)(void *context), void *context);

#endif
