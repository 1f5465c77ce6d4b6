/* nginx_counts: a datagram socket with a path that changes hands by rename, so that there always is one. */
#include "serve/nginx_counts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/identity.h"
#include "base/log.h"
#include "segment/refusals.h"

enum { BATCH = 256, LINE_BYTES = 256, BUFFER_BYTES = 1 << 20 };

struct nginx_counts {
    int fd;
};

/* Under another name first: it is created for its owner only, then opened to the group of nginx. */
static bool bind_path(int fd, const char *path, int64_t group)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path, sizeof address.sun_path, "%s.new", path);
    if (size >= (int)sizeof address.sun_path)
        return false;
    (void)unlink(address.sun_path);
    mode_t before = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(before);
    if (rc || (group != IDENTITY_NO_GROUP &&
               (chown(address.sun_path, (uid_t)-1, (gid_t)group) || chmod(address.sun_path, 0660))))
        return false;
    return rename(address.sun_path, path) == 0;
}

static bool write_path(const struct settings *settings, char path_r[PATH_MAX])
{
    int size = snprintf(path_r, PATH_MAX, "%s/refused.sock", settings->run_directory);
    return size > 0 && size < PATH_MAX;
}

struct nginx_counts *nginx_counts_open(const struct settings *settings)
{
    char path[PATH_MAX];
    int bytes = BUFFER_BYTES, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool has_path = write_path(settings, path);
    if (fd < 0 || !has_path || !bind_path(fd, path, identity_socket_group(settings))) {
        log_warning("%s: cannot receive what nginx has refused: %m", path);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); /* the larger the better */
    struct nginx_counts *counts = malloc(sizeof *counts);
    if (!counts)
        log_fatal("out of memory");
    counts->fd = fd;
    return counts;
}

void nginx_counts_close(struct nginx_counts *counts)
{
    if (counts)
        close(counts->fd); /* the path stays: it may be the next relay's */
    free(counts);
}

void nginx_counts_remove(const struct settings *settings)
{
    char path[PATH_MAX];
    if (write_path(settings, path))
        (void)unlink(path);
}

int nginx_counts_descriptor(const struct nginx_counts *counts)
{
    return counts ? counts->fd : -1;
}

void nginx_counts_receive(struct nginx_counts *counts, struct segment *segment)
{
    char line[LINE_BYTES];
    for (int i = 0; i < BATCH; i++) {
        ssize_t size = recv(counts->fd, line, sizeof line, 0);
        if (size < 0)
            break;
        const char *last = memrchr(line, ' ', (size_t)size);
        int64_t status;
        if (last && bytes_to_i64((struct bytes){last + 1, (size_t)(line + size - last - 1)}, &status))
            refusals_count_nginx(segment, status);
    }
}
