/* manager: starts tasks when they are due (tasks.md): one process, one loop, no thread.
 *
 * It decides nothing: it calls the server, which claims, runs and puts back tasks.  Its state comes from
 * scans and wake-ups and may be lost at any moment: another scan restores it.  So several managers, or one
 * that is killed, do no harm. */
#ifndef STAMPD_QUEUE_MANAGER_H
#define STAMPD_QUEUE_MANAGER_H

#include "base/settings.h"

/* Runs until a signal: after SIGTERM or SIGINT it stops when running tasks have ended; after a second one, or
 * SIGQUIT, at once.  Returns the exit status; a failure to start is logged in one line. */
int manager_run(const struct settings *settings);

#endif
