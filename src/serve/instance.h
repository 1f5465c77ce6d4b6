/* instance: one stampd on this host, as recorded in the segment: a number, a lock file, a block of entries.
 * It also schedules the repair of entries whose process died with a commit in flight: its own and those of
 * instances that are gone (freshness.md 2, "master", "start of an instance").  Used by the master, which
 * forks; nothing here touches slots or the database, which the recovery process does (session_recover).
 *
 * The lock file lies beside the segment, so instances with different run directories can share a segment.
 * Every child inherits its lock, and it is never released explicitly: a free lock means that the master and
 * all its children are gone. */
#ifndef STAMPD_SERVE_INSTANCE_H
#define STAMPD_SERVE_INSTANCE_H

#include <sys/types.h>

#include "base/settings.h"
#include "segment/segment.h"

struct instance;

/* Takes a number, its lock file and 2 × workers + 8 entries, or fewer when fewer are free, but at least one
 * for each worker and the thumbnail process.  `segment_path` is that of `stamps`.  On failure returns false
 * with one line in `problem`.
 */
MUST_USE bool instance_start(const struct settings *settings, struct segment *segment,
                             const char *segment_path, struct instance **instance_r, char *problem,
                             size_t problem_size);
/* For the master, after its children have been reaped: releases the entries that need no repair. */
void instance_stop(struct instance *instance);
uint32_t instance_number(const struct instance *instance);
/* The entries of the block, for metrics: from 0 to the count. */
int instance_entry_count(const struct instance *instance);
int instance_entry(const struct instance *instance, int number);

/* --- workers --- */
/* An entry that is FREE, now HELD, for a worker to be forked; SEGMENT_NO_INDEX: all are in use or in doubt.
 */
int instance_take_index(struct instance *instance);
/* The worker's pid, for administrators. */
void instance_worker_forked(struct instance *instance, int index, pid_t pid);
/* waitpid returned the worker, or fork failed: FREE again, or DIRTY when a commit may be in flight. */
void instance_worker_gone(struct instance *instance, int index);

/* --- recovery processes: children that run segment_join(index), session_recover, and end --- */
/* Called each second: takes over the entries of instances that are gone.  Cheap when there are none. */
void instance_take_over(struct instance *instance);
/* The next entry that needs a recovery process now and does not have one.  SEGMENT_NO_INDEX: none. */
int instance_next_orphan(struct instance *instance);
/* waitpid returned the recovery process, or fork failed: the entry is repaired, or is retried after a growing
 * delay. */
void instance_recovery_gone(struct instance *instance, int index);
/* Called first in every child other than a recovery process: only the master and recovery processes hold
 * takeovers. */
void instance_drop_takeovers(struct instance *instance);

#endif
