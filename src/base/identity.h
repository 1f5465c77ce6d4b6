/* identity: the user and groups that the server runs as. */
#ifndef STAMPD_BASE_IDENTITY_H
#define STAMPD_BASE_IDENTITY_H

#include "base/settings.h"

enum { IDENTITY_NO_GROUP = -1 };

struct passwd;

struct identity {
    int64_t socket_group; /* IDENTITY_NO_GROUP when the setting is empty */
};

/* Started as root: creates the run directory and the folder of files if they are missing, then switches to
 * `user` for good, keeping only the group of the sockets; fails when `user` is empty or root.  In any case
 * disables core dumps, which would contain keys and contents, unless `debug_core` is on.  On failure returns
 * false with one line in `problem`. */
MUST_USE bool identity_take(const struct settings *settings, struct identity *identity_r, char *problem,
                            size_t problem_size);

/* The group of nginx, which may connect to the sockets and read the files of attachments; IDENTITY_NO_GROUP:
 * the setting is empty, or the group has gone. */
int64_t identity_socket_group(const struct settings *settings);

/* The user that root switches to; NULL, with one line in `problem`, when `user` names no user or root. */
MUST_USE const struct passwd *identity_find_user(const struct settings *settings, char *problem,
                                                 size_t problem_size);

#endif
