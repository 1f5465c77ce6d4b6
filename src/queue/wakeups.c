/* wake-ups: a Unix datagram socket. */
#include "queue/wakeups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

enum { WAKEUP_MAX = 4096, QUEUE_BYTES = 1 << 20 };

struct wakeups {
    int fd;
    struct sockaddr_un address;
    char text[WAKEUP_MAX];
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

/* Workers of the same user or group may write.  A sender can at most cause a scan. */
static bool bind_path(int fd, const struct sockaddr_un *address)
{
    mode_t before = umask(0117);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(before);
    return rc == 0;
}

struct wakeups *wakeups_open(const char *path, char *problem, size_t problem_size)
{
    struct wakeups *wakeups = calloc(1, sizeof *wakeups);
    int bytes = QUEUE_BYTES;
    if (!wakeups)
        log_fatal("out of memory");
    wakeups->address.sun_family = AF_UNIX;
    assert(strlen(path) < sizeof wakeups->address.sun_path);
    memcpy(wakeups->address.sun_path, path, strlen(path) + 1);
    wakeups->fd = -1;
    if (clear_path(&wakeups->address, problem, problem_size)) {
        wakeups->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (wakeups->fd >= 0 && bind_path(wakeups->fd, &wakeups->address)) {
            (void)setsockopt(wakeups->fd, SOL_SOCKET, SO_RCVBUF, &bytes,
                             sizeof bytes); /* the larger the better */
            return wakeups;
        }
        snprintf(problem, problem_size, "%s: cannot listen: %m", path);
    }
    if (wakeups->fd >= 0)
        close(wakeups->fd);
    free(wakeups);
    return NULL;
}

void wakeups_close(struct wakeups *wakeups)
{
    if (!wakeups)
        return;
    unlink(wakeups->address.sun_path);
    close(wakeups->fd);
    free(wakeups);
}

int wakeups_descriptor(const struct wakeups *wakeups)
{
    return wakeups->fd;
}

bool wakeups_next(struct wakeups *wakeups, struct bytes *wakeup_r)
{
    ssize_t size;
    do
        size = recv(wakeups->fd, wakeups->text, sizeof wakeups->text, 0);
    while (size < 0 && errno == EINTR);
    *wakeup_r = (struct bytes){wakeups->text, size > 0 ? (size_t)size : 0};
    return size >= 0;
}
