/* lease: which of the hosts of a pair serves (hosts = pair): a row of z, kept by a child of the master.
 *
 * The host whose installation the row names changes it some times a second, by a synchronous commit (a beat),
 * and may prove by memory what it reads until a limit after it SENT the last one that was acknowledged.
 * Another host looks at the row, and takes the lease when the row has not changed for longer than that limit,
 * or names nobody.  No clock is compared with another host's, only how long each sees a second last.  The
 * steps are those of test/model/lease.pml; sessions ask the row, too (store/session.h). */
#ifndef STAMPD_SERVE_LEASE_H
#define STAMPD_SERVE_LEASE_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until it is stopped. */
void lease_run(const struct settings *settings, struct segment *segment);

/* By the master, when its last child has ended: another host need not wait. */
void lease_release(const struct settings *settings, struct segment *segment);

#endif
