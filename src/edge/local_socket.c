/* local_socket: see the header. */
#include "edge/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { BACKLOG = 1024, TURN_MS = 10000, TURN_PAUSE_MS = 5 };
static const char usual[] = ".sock", fresh[] = ".new";

/* The part of the path that its fresh name begins with. */
static size_t stem_of(const char *path)
{
    size_t size = strlen(path), end = sizeof usual - 1;
    return size > end && strcmp(path + size - end, usual) == 0 ? size - end : size;
}

/* The longest path that ends as this one: its fresh name must fit into an address, too. */
static size_t longest(const char *path)
{
    size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1, size = strlen(path), stem = stem_of(path);
    return stem == size ? most - (sizeof fresh - 1) : most;
}

/* The name under which the socket of `path` is bound: not longer than a path that ends as usual. */
static bool write_fresh(const char *path, struct sockaddr_un *address_r)
{
    size_t size = stem_of(path);
    *address_r = (struct sockaddr_un){.sun_family = AF_UNIX};
    int written = snprintf(address_r->sun_path, sizeof address_r->sun_path, "%.*s%s", (int)size, path, fresh);
    return written > 0 && (size_t)written < sizeof address_r->sun_path;
}

static bool write_address(const char *path, struct sockaddr_un *address_r)
{
    size_t size = strlen(path);
    *address_r = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (size >= sizeof address_r->sun_path)
        return false;
    memcpy(address_r->sun_path, path, size + 1);
    return true;
}

static bool is_living(const struct sockaddr_un *address, int type)
{
    int probe = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_stale = probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) &&
                    (errno == ECONNREFUSED || errno == ENOENT);
    if (probe >= 0)
        close(probe);
    return !is_stale;
}

/* May the name be taken?  True: nothing is there, or a socket that may be replaced. */
static bool local_socket_is_free(const struct sockaddr_un *address,
                                 const struct local_socket_options *options, char *problem,
                                 size_t problem_size)
{
    struct stat status;
    if (lstat(address->sun_path, &status)) {
        if (errno == ENOENT)
            return true;
        snprintf(problem, problem_size, "%s: %m", address->sun_path);
    } else if (!S_ISSOCK(status.st_mode)) {
        snprintf(problem, problem_size, "%s: exists and is no socket", address->sun_path);
    } else if (!options->may_replace_living && is_living(address, options->type)) {
        snprintf(problem, problem_size, "%s: a living process listens there", address->sun_path);
    } else {
        return true;
    }
    return false;
}

/* Under the fresh name: it is created for its owner only, then opened to the group. */
static bool bind_fresh(int fd, const struct sockaddr_un *address, const struct local_socket_options *options)
{
    const char *path = address->sun_path;
    if (unlink(path) && errno != ENOENT)
        return false;
    mode_t before = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(before);
    if (rc)
        return false;
    return (options->group == LOCAL_SOCKET_NO_GROUP || !chown(path, (uid_t)-1, (gid_t)options->group)) &&
           !chmod(path, options->mode) && (options->type != SOCK_STREAM || !listen(fd, BACKLOG));
}

/* One process at a time opens sockets in a folder: of two, one would rename the socket of the other.  The
 * lock is of the folder itself, so nothing is left behind.  -1: the folder cannot be opened, or another
 * process keeps the lock. */
static int await_turn(const char *path, char *problem, size_t problem_size)
{
    const char *name = strrchr(path, '/');
    char folder[sizeof((struct sockaddr_un *)NULL)->sun_path] = ".";
    if (name)
        snprintf(folder, sizeof folder, "%.*s", name == path ? 1 : (int)(name - path), path);
    int64_t deadline_ms = clock_monotonic_ms() + TURN_MS;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_monotonic_ms() > deadline_ms) {
            snprintf(problem, problem_size, "%s: cannot lock: %m", folder);
            close(fd);
            return -1;
        }
        clock_sleep_ms(TURN_PAUSE_MS);
    }
    if (fd < 0)
        snprintf(problem, problem_size, "%s: cannot open: %m", folder);
    return fd;
}

static bool open_in_turn(const struct sockaddr_un *last, const struct sockaddr_un *first,
                         const struct local_socket_options *options, int *fd_r, char *problem,
                         size_t problem_size)
{
    if (!local_socket_is_free(last, options, problem, problem_size) ||
        !local_socket_is_free(first, options, problem, problem_size))
        return false;
    int fd = socket(AF_UNIX, options->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind_fresh(fd, first, options) && !rename(first->sun_path, last->sun_path)) {
        *fd_r = fd;
        return true;
    }
    snprintf(problem, problem_size, "%s: cannot listen: %m", last->sun_path);
    if (fd >= 0)
        close(fd);
    return false;
}

bool local_socket_open(const char *path, const struct local_socket_options *options, int *fd_r, char *problem,
                       size_t problem_size)
{
    struct sockaddr_un last, first;
    if (!write_address(path, &last) || !write_fresh(path, &first)) {
        snprintf(problem, problem_size, "%s: a socket's path has at most %zu bytes%s", path, longest(path),
                 path[stem_of(path)] ? "" : " if it does not end in .sock");
        return false;
    }
    int turn = await_turn(path, problem, problem_size);
    bool is_open = turn >= 0 && open_in_turn(&last, &first, options, fd_r, problem, problem_size);
    if (turn >= 0)
        close(turn);
    return is_open;
}

bool local_socket_is_bound(int fd, const char *path)
{
    struct sockaddr_un bound, first;
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) || bound.sun_family != AF_UNIX ||
        size <= offsetof(struct sockaddr_un, sun_path))
        return false;
    return strncmp(bound.sun_path, path, sizeof bound.sun_path) == 0 ||
           (write_fresh(path, &first) && strcmp(bound.sun_path, first.sun_path) == 0);
}
