/* nginx_counts: a datagram socket with a path that changes hands by rename, so that there always is one. */
#include "serve/metrics/nginx_counts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/identity.h"
#include "base/log.h"
#include "segment/counts/refusals.h"
#include "edge/local_socket.h"

enum { BATCH = 256, LINE_BYTES = 256, BUFFER_BYTES = 1 << 20, PROBLEM_BYTES = 400 };

struct nginx_counts {
    int fd;
};

static bool write_path(const struct settings *settings, char path_r[PATH_MAX])
{
    int size = snprintf(path_r, PATH_MAX, "%s/refused.sock", settings->run_directory);
    return size > 0 && size < PATH_MAX;
}

struct nginx_counts *nginx_counts_open(const struct settings *settings)
{
    char path[PATH_MAX];
    char problem[PROBLEM_BYTES] = "run_directory: the path is too long";
    int64_t group = identity_socket_group(settings);
    const bool has_group = group != IDENTITY_NO_GROUP;
    const struct local_socket_options options = {.type = SOCK_DGRAM,
                                                 .mode = has_group ? 0660 : 0600,
                                                 .group = has_group ? group : LOCAL_SOCKET_NO_GROUP,
                                                 .may_replace_living = true};
    int bytes = BUFFER_BYTES, fd;
    if (!write_path(settings, path) || !local_socket_open(path, &options, &fd, problem, sizeof problem)) {
        log_warning("cannot receive what nginx has refused: %s", problem);
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
