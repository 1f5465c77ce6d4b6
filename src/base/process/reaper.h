/* reaper: children that were killed, and are not waited for.
 *
 * One that is in an uninterruptible sleep, as for a disk that does not answer, ends when the sleep does: a
 * loop that waited for it would stand still as long.  The list has processes of this one only, so it must
 * not be used by a child that inherits it. */
#ifndef STAMPD_BASE_PROCESS_REAPER_H
#define STAMPD_BASE_PROCESS_REAPER_H

#include <sys/types.h>

#include "base/base.h"

/* Kills the child, and leaves it to the functions below. */
void reaper_kill(pid_t pid);
/* Takes the status of those that have ended.  Called by reaper_kill too; otherwise after SIGCHLD. */
void reaper_reap(void);
/* How many have not ended, as of the last call. */
size_t reaper_count(void);
/* Waits so long at most.  True: all have ended. */
bool reaper_await(int64_t most_ms);

#endif
