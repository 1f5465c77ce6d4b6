/* hints: a Unix datagram socket. */
#include "queue/hints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

enum { HINT_MAX = 4096, QUEUE_BYTES = 1 << 20 };

struct hints {
    int fd;
    struct sockaddr_un address;
    char text[HINT_MAX];
};

static bool has_owner(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_taken = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    if (fd >= 0)
        close(fd);
    return is_taken;
}

static bool clear_path(const struct sockaddr_un *address, char *problem, size_t problem_size)
{
    struct stat status;
    if (lstat(address->sun_path, &status))
        return true;
    if (!S_ISSOCK(status.st_mode))
        snprintf(problem, problem_size, "%s: exists and is no socket", address->sun_path);
    else if (has_owner(address))
        snprintf(problem, problem_size, "%s: another manager listens there", address->sun_path);
    else if (unlink(address->sun_path) && errno != ENOENT)
        snprintf(problem, problem_size, "%s: %m", address->sun_path);
    else
        return true;
    return false;
}

/* Who may write may at most make us look for tasks: workers of the same user or group. */
static bool bind_path(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(0117);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(before);
    return rc == 0;
}

struct hints *hints_open(const char *path, char *problem, size_t problem_size)
{
    struct hints *hints = calloc(1, sizeof *hints);
    int bytes = QUEUE_BYTES;
    if (!hints)
        log_fatal("out of memory");
    hints->address.sun_family = AF_UNIX;
    assert(strlen(path) < sizeof hints->address.sun_path);
    memcpy(hints->address.sun_path, path, strlen(path) + 1);
    hints->fd = -1;
    if (clear_path(&hints->address, problem, problem_size)) {
        hints->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (hints->fd >= 0 && bind_path(hints->fd, &hints->address)) {
            (void)setsockopt(hints->fd, SOL_SOCKET, SO_RCVBUF, &bytes,
                             sizeof bytes); /* the more the better */
            return hints;
        }
        snprintf(problem, problem_size, "%s: cannot listen: %m", path);
    }
    if (hints->fd >= 0)
        close(hints->fd);
    free(hints);
    return NULL;
}

void hints_close(struct hints *hints)
{
    if (!hints)
        return;
    unlink(hints->address.sun_path);
    close(hints->fd);
    free(hints);
}

int hints_descriptor(const struct hints *hints)
{
    return hints->fd;
}

bool hints_next(struct hints *hints, struct bytes *hint_r)
{
    ssize_t size;
    do
        size = recv(hints->fd, hints->text, sizeof hints->text, 0);
    while (size < 0 && errno == EINTR);
    *hint_r = (struct bytes){hints->text, size > 0 ? (size_t)size : 0};
    return size >= 0;
}
