/* master: the process that is started: it makes segment, sockets and children, and has no database. */
#ifndef STAMPD_SERVE_MASTER_H
#define STAMPD_SERVE_MASTER_H

#include "base/settings.h"

struct heritage;

struct master_options {
    const char *settings_path; /* read again on SIGHUP */
    const char *pid_path;      /* NULL: none is written */
    char **arguments; /* with which the program was started: a new one is started with them on SIGUSR2 */
    /* The process for live events, which is built above this layer (live/live.h): its exit status. */
    int (*live_run)(const struct heritage *heritage);
};

/* Runs until it is told to stop.  Takes over the settings.  Returns the exit status; what keeps it from
 * starting is told in one line of the log. */
int master_run(struct settings *settings, const struct master_options *options);

/* Opens the log as the settings say. */
void master_open_log(const struct settings *settings);

#endif
