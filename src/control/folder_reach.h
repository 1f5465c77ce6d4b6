/* folder_reach: may a user enter a folder, by the modes of all folders on the way to it? */
#ifndef STAMPD_CONTROL_FOLDER_REACH_H
#define STAMPD_CONTROL_FOLDER_REACH_H

#include <pwd.h>

#include "base/arena.h"
#include "base/base.h"

/* The first folder on the way to an absolute path, that of the path included, that the user cannot enter;
 * NULL: there is none, or what follows does not exist yet.  One with an access control list is taken to admit
 * it. */
const char *folder_reach_obstacle(struct arena *arena, const struct passwd *user, const char *path);

#endif
