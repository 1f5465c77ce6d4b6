/* folder_reach: from the root down. */
#include "control/folder_reach.h"

#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { GROUPS_MOST = 256 };

static bool may_enter(const struct passwd *user, const gid_t *groups, int count, const struct stat *status)
{
    bool is_member = false;
    for (int i = 0; i < count; i++)
        is_member = is_member || groups[i] == status->st_gid;
    return user->pw_uid == 0 || (user->pw_uid == status->st_uid ? status->st_mode & S_IXUSR
                                 : is_member                    ? status->st_mode & S_IXGRP
                                                                : status->st_mode & S_IXOTH);
}

const char *folder_reach_obstacle(struct arena *arena, const struct passwd *user, const char *path)
{
    gid_t groups[GROUPS_MOST];
    int count = GROUPS_MOST;
    struct stat status;
    if (getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0)
        return NULL; /* it is in more groups than are looked at */
    for (const char *end = path; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        const char *folder = arena_copy(arena, path, (size_t)(end - path));
        if (stat(folder, &status) != 0)
            return NULL;
        if (!may_enter(user, groups, count, &status) &&
            getxattr(folder, "system.posix_acl_access", NULL, 0) <= 0)
            return folder;
    }
    return NULL;
}
