/* identity: users, groups, and dropping root. */
#include "base/identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static bool find_group(const char *name, int64_t *group_r, char *problem, size_t problem_size)
{
    *group_r = IDENTITY_NO_GROUP;
    if (!*name)
        return true;
    const struct group *group = getgrnam(name);
    if (!group) {
        snprintf(problem, problem_size, "socket_group = %s: there is no such group", name);
        return false;
    }
    *group_r = group->gr_gid;
    return true;
}

int64_t identity_socket_group(const struct settings *settings)
{
    int64_t group = IDENTITY_NO_GROUP;
    char problem[256];
    if (!find_group(settings->socket_group, &group, problem, sizeof problem))
        log_warning("%s", problem);
    return group;
}

static bool give_up_root(const struct passwd *user, int64_t socket_group, char *problem, size_t problem_size)
{
    gid_t groups[] = {user->pw_gid, (gid_t)socket_group};
    size_t count = socket_group == IDENTITY_NO_GROUP ? 1 : 2;
    if (setgroups(count, groups) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid)) {
        snprintf(problem, problem_size, "user = %s: cannot become it: %m", user->pw_name);
        return false;
    }
    if (setuid(0) == 0 || setgid(0) == 0) {
        snprintf(problem, problem_size, "user = %s: root could be had again", user->pw_name);
        return false;
    }
    return true;
}

/* Inherited by all children.  Dropping root has made this process non-dumpable. */
static void decide_core_dumps(const struct settings *settings)
{
    static const struct rlimit none = {0, 0};
    if (settings->debug_core)
        prctl(PR_SET_DUMPABLE, 1);
    else if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_DUMPABLE, 0))
        log_warning("cannot disable core dumps: %m");
}

const struct passwd *identity_find_user(const struct settings *settings, char *problem, size_t problem_size)
{
    if (!*settings->user) {
        snprintf(problem, problem_size, "started as root: the setting user must name another user to run as");
        return NULL;
    }
    const struct passwd *user = getpwnam(settings->user);
    if (!user)
        snprintf(problem, problem_size, "user = %s: there is no such user", settings->user);
    else if (user->pw_uid == 0)
        snprintf(problem, problem_size, "user = %s: the server does not run as root", settings->user);
    return user && user->pw_uid ? user : NULL;
}

/* Without it the server starts all the same: attachments alone need it. */
static void make_files_folder(const struct settings *settings, const struct passwd *user,
                              int64_t socket_group)
{
    const char *folder = settings->blob_directory;
    gid_t group = socket_group == IDENTITY_NO_GROUP ? user->pw_gid : (gid_t)socket_group;
    if (mkdir(folder, 0750) == 0) {
        if (chown(folder, user->pw_uid, group))
            log_warning("blob_directory = %s: %m", folder);
    } else if (errno != EEXIST) {
        log_warning("blob_directory = %s: %m", folder);
    }
}

static bool become_user(const struct settings *settings, int64_t socket_group, char *problem,
                        size_t problem_size)
{
    const struct passwd *user = identity_find_user(settings, problem, problem_size);
    if (!user)
        return false;
    if (mkdir(settings->run_directory, 0755) == 0) {
        if (chown(settings->run_directory, user->pw_uid, user->pw_gid)) {
            snprintf(problem, problem_size, "run_directory = %s: %m", settings->run_directory);
            return false;
        }
    } else if (errno != EEXIST) {
        snprintf(problem, problem_size, "run_directory = %s: %m", settings->run_directory);
        return false;
    }
    make_files_folder(settings, user, socket_group);
    return give_up_root(user, socket_group, problem, problem_size);
}

bool identity_take(const struct settings *settings, struct identity *identity_r, char *problem,
                   size_t problem_size)
{
    if (!find_group(settings->socket_group, &identity_r->socket_group, problem, problem_size))
        return false;
    if (geteuid() == 0 && !become_user(settings, identity_r->socket_group, problem, problem_size))
        return false;
    decide_core_dumps(settings);
    return true;
}
