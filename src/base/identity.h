/* identity: as whom the server runs. */
#ifndef STAMPD_BASE_IDENTITY_H
#define STAMPD_BASE_IDENTITY_H

#include "base/settings.h"

enum { IDENTITY_NO_GROUP = -1 };

struct identity {
    int64_t socket_group; /* IDENTITY_NO_GROUP when the setting is empty */
};

/* Started as root with a `user`: makes the run directory when it is missing, then gives up root for good,
 * keeping only the group of the sockets.  On failure returns false with one line in `problem`. */
MUST_USE bool identity_take(const struct settings *settings, struct identity *identity_r, char *problem,
                            size_t problem_size);

#endif
