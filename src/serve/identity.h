/* identity: as whom the server runs. */
#ifndef STAMPD_SERVE_IDENTITY_H
#define STAMPD_SERVE_IDENTITY_H

#include "base/settings.h"

struct identity {
    int64_t socket_group; /* FCGI_NO_GROUP when the setting is empty */
};

/* Started as root with a `user`: makes the run directory when it is missing, then gives up root for good,
 * keeping only the group of the sockets.  On failure returns false with one line in `problem`. */
MUST_USE bool identity_take(const struct settings *settings, struct identity *identity_r, char *problem,
                            size_t problem_size);

#endif
