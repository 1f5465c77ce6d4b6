/* stop: signals are read from a descriptor and never interrupt work.
 *
 * All signals stay blocked for the whole life of a process and are taken from a descriptor that its loop
 * waits on: none interrupts a system call, none is lost between a check and a wait.  Each process, children
 * included, calls stop_open for itself: an inherited descriptor would report another process's signals. */
#ifndef STAMPD_BASE_STOP_H
#define STAMPD_BASE_STOP_H

#include "base/base.h"

/* Blocks the signals, restores their default action (SIGPIPE is ignored), and forgets earlier stop requests.
 * Returns a descriptor that is readable when a signal is pending; the module owns it. */
int stop_open(void);
/* From now on SIGTERM and SIGQUIT end the process at once, with status 0; for one whose work can be cut off
 * anywhere.  Other signals stay blocked. */
void stop_end_at_once(void);
/* The next pending signal, 0 when there is none.  Does not wait. */
int stop_next(void);
/* Does the signal end a command: SIGINT, SIGTERM, SIGHUP or SIGQUIT? */
bool stop_ends(int number);
/* For a command with requests in flight: reads all pending signals.  The first that ends a command sets
 * `is_interrupted` (begin nothing more), a later one `is_abandoned` as well (wait for nothing). */
void stop_heed(bool *is_interrupted, bool *is_abandoned);

/* The strongest stop request that this process has received; never goes back.  Reads all pending signals: for
 * children, which handle no others.  A terminal's SIGINT reaches the whole group and is left to the
 * master. */
enum stop {
    STOP_NOT,
    STOP_DRAIN, /* SIGTERM: drain: accept no new work, finish the work begun */
    STOP_NOW,   /* SIGQUIT: exit as soon as the present request is answered */
};
enum stop stop_requested(void);

#endif
