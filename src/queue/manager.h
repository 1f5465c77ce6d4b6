/* manager: starts tasks when they are due (doc/tasks.md): one process, one loop, no thread.
 *
 * It decides nothing: it calls the server, which claims, runs, and puts back.  What it knows comes from scans
 * and wake-ups and may be forgotten at any moment: another scan brings it back.  So several managers, and one
 * that was killed, do no harm. */
#ifndef STAMPD_QUEUE_MANAGER_H
#define STAMPD_QUEUE_MANAGER_H

#include "base/settings.h"

/* Runs until it is told to stop: SIGTERM or SIGINT, when what runs has ended; a second one or SIGQUIT, at
 * once. Returns the exit status; what keeps it from starting is told in one line of the log. */
int manager_run(const struct settings *settings);

#endif
