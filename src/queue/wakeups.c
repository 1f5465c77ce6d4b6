/* wake-ups: a Unix datagram socket. */
#include "queue/wakeups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "edge/local_socket.h"

enum { WAKEUP_MAX = 4096, QUEUE_BYTES = 1 << 20, PATH_BYTES = sizeof((struct sockaddr_un){0}).sun_path };

struct wakeups {
    int fd;
    char path[PATH_BYTES];
    char text[WAKEUP_MAX];
};

struct wakeups *wakeups_open(const char *path, char *problem, size_t problem_size)
{
    struct wakeups *wakeups = calloc(1, sizeof *wakeups);
    int bytes = QUEUE_BYTES;
    /* Workers of the same user or group may write.  A sender can at most cause a scan. */
    const struct local_socket_options options = {
        .type = SOCK_DGRAM, .mode = 0660, .group = LOCAL_SOCKET_NO_GROUP};
    if (!wakeups)
        log_fatal("out of memory");
    if (!local_socket_open(path, &options, &wakeups->fd, problem, problem_size)) {
        free(wakeups);
        return NULL;
    }
    snprintf(wakeups->path, sizeof wakeups->path, "%s", path);
    (void)setsockopt(wakeups->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); /* the larger the better */
    return wakeups;
}

void wakeups_close(struct wakeups *wakeups)
{
    if (!wakeups)
        return;
    unlink(wakeups->path);
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
