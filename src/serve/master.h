/* master: the main process: creates the segment, the sockets and the children; has no database session. */
#ifndef STAMPD_SERVE_MASTER_H
#define STAMPD_SERVE_MASTER_H

#include "base/settings.h"

struct heritage;

struct master_options {
    const char *settings_path; /* read again on SIGHUP */
    const char *pid_path;      /* NULL: none is written */
    char **arguments;          /* of this program; on SIGUSR2 its successor is started with them */
    /* The process for live events, which belongs to a layer above (live/live.h); returns its exit status. */
    int (*live_run)(const struct heritage *heritage);
};

/* Runs until a signal stops it.  Takes ownership of the settings.  Returns the exit status; a failure to
 * start is logged in one line. */
int master_run(struct settings *settings, const struct master_options *options);

/* Opens the log according to the settings. */
void master_open_log(const struct settings *settings);

#endif
