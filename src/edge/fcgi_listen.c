/* fcgi_listen: the listening socket of a worker: its path, owner and mode. */
#include "edge/fcgi.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* Clears the path for bind; false when a live socket or another file is there. */
static bool clear_path(const struct sockaddr_un *address, char *problem, size_t problem_size)
{
    struct stat status;
    if (lstat(address->sun_path, &status))
        return errno == ENOENT || (snprintf(problem, problem_size, "%s: %m", address->sun_path), false);
    if (!S_ISSOCK(status.st_mode)) {
        snprintf(problem, problem_size, "%s: exists and is no socket", address->sun_path);
        return false;
    }
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_stale = probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) &&
                    errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    if (!is_stale) {
        snprintf(problem, problem_size, "%s: a living process listens there", address->sun_path);
        return false;
    }
    if (unlink(address->sun_path)) {
        snprintf(problem, problem_size, "%s: cannot remove the socket of a dead process: %m",
                 address->sun_path);
        return false;
    }
    return true;
}

/* Creates the path for its owner only, then sets its group, then opens it to the group. */
static bool bind_path(int fd, const struct sockaddr_un *address, int64_t group)
{
    mode_t before = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(before);
    if (rc)
        return false;
    if (group != FCGI_NO_GROUP &&
        (chown(address->sun_path, (uid_t)-1, (gid_t)group) || chmod(address->sun_path, 0660)))
        return false;
    return listen(fd, BACKLOG) == 0;
}

bool fcgi_listen(const char *path, int64_t group, int *listener_r, char *problem, size_t problem_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path) {
        snprintf(problem, problem_size, "%s: a socket's path has at most %zu bytes", path,
                 sizeof address.sun_path - 1);
        return false;
    }
    memcpy(address.sun_path, path, size + 1);
    if (!clear_path(&address, problem, problem_size))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || !bind_path(fd, &address, group)) {
        snprintf(problem, problem_size, "%s: cannot listen: %m", path);
        if (fd >= 0)
            close(fd);
        return false;
    }
    *listener_r = fd;
    return true;
}
