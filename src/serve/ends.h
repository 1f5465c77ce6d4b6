/* ends: documents that end by themselves (maxLife) are deleted when their minute comes, so that those who
 * follow them are told: by live events, by push, as of any commit that no worker made.
 *
 * Part of the keeper.  Ends come with the minute, so each minute the databases that may have some are looked
 * at, with one session at a time; which those are the relay notes in the segment (segment/purge_counts.h):
 * those it has begun to listen to, and those whose schema has changed.  A look that finds no class with ends
 * takes the note back. */
#ifndef STAMPD_SERVE_ENDS_H
#define STAMPD_SERVE_ENDS_H

#include "base/settings.h"
#include "segment/segment.h"

struct ends;
struct ends *ends_create(const struct settings *settings, struct segment *segment);
void ends_destroy(struct ends *ends);

/* When ends_run is due, by the monotonic clock. */
int64_t ends_due_ms(const struct ends *ends);
/* Deletes what has ended, for some seconds at most; what is left is due soon again.  Between two batches
 * `pause` is called; false: it is time to stop. */
void ends_run(struct ends *ends, bool (*pause)(void *context), void *context);

#endif
